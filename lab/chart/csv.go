package chart

// The numbers behind a figure.

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
)

// WriteCSV writes a head and the rows, each with one cell per column: text, whole numbers, truth
// values, and float64 with the digits that identify it, "inf" and "-inf", and nothing for NaN.
func WriteCSV(w io.Writer, columns []string, rows [][]any) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	for k, row := range rows {
		if len(row) != len(columns) {
			return fmt.Errorf("chart: row %d has %d cells, there are %d columns", k, len(row), len(columns))
		}
		line := make([]string, len(row))
		for c, cell := range row {
			text, err := cellText(cell)
			if err != nil {
				return fmt.Errorf("chart: row %d, column %s: %w", k, columns[c], err)
			}
			line[c] = text
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}

	out.Flush()
	return out.Error()
}

func cellText(cell any) (string, error) {
	switch x := cell.(type) {
	case string:
		return x, nil
	case int:
		return strconv.Itoa(x), nil
	case uint64:
		return strconv.FormatUint(x, 10), nil
	case bool:
		return strconv.FormatBool(x), nil
	case float64:
		switch {
		case math.IsNaN(x):
			return "", nil
		case math.IsInf(x, 0):
			return map[bool]string{true: "inf", false: "-inf"}[x > 0], nil
		}
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	}

	return "", fmt.Errorf("a %T is no cell", cell)
}
