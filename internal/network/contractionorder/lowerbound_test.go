package contractionorder_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// widest returns log2 of the largest table of the best of all orders:
// by trying them, with sets of neighbours.
func widest(h contractionorder.Hypergraph, left []int, edges [][]int, limit float64) float64 {
	if len(left) == 0 {
		return 0
	}
	best := limit
	for k, v := range left {
		clique := []int{v}
		var rest [][]int
		for _, e := range edges {
			if slices.Contains(e, v) {
				for _, u := range e {
					if !slices.Contains(clique, u) {
						clique = append(clique, u)
					}
				}
			} else {
				rest = append(rest, e)
			}
		}
		table := 0.0
		for _, u := range clique {
			table += math.Log2(float64(h.Dims[u]))
		}
		if table >= best {
			continue
		}
		others := slices.Delete(slices.Clone(left), k, k+1)
		best = min(best, max(table, widest(h, others, append(rest, clique[1:]), best)))
	}
	return best
}

// TestLowerBoundIsOne: no order of a small graph has a largest table below it.
func TestLowerBoundIsOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	tight := 0
	for round := range 300 {
		h := random(rng, 2+rng.IntN(6), 1+rng.IntN(14))
		var left []int
		for v := range h.Dims {
			left = append(left, v)
		}
		want := widest(h, left, h.Edges, math.Inf(1))
		got, err := contractionorder.LowerBound(t.Context(), h)
		if err != nil || got > want+1e-6 {
			t.Fatalf("round %d: at least 2^%v, an order takes 2^%v: %v, %v",
				round, got, want, h, err)
		}
		if got > want-1e-6 {
			tight++
		}
	}
	if tight < 200 {
		t.Errorf("the bound is the truth for %d of 300 small graphs", tight)
	}
}

func TestLowerBoundOfKnownGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		h           contractionorder.Hypergraph
		least, most float64
	}{
		"nothing":  {contractionorder.Hypergraph{}, 0, 0},
		"chain":    {chain(1000), 2, 2},
		"complete": {complete(40), 40, 40},
		"star":     {star(500), 2, 2},
		"dense":    {random(rand.New(rand.NewPCG(1, 2)), 200, 4000), 100, math.Inf(1)},
	} {
		got, err := contractionorder.LowerBound(t.Context(), c.h)
		if err != nil || got < c.least-1e-6 || got > c.most+1e-6 {
			t.Errorf("%s: 2^%v, between %v and %v: %v", name, got, c.least, c.most, err)
		}
	}
	h := random(rand.New(rand.NewPCG(4, 4)), 80, 200)
	got, err := contractionorder.LowerBound(t.Context(), h)
	if plan := orders.Evaluate(h, orders.Best(h)); err != nil || got > plan.Log2Table+1e-6 {
		t.Errorf("at least 2^%v, and 2^%v found: %v", got, plan.Log2Table, err)
	}
}

// counted is a context that ends at its n-th look.
type counted struct {
	context.Context
	looks, end int
}

func (c *counted) Err() error {
	if c.looks++; c.looks >= c.end {
		return context.Canceled
	}
	return nil
}

// TestPlanningEndsWithItsContext: once the context has ended nobody looks at it again,
// so that the remaining work is at most the work between two looks.
func TestPlanningEndsWithItsContext(t *testing.T) {
	h := lattice(300, 300, false)
	order := orders.MinWeight(chain(2000))
	for name, plan := range map[string]func(context.Context) error{
		"min-fill": func(ctx context.Context) error {
			_, err := contractionorder.MinFill(ctx, h)
			return err
		},
		"min-weight": func(ctx context.Context) error {
			_, err := contractionorder.MinWeight(ctx, h)
			return err
		},
		"best": func(ctx context.Context) error {
			_, _, err := contractionorder.Best(ctx, h)
			return err
		},
		"lower bound": func(ctx context.Context) error {
			_, err := contractionorder.LowerBound(ctx, h)
			return err
		},
		"evaluate": func(ctx context.Context) error {
			_, err := contractionorder.EvaluateOrder(ctx, h, order)
			return err
		},
	} {
		for _, end := range []int{1, 2, 5} {
			ctx := &counted{Context: context.Background(), end: end}
			if err := plan(ctx); !errors.Is(err, context.Canceled) || ctx.looks != end {
				t.Errorf("%s: %v after %d looks at a context that ended at the look %d",
					name, err, ctx.looks, end)
			}
		}
	}
}

// TestMinFillWithin: the order is MinFill's where its tables are small enough,
// and whole where they are not.
func TestMinFillWithin(t *testing.T) {
	h := lattice(12, 12, false)
	want := orders.MinFill(h)
	width := orders.Evaluate(h, want).Log2Table
	for _, limit := range []float64{3, width - 1, width, 1000, math.Inf(1)} {
		order, within, err := contractionorder.MinFillWithin(t.Context(), h, limit, 1<<20)
		if err != nil || within != (limit >= width) || within && !slices.Equal(order, want) {
			t.Errorf("within 2^%v: %v, %v", limit, within, err)
		}
		_, within, err = contractionorder.MinFillWithin(t.Context(), h, limit, 1000)
		if err != nil || within {
			t.Errorf("within 2^%v: %v, %v after 1000 operations", limit, within, err)
		}
		if slices.Sort(order); len(order) != len(want) || len(slices.Compact(order)) != len(want) {
			t.Errorf("within 2^%v: %d of %d indices", limit, len(order), len(want))
		}
	}
}
