// Results as CSV, written and read again for comparison.

package bench

import (
	"io"
	"math"

	"github.com/basetensor/basetensor/lab/chart"
	"github.com/basetensor/basetensor/pkg/fault"
)

// WriteCSV writes a head and one line per row. Unknown numbers are empty; −Inf (Z = 0) is "-inf".
func WriteCSV(w io.Writer, rows []Row) error { return chart.WriteCSV(w, rows, false) }

// ReadCSV reads a file of WriteCSV, by the names in the head: columns this version does not know are passed over, and of
// the known ones only model, wall_s and status must be there. Errors are bad input and name the line.
func ReadCSV(r io.Reader) ([]Row, error) {
	rows, err := chart.ReadCSV[Row](r, "model", "wall_s", "status")
	if err != nil {
		return nil, fault.New(fault.BadInput, "results: %w", err)
	}
	for k := range rows {
		r := &rows[k]
		for _, seconds := range []*float64{&r.Wall, &r.CPU} {
			if math.IsNaN(*seconds) {
				*seconds = 0
			}
		}
		for name, v := range map[string]float64{
			"variables": float64(r.Variables), "wall_s": r.Wall, "cpu_s": r.CPU, "peak_bytes": float64(r.Peak),
		} {
			if v < 0 {
				return nil, fault.New(fault.BadInput, "results: line %d: %s: %v is out of range", k+2, name, v)
			}
		}
	}
	return rows, nil
}
