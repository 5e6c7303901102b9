package wire

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

var digestA = Digest([]byte("a"))

// A message does not read as one of another kind.
func TestReplies(t *testing.T) {
	e := query.ErrorInfo{Code: fault.Deadline}
	answer, err := Encode(&Answer{Job: "j", Digest: digestA, Status: StatusError, Error: &e})
	if err != nil {
		t.Fatal(err)
	}
	unanswered, err := Encode(&Unanswered{Job: "j", Digest: digestA, Status: StatusPending, Error: e})
	if err != nil {
		t.Fatal(err)
	}
	var a Answer
	if err := Decode(answer, &a); err != nil || a.Job != "j" {
		t.Errorf("%v %v", a, err)
	}
	var u Unanswered
	if err := Decode(unanswered, &u); err != nil || u.Job != "j" || u.Status != StatusPending {
		t.Errorf("%v %v", u, err)
	}
	if err := Decode(unanswered, &a); err == nil {
		t.Error("an Unanswered reads as an Answer")
	}
	cancel, err := Encode(&Cancel{Job: "j"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Decode(cancel, &a); err == nil || !strings.Contains(err.Error(), `a "cancel" where a "answer" belongs`) {
		t.Error(err)
	}
}

// The same model has the same digest, whichever empty lists its fields have; one entry changes it.
func TestDigestOfGraph(t *testing.T) {
	graph := func(names []string, entry float64) *Graph {
		return &Graph{
			Model: &Model{
				Domains: []int{1},
				Names:   names,
				Factors: factors{{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{1}, Data: []float64{entry}}}},
			},
		}
	}
	_, want, err := EncodeGraph(graph(nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	b, same, err := EncodeGraph(graph([]string{}, 1))
	if err != nil || same != want || Digest(b) != want {
		t.Errorf("%s %v, want %s", same, err, want)
	}
	var back Graph
	if err := Decode(b, &back); err != nil || back.Model.Factors[0].Table.(*tensor.Dense).Data[0] != 1 {
		t.Errorf("%+v %v", back, err)
	}
	if _, other, _ := EncodeGraph(graph(nil, 2)); other == want {
		t.Error("another entry, and the same digest")
	}
	if _, _, err := EncodeGraph(&Graph{}); fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
}

// TestLines: the lines of a model's tables arrive, one for each factor or none, those of its rows, and aliases of its variables.
func TestLines(t *testing.T) {
	table := &tensor.Dense{Shape: []int{1}, Data: []float64{1}}
	for _, c := range []struct {
		lines   []int
		rows    [][]int
		aliases []string
		wrong   string
	}{
		{}, {[]int{7}, [][]int{{8}}, []string{"a"}, ""}, {[]int{7, 8}, nil, nil, "2 lines for 1 factors"},
		{nil, nil, []string{"a", "b"}, "2 aliases for 1 variables"}, {nil, make([][]int, 2), nil, "rows of 2 factors, the model has 1"},
	} {
		graph := &Graph{Model: &Model{
			Domains: []int{1}, Bayes: true, Lines: c.lines, RowLines: c.rows, Aliases: c.aliases,
			Factors: factors{{Scope: []int{0}, Table: table}},
		}}
		data, _, err := EncodeGraph(graph)
		if err == nil {
			graph = new(Graph)
			err = Decode(data, graph)
		}
		if c.wrong == "" && err == nil {
			m, err := graph.Model.Decode()
			if err != nil || !slices.Equal(m.Lines, c.lines) || !slices.Equal(m.Aliases, c.aliases) || !reflect.DeepEqual(m.RowLines, c.rows) {
				t.Errorf("%v became %v, %v", c.lines, m, err)
			}
			continue
		}
		if c.wrong == "" || err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%v: %v", c.lines, err)
		}
	}
}
