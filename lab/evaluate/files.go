package evaluate

// Results as files: rows, summaries, figures.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	err := chart.WriteFile(filepath.Join(dir, x.Name+".txt"), func(w io.Writer) error {
		_, err := io.WriteString(w, x.Summary(rows))
		return err
	})
	if err != nil {
		return err
	}
	_, err = draw(dir, x, rows)
	return err
}

// WriteRows writes NAME.csv alone to dir, which it makes: the file is the old one or the new one, whole.
func WriteRows(dir string, x Experiment, rows []Row) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	path := filepath.Join(dir, x.Name+".csv")
	if err := chart.WriteFile(path+".part", func(w io.Writer) error { return chart.WriteCSV(w, rows, true) }); err != nil {
		return err
	}
	return fault.Wrap(fault.Infrastructure, os.Rename(path+".part", path))
}

// Redraw draws the figures of an experiment again from its NAME.csv in dir, and returns their number; 0 where there is no such file.
func Redraw(dir string, x Experiment) (int, error) {
	rows, err := Rows(dir, x)
	if err != nil || rows == nil {
		return 0, err
	}
	return draw(dir, x, rows)
}

func draw(dir string, x Experiment, rows []Row) (int, error) {
	if x.Figures == nil {
		return 0, nil
	}
	figures := x.Figures(rows)
	for _, f := range figures {
		if err := chart.WriteFile(filepath.Join(dir, f.Name+".svg"), f.Draw); err != nil {
			return 0, err
		}
	}
	return len(figures), nil
}

// Rows returns the rows of NAME.csv in dir; none where there is no such file.
func Rows(dir string, x Experiment) ([]Row, error) {
	f, err := os.Open(filepath.Join(dir, x.Name+".csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	defer f.Close()
	rows, err := chart.ReadCSV[Row](f)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %s.csv: %w", x.Name, err)
	}
	return rows, nil
}
