package evaluate

// Figures from stored results, without measuring again.

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Redraw draws the figures of an experiment again from its NAME.csv in dir, and returns their number; 0 where there is no such file.
func Redraw(dir string, x Experiment) (int, error) {
	rows, err := Rows(dir, x)
	if err != nil || rows == nil {
		return 0, err
	}

	figures := x.Figures(rows)
	for _, f := range figures {
		var svg bytes.Buffer
		if err := f.Draw(&svg); err != nil {
			return 0, fault.Wrap(fault.Internal, err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name+".svg"), svg.Bytes(), 0o644); err != nil {
			return 0, fault.Wrap(fault.Infrastructure, err)
		}
	}

	return len(figures), nil
}

// Rows returns the rows of NAME.csv in dir; none where there is no such file.
func Rows(dir string, x Experiment) ([]Row, error) {
	rows, err := readRows(filepath.Join(dir, x.Name+".csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.BadInput, "evaluate: %s.csv: %w", x.Name, err)
	}
	return rows, nil
}

// readRows reads a file of Write. Missing columns are empty, and NaN where they are numbers.
func readRows(path string) ([]Row, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	lines, err := csv.NewReader(bytes.NewReader(raw)).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, errors.Join(err, errors.New("no head"))
	}

	rows := make([]Row, len(lines)-1)
	for k, line := range lines[1:] {
		cell := func(name string) string {
			if c := slices.Index(lines[0], name); c >= 0 {
				return line[c]
			}
			return ""
		}
		if rows[k], err = rowOf(cell); err != nil {
			return nil, errors.Join(errors.New("row "+strconv.Itoa(k)), err)
		}
	}

	return rows, nil
}

// rowOf is the row with these cells, by column.
func rowOf(cell func(name string) string) (r Row, err error) {
	number := func(name string) float64 {
		text := cell(name)
		if text == "" {
			return math.NaN()
		}
		v, wrong := strconv.ParseFloat(text, 64)
		err = errors.Join(err, wrong)
		return v
	}

	whole := func(name string) uint64 {
		if cell(name) == "" {
			return 0
		}
		v, wrong := strconv.ParseUint(cell(name), 10, 64)
		err = errors.Join(err, wrong)
		return v
	}

	r = Row{
		Model: cell("model"), Family: cell("family"), Attractive: cell("attractive") == "true",
		Variables: int(whole("variables")), Strength: number("strength"),
		Seed: whole("seed"), Method: cell("method"), Step: number("step"), LnZ: number("ln_z"),
		Estimate: number("estimate"), Error: number("error"),
		Uncertainty: number("uncertainty"), MarginalError: number("marginal_error"),
		Largest: number("largest_marginal_error"), Residual: number("residual"),
		Discarded: number("discarded"), Flops: number("flops"), Seconds: number("seconds"),
		ExactSeconds: number("exact_seconds"), Failed: cell("failed"),
		Guarantee: Guarantee{
			StandardError: number("standard_error"), Tail: number("tail_index"), Lower: number("lower"), Upper: number("upper"),
			MarginalStated: number("marginal_uncertainty"), CPU: number("cpu_seconds"), Used: cell("used"),
		},
	}

	return r, err
}
