package evaluate

// Results as files.

import (
	"bytes"
	"math"
	"os"
	"path/filepath"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Write writes NAME.csv, NAME.txt with the summary, and the figures of an experiment to dir, which
// it makes.
func Write(dir string, x Experiment, rows []Row) error {
	if err := WriteRows(dir, x, rows); err != nil {
		return err
	}
	put := func(name string, data []byte) error {
		return fault.Wrap(fault.Infrastructure, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	if err := put(x.Name+".txt", []byte(x.Summary(rows))); err != nil {
		return err
	}

	for _, f := range x.Figures(rows) {
		var svg bytes.Buffer
		if err := f.Draw(&svg); err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		if err := put(f.Name+".svg", svg.Bytes()); err != nil {
			return err
		}
	}

	return nil
}

// WriteRows writes NAME.csv alone to dir, which it makes: the file is the old one or the new one, whole.
func WriteRows(dir string, x Experiment, rows []Row) error {
	columns, cells := filled(rows)
	var table bytes.Buffer
	if err := chart.WriteCSV(&table, columns, cells); err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	path := filepath.Join(dir, x.Name+".csv")
	if err := os.WriteFile(path+".part", table.Bytes(), 0o644); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	return fault.Wrap(fault.Infrastructure, os.Rename(path+".part", path))
}

// filled are the columns that hold something in some row, with their cells.
func filled(rows []Row) (columns []string, cells [][]any) {
	cells = make([][]any, len(rows))
	for c, name := range Columns {
		empty := true
		for _, r := range rows {
			cell := r.Cells()[c]
			number, isNumber := cell.(float64)
			empty = empty && (cell == "" || isNumber && math.IsNaN(number))
		}
		if empty {
			continue
		}
		columns = append(columns, name)
		for k, r := range rows {
			cells[k] = append(cells[k], r.Cells()[c])
		}
	}

	return columns, cells
}
