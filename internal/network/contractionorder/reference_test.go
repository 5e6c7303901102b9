package contractionorder_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// shapeOf returns the hypergraph of a reference model with its evidence.
func shapeOf(t testing.TB, name string) contractionorder.Hypergraph {
	t.Helper()
	h, err := lower.Shape(context.Background(), reference.Network(t, "uai/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestReferenceModels holds a long search to the largest result, in log2 of its entries, and the log10
// of the flops it is known to reach, with half a bit and a quarter of a decade to spare.
func TestReferenceModels(t *testing.T) {
	for _, m := range []struct {
		name         string
		table, flops float64
		slow         bool
	}{
		{"linkage_11", 21, 8.9, true},
		{"linkage_13", 21, 8.5, true},
		{"linkage_25", 19, 8.0, true},
		{"Grids_15", 21, 8.8, false},
		{"Promedus_11", 15, 6.7, false},
		{"Promedus_17", 17, 7.1, false},
		{"Promedus_23", 16, 7.1, false},
		{"c432.isc.cnf", 22, 8.8, false},
		{"CSP_13", 22, 8.2, false},
		{"DBN_15", 21, 8.7, false},
		{"Pedigree_11", 14, 5.8, false},
	} {
		t.Run(m.name, func(t *testing.T) {
			if m.slow && testing.Short() {
				t.Skip("a second of search, skipped by -short")
			}
			p := searchReference(t, m.name)
			if p.Cost.Log2Table > m.table+0.5 || math.Log10(p.Cost.Flops) > m.flops {
				t.Errorf("largest result 2^%.1f, 10^%.2f flops; 2^%.1f and 10^%.2f are known to "+
					"be reached", p.Cost.Log2Table,
					math.Log10(p.Cost.Flops), m.table, m.flops)
			}
		})
	}
}

func searchReference(t *testing.T, name string) contractionorder.Plan {
	h := shapeOf(t, name)
	order, err := contractionorder.FromOrder(h, orders.MinFill(h))
	if err != nil {
		t.Fatal(err)
	}
	fill, err := contractionorder.EvaluateTree(h, order, nil)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	p, err := contractionorder.Search(context.Background(), h, contractionorder.Options{Seed: 1, Effort: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-15s min-fill 2^%.1f 10^%.2f | search 2^%.1f 10^%.2f flops, %.0f slices, peak "+
		"%.3g bytes, %.2g moves in %.2f s", name,
		fill.Log2Table, math.Log10(fill.Flops), p.Cost.Log2Table, math.Log10(p.Cost.Flops),
		p.Cost.Slices, p.Cost.PeakBytes,
		float64(p.Moves), time.Since(start).Seconds())
	checkPlan(t, h, p)
	return p
}
