package formats_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// fieldCase is a file that others met, with a probability that its numbers give by hand.
type fieldCase struct {
	file     string // in testdata/field, or in testdata/turned
	original string // in the folder field of BTN_DATA
	evidence []factorgraph.Observation
	variable int // its marginal, and the states' names
	want     []float64
	states   []string
}

var isWet = []factorgraph.Observation{{Var: 1, Value: 1}}

var fieldCases = []fieldCase{
	{"field/quoted.bif", "07-comma-in-states/quoted.bif", nil, 1, []float64{0.5*0.1 + 0.3*0.4 + 0.2*0.7, 0.69}, []string{"yes", "no"}},
	{"field/quoted.bif", "07-comma-in-states/quoted.bif", nil, 0, []float64{0.5, 0.3, 0.2},
		[]string{"(0, 1,999]", "(1,999, 20,000]", "(20,000, Inf]"}},
	{"field/unquoted.bif", "07-comma-in-states/unquoted.bif", nil, 1, []float64{0.6*0.1 + 0.4*0.4, 0.78}, []string{"yes", "no"}},
	{"field/unquoted.bif", "07-comma-in-states/unquoted.bif", nil, 0, []float64{0.6, 0.4}, []string{"(0,20]", "(20,99]"}},
	{"field/brackets.bif", "07-comma-in-states/brackets.bif", nil, 1, []float64{0.22, 0.78}, []string{"<5", ">=5"}},
	{"field/brackets.bif", "07-comma-in-states/brackets.bif", nil, 0, []float64{0.6, 0.4}, []string{"[0;20]", "]20;99]"}},
	{"field/network.xml", "39-network-root/m.xml", []factorgraph.Observation{{Var: 1, Value: 0}}, 0,
		[]float64{0.08 / 0.35, 0.27 / 0.35}, []string{"T", "F"}},
	{"field/comment.bifxml", "40-agrum-comment/m.bifxml", nil, 0, []float64{0.2, 0.3, 0.5}, []string{"0", "1", "2"}},
	// as they are read: 0.2·0.8/(0.2·0.8 + 0.8·0.2)
	{"turned/m.bif", "11-bif-table-transposed/m.bif", isWet, 0, []float64{0.5, 0.5}, []string{"no", "yes"}},
	{"turned/m.net", "11-bif-table-transposed/m.net", isWet, 0, []float64{0.5, 0.5}, []string{"no", "yes"}},
	{"turned/m.xdsl", "11-bif-table-transposed/m.xdsl", isWet, 0, []float64{0.5, 0.5}, []string{"no", "yes"}},
}

func (c fieldCase) check(t *testing.T, path string) {
	t.Helper()
	m := load(t, path)
	evidence, err := factorgraph.NewEvidence(c.evidence, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := answer(t, m, query.Query{Evidence: evidence, Marginals: true})
	for x, p := range c.want {
		if math.Abs(r.Marginals[c.variable].P[x]-p) > 1e-15 {
			t.Errorf("%s: %v, want %v", path, r.Marginals[c.variable], c.want)
		}
	}
	if !reflect.DeepEqual(m.States[c.variable], c.states) {
		t.Errorf("%s: states %q, want %q", path, m.States[c.variable], c.states)
	}
	for _, as := range []formats.Format{formats.BIF, formats.XMLBIF, formats.NET, formats.DSC, formats.XDSL, formats.JSON} {
		var b bytes.Buffer
		if err := formats.Write(&b, as, m); err != nil {
			t.Fatal(err)
		}
		back, err := formats.Read(&b, "", "", uai.Limits{})
		if err != nil || fmt.Sprintf("%q", back.States) != fmt.Sprintf("%q", m.States) {
			t.Errorf("%s in %s: %v, %v", path, as, back, err)
		}
	}
}

// TestField: files as other programs write them, and people by hand, have the answers that their numbers give, and keep their names in
// every format.
func TestField(t *testing.T) {
	for _, c := range fieldCases {
		c.check(t, filepath.Join("testdata", c.file))
	}
}

// TestFieldFolder: so have the originals, where BTN_DATA names a folder that has them.
func TestFieldFolder(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	if _, err := os.Stat(filepath.Join(data, "field")); err != nil {
		t.Skip(err)
	}
	for _, c := range fieldCases {
		c.check(t, filepath.Join(data, "field", c.original))
	}
}

// answer is the result of one query.
func answer(t *testing.T, m *factorgraph.Model, q query.Query) query.Result {
	t.Helper()
	results, err := infer.Run(context.Background(), infer.Request{Job: "a", Model: m, Queries: []query.Query{q}})
	if err != nil || results[0].Error != nil {
		t.Fatal(err, results)
	}
	return results[0]
}
