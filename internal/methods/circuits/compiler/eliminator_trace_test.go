package compiler

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// mixed draws clauses near the threshold over a core, and on each variable of it a band of tables: length variables of two
// values, each in one table with the width ones before it.
func mixed(t testing.TB, r *rand.Rand, core, length, width int) *formula.Formula {
	t.Helper()
	logic := hard(t, r, core, 3)
	f := formula.Formula{Domains: logic.Domains, Clauses: logic.Clauses, Scale: scaled.One}
	for v := range core {
		band := []int32{int32(v)}
		for range length {
			f.Domains = append(f.Domains, 2)
			band = append(band, int32(len(f.Domains)-1))
			scope := band[max(len(band)-width-1, 0):]
			entries := 1
			for _, u := range scope {
				entries *= f.Domains[u]
			}
			table := formula.Table{Scope: append([]int32(nil), scope...)}
			for range entries {
				table.Values = append(table.Values, 0.1+r.Float64())
			}
			f.Tables = append(f.Tables, table)
		}
	}
	f.Links = len(f.Domains)
	out, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDensePartsAreEliminated: a part without clauses is summed by elimination while a circuit is
// traced: the sum is the same, the work less than half, and the circuit about as large as by
// search.
func TestDensePartsAreEliminated(t *testing.T) {
	f := mixed(t, rand.New(rand.NewPCG(21, 22)), 30, 20, 6)
	bySearch, edges := sizeOf(t, f, -1)
	got, also := sizeOf(t, f, 0)
	if d := math.Abs(got.Z.Log10Abs() - bySearch.Z.Log10Abs()); d > 1e-12*math.Abs(bySearch.Z.Log10Abs()) {
		t.Errorf("%v by search, %v with eliminations", bySearch.Z, got.Z)
	}
	if got.Stats.Dense == 0 || 2*got.Stats.Work > bySearch.Stats.Work || 4*also > 5*edges {
		t.Errorf("%d edges, %+v by search, %d edges, %+v with eliminations", edges, bySearch.Stats, also, got.Stats)
	}
}

// sizeOf compiles a formula, checks that its circuit has its sum, and returns that and the circuit's edges.
func sizeOf(t *testing.T, f *formula.Formula, cells int) (Result, int) {
	t.Helper()
	b := circuit.NewBuilder(f.Domains, 0)
	got, err := Compile(context.Background(), f, Options{Builder: b, CircuitOnly: true, cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Finish(context.Background(), got.Root)
	if err != nil {
		t.Fatal(err)
	}
	weights := make([]scaled.Number, f.Atoms())
	for a := range weights {
		weights[a] = scaled.One
	}
	z, err := c.Evaluate(context.Background(), circuit.Weights(weights))
	if err != nil || math.Abs(z.Log10Abs()-got.Z.Log10Abs()) > 1e-12*math.Abs(z.Log10Abs()) {
		t.Errorf("the circuit sums to %v, %v, the search to %v", z, err, got.Z)
	}
	return got, c.Edges()
}
