package evaluate

// Results as files.

import (
	"bytes"
	"os"
	"path/filepath"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/lab/chart"
)

// Write writes NAME.csv, NAME.txt with the summary, and the figures of an experiment to dir, which it makes.
func Write(dir string, x Experiment, rows []Row) error {
	cells := make([][]any, len(rows))
	for k, r := range rows {
		cells[k] = r.Cells()
	}
	var table bytes.Buffer
	if err := chart.WriteCSV(&table, Columns, cells); err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	put := func(name string, data []byte) error {
		return fault.Wrap(fault.Infrastructure, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	if err := put(x.Name+".csv", table.Bytes()); err != nil {
		return err
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
