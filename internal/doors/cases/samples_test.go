package cases

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestSamplesComeBack: every value of every variable is read as it was written, by any name, with the weights of the rows.
// Nothing begins as a formula does.
func TestSamplesComeBack(t *testing.T) {
	names := []string{"level", "=1+1", "a, b", " wide ", "NumBer", "", "semi;colon"}
	values := [][]string{{"low|high", "[0.2,0.8]", "NA"}, {"=cmd|x", "+1", "-1"}, {"yes, no", "say \"no\"", "two\nlines"}, {" a", "a", "-b"},
		{"", "#0", "?"}, nil, {"1.0", "2", "@x"}}
	l, err := factorgraph.NewLabels([]int{3, 3, 3, 3, 3, 3, 3}, names, values)
	if err != nil {
		t.Fatal(err)
	}
	s := &query.Samples{Weights: []float64{0.5, 0.25, 0.25}, Assignments: [][]int{
		{0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1}, {2, 2, 2, 2, 2, 2, 2},
	}}
	for range 2 {
		var b bytes.Buffer
		if err := WriteSamples(&b, l, s); err != nil {
			t.Fatal(err)
		}
		for _, formula := range []string{"=cmd", "@x", "-b", "=1"} {
			if strings.Contains(b.String(), formula) {
				t.Errorf("%q in\n%s", formula, &b)
			}
		}
		r, err := NewReader(&b, l, Columns{})
		if err != nil {
			t.Fatal(err)
		}
		for k, assignment := range s.Assignments {
			c, err := r.Next()
			if err != nil || c.Err != nil {
				t.Fatal(err, c.Err)
			}
			weight := 1.0
			if s.Weights != nil {
				weight = 3 * s.Weights[k]
			}
			read := make([]int, len(assignment))
			for i := range read {
				read[i] = -1
			}
			for _, o := range c.Evidence.Hard {
				read[o.Var] = o.Value
			}
			if !reflect.DeepEqual(read, assignment) || c.Weight != weight || len(c.Evidence.Soft) > 0 {
				t.Errorf("%v with weight %v, want %v, %v", read, c.Weight, assignment, weight)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
		s.Weights = nil
	}
}
