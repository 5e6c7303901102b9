package cases

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// WriteSamples writes samples as a CSV file with a case per row, which Reader reads back. Columns and cells have names. A name that
// a reader or a spreadsheet takes for something else is written by its position: a variable 3, a value #3. Samples with weights have a
// column NumCases: the weight times the number of samples.
func WriteSamples(w io.Writer, labels *factorgraph.Labels, s *query.Samples) error {
	// the header
	rows := csv.NewWriter(w)
	variables := len(labels.Domains())
	row := make([]string, 0, variables+1)
	if s.Weights != nil {
		row = append(row, numCases)
	}
	for v := range variables {
		row = append(row, nameOrPosition(labels.OfVariable(v), fmt.Sprint(v)))
	}
	if err := rows.Write(row); err != nil {
		return err
	}

	// the cells: cells[v][x] is value x of variable v
	cells := make([][]string, variables)
	for v, domain := range labels.Domains() {
		cells[v] = make([]string, domain)
		for x := range domain {
			cells[v][x] = nameOrPosition(labels.OfValue(v, x), fmt.Sprintf("#%d", x))
		}
	}
	for k, assignment := range s.Assignments {
		row = row[:0]
		if s.Weights != nil {
			row = append(row, formatNumber(s.Weights[k]*float64(len(s.Assignments))))
		}
		for v, x := range assignment {
			row = append(row, cells[v][x])
		}
		if err := rows.Write(row); err != nil {
			return err
		}
	}
	rows.Flush()
	return rows.Error()
}

// nameOrPosition returns a name, or its position if the name would be read back from a cell as something else.
func nameOrPosition(name, position string) string {
	if name == "" || strings.TrimSpace(name) != name || makeInert([]string{name})[0] != name {
		return position
	}
	return name
}
