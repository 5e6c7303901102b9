// Results as CSV, written and read again for comparison.

package bench

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/basetensor/basetensor/pkg/fault"
)

var csvHead = []string{
	"set", "model", "variables", "method", "exact", "width", "log2_table", "planned_flops", "planned_bytes",
	"real_flops", "slices",
	"wall_s", "cpu_s", "peak_bytes", "log10_z", "reference", "error", "mar_error", "status", "note",
}

// WriteCSV writes a head and one line per row. Unknown numbers are empty; −Inf (Z = 0) is "-inf".
func WriteCSV(w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHead); err != nil {
		return err
	}
	for _, r := range rows {
		width := ""
		if r.Width != nil {
			width = strconv.Itoa(*r.Width)
		}
		err := out.Write([]string{
			r.Set, r.Model, strconv.Itoa(r.Variables), r.Method, strconv.FormatBool(r.Exact), width,
			csvFloat(r.Log2Table),
			csvFloat(r.Flops), csvFloat(r.Bytes), csvFloat(r.RealFlops), csvFloat(r.Slices),
			strconv.FormatFloat(r.Wall, 'f', 4, 64), strconv.FormatFloat(r.CPU, 'f', 4, 64),
			strconv.FormatInt(r.Peak, 10),
			csvFloat(r.Log10Z), csvFloat(r.Reference), csvFloat(r.Error), csvFloat(r.MarError), string(r.Status), r.Note,
		})
		if err != nil {
			return err
		}
	}

	out.Flush()
	return out.Error()
}

func csvFloat(v *float64) string {
	switch {
	case v == nil:
		return ""
	case math.IsInf(*v, -1):
		return "-inf"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// ReadCSV reads a file of WriteCSV, by the names in the head: columns this version does not know are passed over, and of
// the known ones only model, wall_s and status must be there. Errors are bad input and name the line.
func ReadCSV(r io.Reader) ([]Row, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fault.New(fault.BadInput, "results: the head: %w", err)
	}

	at := map[string]int{}
	for i, name := range head {
		at[name] = i
	}
	for _, name := range []string{"model", "wall_s", "status"} {
		if _, ok := at[name]; !ok {
			return nil, fault.New(fault.BadInput, "results: no column %q: not the CSV file of a benchmark", name)
		}
	}

	var rows []Row
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fault.New(fault.BadInput, "results: %w", err) // names the line itself
		}
		line, _ := in.FieldPos(0)
		c := cells{fields: fields, at: at}
		row := c.row()
		if c.err != nil {
			return nil, fault.New(fault.BadInput, "results: line %d: %w", line, c.err)
		}
		rows = append(rows, row)
	}
}

// cells reads typed fields of one line; the first error stays.
type cells struct {
	fields []string
	at     map[string]int
	err    error
}

func (c *cells) row() Row {
	r := Row{
		Set: c.text("set"), Model: c.text("model"), Method: c.text("method"), Exact: c.text("exact") == "true",
		Log2Table: c.float("log2_table"), Flops: c.float("planned_flops"), Bytes: c.float("planned_bytes"),
		RealFlops: c.float("real_flops"), Slices: c.float("slices"), Log10Z: c.float("log10_z"),
		Reference: c.float("reference"),
		Error:     c.float("error"), MarError: c.float("mar_error"), Status: Status(c.text("status")),
		Note: c.text("note"),
	}
	r.Variables, r.Wall, r.CPU, r.Peak = int(c.number("variables")), c.number("wall_s"), c.number("cpu_s"), int64(c.number("peak_bytes"))
	if w := c.float("width"); w != nil {
		r.Width = new(int(*w))
	}
	return r
}

func (c *cells) text(name string) string {
	if i, ok := c.at[name]; ok {
		return c.fields[i]
	}
	return ""
}

func (c *cells) float(name string) *float64 {
	text := c.text(name)
	if text == "" {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) {
		if c.err == nil {
			c.err = fault.New(fault.BadInput, "%s: %q is no number", name, text)
		}
		return nil
	}
	return &v
}

// number is a float that counts from 0; absent it is 0.
func (c *cells) number(name string) float64 {
	v := c.float(name)
	if v == nil {
		return 0
	}
	if *v < 0 || *v > 1<<62 {
		if c.err == nil {
			c.err = fault.New(fault.BadInput, "%s: %v is out of range", name, *v)
		}
		return 0
	}
	return *v
}
