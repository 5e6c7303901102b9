package trees_test

// Edges of the input: empty, zero, wide, of one value or contradictory.

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestEdges(t *testing.T) {
	wide := &sumproduct.Expression{Dims: []int{3}, Scale: scaled.One} // index 0 in 30 tables
	for i := range 30 {
		wide.Dims = append(wide.Dims, 2)
		data := make([]float64, 6)
		for k := range data {
			data[k] = 1 + float64((i+k)%4)
		}
		wide.Tables = append(wide.Tables, sumproduct.Table{Scope: []int{0, i + 1}, Data: data})
	}
	wideZ := 0.0
	for x := range 3 {
		p := 1.0
		for _, table := range wide.Tables {
			p *= table.Data[2*x] + table.Data[2*x+1]
		}
		wideZ += p
	}
	tiny, huge := math.Ldexp(1, -1000), math.Ldexp(1, 1000)
	for _, c := range []struct {
		name string
		e    *sumproduct.Expression
		want scaled.Number
	}{
		{"nothing", &sumproduct.Expression{Scale: scaled.One}, scaled.One},
		{"free indices", &sumproduct.Expression{Dims: []int{3, 1, 2}, Scale: scaled.One},
			scaled.FromFloat(6)},
		{"numbers", &sumproduct.Expression{
			Scale:  scaled.FromFloat(-2),
			Tables: []sumproduct.Table{{Data: []float64{3}}, {Data: []float64{5}}},
		}, scaled.FromFloat(-30)},
		{"scale 0", &sumproduct.Expression{Dims: []int{2}}, scaled.Number{}},
		{"one table", &sumproduct.Expression{
			Dims:   []int{2, 2},
			Scale:  scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{1, 0}, Data: []float64{1, 2, 3, -4}}},
		}, scaled.FromFloat(2)},
		{"unary tables only", &sumproduct.Expression{
			Dims:  []int{2},
			Scale: scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 2}},
				{Scope: []int{0}, Data: []float64{3, 4}},
				{Scope: []int{0}, Data: []float64{5, 6}}},
		}, scaled.FromFloat(63)},
		{"all zeros", &sumproduct.Expression{
			Dims:  []int{2, 2},
			Scale: scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: make([]float64, 4)},
				{Scope: []int{0, 1}, Data: []float64{1, 2, 3, 4}}},
		}, scaled.Number{}},
		{"exclusive", &sumproduct.Expression{
			Dims:  []int{2},
			Scale: scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 0}},
				{Scope: []int{0}, Data: []float64{0, 1}}},
		}, scaled.Number{}},
		{"cancelling", &sumproduct.Expression{
			Dims:   []int{2},
			Scale:  scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, -1}}},
		}, scaled.Number{}},
		{"far out of range", &sumproduct.Expression{
			Dims:  []int{2, 2},
			Scale: scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: []float64{huge, 0, 0, huge}},
				{Scope: []int{1, 0}, Data: []float64{huge, 0, 0, huge}}, {Data: []float64{huge}}},
		}, scaled.Make(1, 3001)},
		{"close to nothing", &sumproduct.Expression{
			Dims:  []int{2, 2},
			Scale: scaled.One,
			Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: []float64{tiny, 0, 0, tiny}},
				{Scope: []int{1, 0}, Data: []float64{tiny, 0, 0, tiny}}},
		}, scaled.Make(1, -1999)},
		{"index in 30 tables", wide, scaled.FromFloat(wideZ)},
	} {
		for k, p := range plans(t, c.e.Hypergraph(), 4, 1) {
			v, err := trees.Contract(context.Background(), c.e, p, trees.Options{Bond: 4, Marginals: true})
			if err != nil {
				t.Fatalf("%s, plan %d: %v", c.name, k, err)
			}
			if d := v.Z.Sub(c.want); !d.IsZero() && !(math.Abs(d.Div(c.want).Float64()) <= 1e-13) {
				t.Errorf("%s, plan %d: Z = %v, want %v", c.name, k, v.Z, c.want)
			}
			if (v.Marginals == nil) != v.Z.IsZero() {
				t.Errorf("%s, plan %d: Z = %v, marginals %v", c.name, k, v.Z, v.Marginals)
			}
		}
	}
}

// TestPlanFitsSmallerDimensions: observing values leaves the plan in use, whether the index stays in the scopes or not.
func TestPlanFitsSmallerDimensions(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		e := random(rng, 7, 12, false)
		for k, p := range plans(t, e.Hypergraph(), 4, seed) {
			for _, remove := range []bool{false, true} {
				fixed := fix(e, rng.IntN(7), remove)
				want, _, _ := oracle.Sum(fixed, 0).Float64()
				v := contract(t, fixed, p, trees.Options{Bond: 1 << 20})
				if d := math.Abs(v.Z.Float64() - want); !(d <= 1e-12*want) {
					t.Fatalf("seed %d, plan %d: Z = %v, want %v", seed, k, v.Z.Float64(), want)
				}
			}
		}
	}
}

// fix returns e with an index at its first value: of dimension 1, and out of the scopes if remove.
func fix(e *sumproduct.Expression, index int, remove bool) *sumproduct.Expression {
	out := &sumproduct.Expression{Dims: append([]int(nil), e.Dims...), Scale: e.Scale}
	out.Dims[index] = 1
	for _, t := range e.Tables {
		var table sumproduct.Table
		inner, before := 1, false
		for k := len(t.Scope) - 1; k >= 0; k-- {
			if t.Scope[k] == index {
				before = true
				break
			}
			inner *= e.Dims[t.Scope[k]]
		}
		for _, i := range t.Scope {
			if i != index || !remove {
				table.Scope = append(table.Scope, i)
			}
		}
		for at, x := range t.Data {
			if !before || at/inner%e.Dims[index] == 0 {
				table.Data = append(table.Data, x)
			}
		}
		out.Tables = append(out.Tables, table)
	}
	return out
}

func TestSearchAndContractAreDeterministic(t *testing.T) {
	e := grid(8, 8, 0.7, 1)
	o := trees.SearchOptions{Bond: 4, Flops: 1, Moves: 1 << 24, Seed: 3}
	p, cost, err := trees.Search(context.Background(), e.Hypergraph(), o)
	if err != nil {
		t.Fatal(err)
	}
	q, again, _ := trees.Search(context.Background(), e.Hypergraph(), o)
	if !reflect.DeepEqual(p, q) || cost != again {
		t.Error("one seed gave two plans")
	}
	evaluated, err := trees.Evaluate(e.Hypergraph(), p, 4)
	if err != nil || evaluated != cost {
		t.Errorf("Search says %+v, Evaluate %+v, %v", cost, evaluated, err)
	}
	v := contract(t, e, p, trees.Options{Bond: 4})
	if w := contract(t, e, p, trees.Options{Bond: 4}); v.Z != w.Z {
		t.Errorf("%v, then %v", v.Z, w.Z)
	}
}

func TestErrors(t *testing.T) {
	e := grid(3, 3, 1, 1)
	h := e.Hypergraph()
	p, _, err := trees.Search(context.Background(), h, trees.SearchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*trees.Plan){
		"too few tables":  func(p *trees.Plan) { p.Tables-- },
		"no hosts":        func(p *trees.Plan) { p.Hosts = nil },
		"host of nothing": func(p *trees.Plan) { p.Hosts[0] = 99 },
		"wire missing":    func(p *trees.Plan) { p.Wires = p.Wires[1:] },
		"wire twice":      func(p *trees.Plan) { p.Wires = append(p.Wires, p.Wires[0]) },
		"wire to nowhere": func(p *trees.Plan) { p.Wires[0][1] = 1000 },
		"merge missing":   func(p *trees.Plan) { p.Merges = p.Merges[1:] },
		"merge of a dead": func(p *trees.Plan) { p.Merges[1] = p.Merges[0] },
		"merge below 0":   func(p *trees.Plan) { p.Merges[0][0] = -1 },
		"other copy":      func(p *trees.Plan) { p.Copies[0] = 99 },
	} {
		bad := p
		bad.Hosts, bad.Copies = append([]int(nil), p.Hosts...), append([]int(nil), p.Copies...)
		bad.Wires, bad.Merges = append([][3]int(nil), p.Wires...), append([][2]int(nil), p.Merges...)
		spoil(&bad)
		if _, err := trees.Contract(context.Background(), e, bad,
			trees.Options{}); !errors.Is(err,
			trees.ErrPlan) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := trees.Contract(cancelled, e, p, trees.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, _, err := trees.Search(cancelled, grid(10, 10, 1, 1).Hypergraph(), trees.SearchOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled search: %v", err)
	}
	if _, _, err := trees.Search(context.Background(), h, trees.SearchOptions{Memory: 100}); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("100 bytes: %v", err)
	}
	for _, bad := range []contractionorder.Hypergraph{{Dims: []int{0}},
		{Dims: []int{2}, Edges: [][]int{{1}}},
		{Dims: []int{2}, Edges: [][]int{{0, 0}}}} {
		if _, _, err := trees.Search(context.Background(), bad, trees.SearchOptions{}); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%v: %v", bad, err)
		}
	}
	infinite := grid(3, 3, 1, 1)
	infinite.Tables[12].Data[0] = math.NaN()
	if _, err := trees.Contract(context.Background(), infinite, p, trees.Options{}); !errors.Is(err, sumproduct.ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
}
