package region

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestOneRegionIsExact: where one region holds every cycle, ln Z and all marginals are exact, also
// for indices on trees around it.
func TestOneRegionIsExact(t *testing.T) {
	trees := [][2]int{{0, 9}, {9, 10}, {4, 11}, {8, 12}, {12, 13}, {12, 14}} // hung on a 3 × 3 grid
	bridged := append(gridEdges(2, 2), [2]int{3, 4}, [2]int{4, 5}, [2]int{5, 6}, [2]int{6, 7}, [2]int{7, 8},
		[2]int{8, 5}, [2]int{0, 9})
	for name, c := range map[string]struct {
		e *sumproduct.Expression
		o Options
	}{
		"grid":        {grid(3, 4, 1, 1), Options{Kind: Windows, Size: 4}},
		"grid, balls": {grid(3, 4, 1, 1), Options{Kind: Balls, Size: 5}},
		"grid with trees": {
			ising(15, append(gridEdges(3, 3), trees...), 0.8, 2), Options{Kind: Windows, Size: 3},
		},
		"cycle": {
			ising(6, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}, {4, 5}}, 1, 3),
			Options{Kind: Balls, Size: 5},
		},
		"two cycles apart": {ising(10, bridged, 0.5, 3), Options{Kind: Balls, Size: 3}},
		"any tables":       {random(9, 12, 1, 5), Options{Kind: Balls, Size: 9}},
		"a tree":           {ising(3, [][2]int{{0, 1}, {1, 2}}, 1, 3), Options{Kind: Balls, Size: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Marginals = true
			want, marginals := exactAnswer(t, c.e)
			est := estimate(t, c.e, c.o)
			// one cycle's correction reaches the other's messages, but not its inside
			if name == "two cycles apart" {
				if off, before := math.Abs(est.LnZ-want), math.Abs(est.LnZBP-want); off > 0.2*before {
					t.Errorf("ln Z off by %g, belief propagation by %g", off, before)
				}
				return
			}
			if math.Abs(est.LnZ-want) > rounding || est.Regions > 1 {
				t.Errorf("ln Z = %v of %d regions, want %v", est.LnZ, est.Regions, want)
			}
			if math.Abs(est.LnZLinear-want) > rounding || !est.LinearOK {
				t.Errorf("linear: %v", est.LnZLinear)
			}
			if off := meanError(est.Marginals, marginals); off > rounding {
				t.Errorf("marginals are off by %g", off)
			}
		})
	}
}

// TestWindowsAreTheirClosure: the counting numbers of windows along a line equal the generic
// closure's.
func TestWindowsAreTheirClosure(t *testing.T) {
	// rows, columns, window
	for _, c := range [][3]int{
		{4, 4, 2},
		{4, 5, 3},
		{5, 6, 3},
		{6, 7, 4},
		{3, 7, 4},
		{5, 7, 5},
		{2, 6, 3},
		{6, 7, 3},
		{7, 7, 4},
		{8, 6, 2},
		{7, 5, 4},
	} {
		e := grid(c[0], c[1], 0.7, 9)
		if c[0] > 5 { // a torus
			e = shuffle(ising(c[0]*c[1], torusEdges(c[0], c[1]), 0.3, 9), 5)
		}
		f := planFamily(t, e, Options{Kind: Windows, Size: c[2]})
		w := f.source.(*windows)
		if n := w.rows.points * w.cols.points; n != c[0]*c[1] {
			t.Fatalf("a %d × %d grid has %d places", c[0], c[1], n)
		}
		s, k := newStore(1000), newWorker(f.graph, nil)
		got := map[string]int64{}
		for r := range f.Len() {
			legs, alpha := w.region(r, k)
			legs = slices.Sorted(slices.Values(legs))
			if len(legs) == 0 {
				continue
			}
			got[name(legs)] += alpha
			if w.mayBeLargest(r) {
				if _, _, err := s.add(legs); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := addAllIntersections(k.cut, s, unlimitedMoves()); err != nil {
			t.Fatal(err)
		}
		for r, alpha := range weights(t, f.graph, s) {
			if got[name(s.region(r))] != alpha {
				t.Errorf("%v: %d legs have α = %d, windows say %d", c, s.size(r), alpha, got[name(s.region(r))])
			}
			delete(got, name(s.region(r)))
		}
		if len(got) > 0 {
			t.Errorf("%v: %d windows are not in the closure", c, len(got))
		}
	}
}

func torusEdges(rows, cols int) [][2]int {
	edges := gridEdges(rows, cols)
	for r := range rows {
		edges = append(edges, [2]int{r * cols, r*cols + cols - 1})
	}
	for c := range cols {
		edges = append(edges, [2]int{c, (rows-1)*cols + c})
	}
	return edges
}

func name(legs []int32) string {
	var b []byte
	for _, leg := range legs {
		b = append(b, byte(leg), byte(leg>>8))
	}
	return string(b)
}

// TestRegionsConverge: errors of ln Z and of marginals fall with the size of the regions, far below
// belief propagation's.
func TestRegionsConverge(t *testing.T) {
	for side := 4; side <= 8; side += 2 {
		var last, before, lastMean, beforeMean float64
		for seed := range uint64(4) {
			e := grid(side, side, 0.5, seed)
			want, marginals := exactAnswer(t, e)
			est := estimate(t, e, Options{Kind: Windows, Size: 4, Marginals: true})
			s := propagate(t, e)
			beliefs := make([][]float64, len(e.Dims))
			for i := range beliefs {
				beliefs[i] = s.Belief(i)
			}
			last += math.Abs(est.LnZ - want)
			before += math.Abs(est.LnZBP - want)
			lastMean += meanError(est.Marginals, marginals)
			beforeMean += meanError(beliefs, marginals)
			for _, p := range est.Marginals {
				if math.Abs(p[0]+p[1]-1) > rounding {
					t.Errorf("a marginal sums to %v", p[0]+p[1])
				}
			}
		}
		t.Logf("%d × %d: ln Z %.1e of belief propagation's %.1e, marginals %.1e of %.1e",
			side, side, last/4, before/4, lastMean/4, beforeMean/4)
		if last > before/500 || lastMean > beforeMean/20 {
			t.Errorf("%d × %d: ln Z %.1e of belief propagation's %.1e, marginals %.1e of %.1e",
				side, side, last, before, lastMean, beforeMean)
		}
	}
}

// TestAnyTables: families on tables of order three, whose regions hold some legs of a table and not
// others.
func TestAnyTables(t *testing.T) {
	for _, o := range []Options{{Kind: Balls, Size: 1}, {Kind: Balls, Size: 2}} {
		var off, before float64
		for seed := range uint64(10) {
			e := random(12, 14, 1.5, seed)
			want, _ := exactAnswer(t, e)
			est := estimate(t, e, o)
			off += math.Abs(est.LnZ - want)
			before += math.Abs(est.LnZBP - want)
		}
		if t.Logf("%v: %g of %g", o, off, before); off > before/3 {
			t.Errorf("%v: %g of %g", o, off, before)
		}
	}
}

// TestPartsDoNotChangeBits: any number of threads, and any worker that plans again.
func TestPartsDoNotChangeBits(t *testing.T) {
	for _, o := range []Options{
		{Kind: Windows, Size: 3, Marginals: true},
		{Kind: Balls, Size: 2, Marginals: true},
	} {
		e := grid(7, 6, 0.8, 3)
		messages := propagate(t, e).Messages()
		s, err := bp.Restore(e, messages)
		if err != nil {
			t.Fatal(err)
		}
		one, err := Run(context.Background(), e, s, planFamily(t, e, o), 1)
		if err != nil {
			t.Fatal(err)
		}
		f := planFamily(t, e, o)
		bounds := f.partBounds()
		var parts []*Part
		for k := len(bounds) - 2; k >= 0; k-- {
			restored, err := bp.Restore(e, messages)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Prepare(context.Background(), e, restored, planFamily(t, e, o))
			if err != nil {
				t.Fatal(err)
			}
			part, err := p.Part(context.Background(), bounds[k], bounds[k+1])
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part)
		}
		slices.Reverse(parts)
		p, err := Prepare(context.Background(), e, s, f)
		if err != nil {
			t.Fatal(err)
		}
		est, err := p.Combine(parts)
		if err != nil {
			t.Fatal(err)
		}
		if est.LnZ != one.LnZ || est.LnZLinear != one.LnZLinear ||
			meanError(est.Marginals, one.Marginals) != 0 ||
			est.Flops != one.Flops {
			t.Errorf("%v: %v, %v", o, est.LnZ, one.LnZ)
		}
		if est.Flops != f.Flops {
			t.Errorf("%v: %v flops, predicted %v", o, est.Flops, f.Flops)
		}
		if _, err := p.Combine(parts[1:]); err == nil {
			t.Error("a part is missing, and nobody says so")
		}
		if _, err := p.Combine(parts[:len(parts)-1]); err == nil {
			t.Error("the last part is missing, and nobody says so")
		}
	}
}

// TestNotPositive: signed tables may give a region a value that has no logarithm; it is left out,
// and counted.
func TestNotPositive(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		// with two values a cycle is always positive
		e := &sumproduct.Expression{Dims: []int{3, 3, 3}, Scale: scaled.One}
		for k := range 3 {
			data := make([]float64, 9)
			for x := range data {
				data[x] = 2*rng.Float64() - 1
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, (k + 1) % 3}, Data: data})
		}
		s, err := bp.Run(context.Background(), e, bp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if s.Contradiction >= 0 || !s.Converged {
			continue
		}
		want, _, err := einsum.Contract(context.Background(), e, []int{0, 1, 2}, einsum.Options{})
		if err != nil {
			t.Fatal(err)
		}
		est, err := Run(context.Background(), e, s,
			planFamily(t, e, Options{Kind: Balls, Size: 2, Marginals: true}), 1)
		if err != nil {
			t.Fatal(err)
		}
		_, sign := s.Z()
		switch {
		case want.Sign() != sign: // the one region is all there is
			found++
			if est.NonPositive != 1 || est.LnZ != est.LnZBP || est.LinearOK {
				t.Errorf("seed %d: %+v", seed, est)
			}
		case est.NonPositive != 0 || math.Abs(est.LnZ-want.LogAbs()) > rounding || est.Sign != sign:
			t.Errorf("seed %d: %+v, ln |Z| = %v", seed, est, want.LogAbs())
		}
	}
	if found == 0 {
		t.Error("no model has a region that is not positive")
	}
}

// TestZerosAndRanges: values that tables exclude have probability 0, and entries may be far from 1.
func TestZerosAndRanges(t *testing.T) {
	e := grid(3, 3, 1, 4)
	e.Tables[9].Data = []float64{1, 0, 0, 2}              // 0 and 1 are equal
	e.Tables[12].Data = []float64{1e-280, 3, 1, 1e-290}   // hardly ever equal
	e.Tables[14].Data = []float64{1e300, 1, 2e300, 1e290} // and a factor far away
	e.Tables[4].Data = []float64{0, 1}                    // the centre is 1
	want, marginals := exactAnswer(t, e)
	est := estimate(t, e, Options{Kind: Windows, Size: 3, Marginals: true})
	if math.Abs(est.LnZ-want) > rounding*want {
		t.Errorf("ln Z = %v, want %v", est.LnZ, want)
	}
	if off := meanError(est.Marginals, marginals); !(off < rounding) {
		t.Errorf("marginals are off by %v: %v, %v", off, est.Marginals, marginals)
	}
}

func TestErrors(t *testing.T) {
	plan := func(e *sumproduct.Expression, o Options) error {
		_, err := Plan(context.Background(), e.Hypergraph(), o)
		return err
	}
	torus := ising(16,
		append(gridEdges(4, 4), [2]int{0, 3}, [2]int{4, 7}, [2]int{8, 11}, [2]int{12, 15}), 1, 1)
	for name, c := range map[string]struct {
		err  error
		code fault.Code
	}{
		"kind":     {plan(grid(3, 3, 1, 1), Options{Kind: "squares"}), fault.BadInput},
		"size":     {plan(grid(3, 3, 1, 1), Options{Kind: Balls, Size: -1}), fault.BadInput},
		"width":    {plan(grid(3, 3, 1, 1), Options{Kind: Balls, Size: 1, MaxWidth: 99}), fault.BadInput},
		"too wide": {plan(grid(9, 9, 1, 1), Options{Kind: Windows, Size: 6, MaxWidth: 5}), fault.OverBudget},
		"too many": {plan(grid(9, 9, 1, 1), Options{Kind: Balls, Size: 2, MaxRegions: 50}), fault.OverBudget},
		"too long": {plan(grid(9, 9, 1, 1), Options{Kind: Balls, Size: 5, Moves: 1000}), fault.OverBudget},
		"too much": {plan(grid(9, 9, 1, 1), Options{Kind: Windows, Size: 6, Flops: 1000}), fault.OverBudget},
		"no lattice": {
			plan(ising(5, [][2]int{{0, 1}, {1, 2}, {2, 0}, {3, 4}}, 1, 1), Options{Kind: Windows, Size: 4}),
			fault.Unsupported,
		},
		"a short cylinder": {plan(torus, Options{Kind: Windows, Size: 4}), fault.Unsupported},
		"a tree":           {plan(ising(2, [][2]int{{0, 1}}, 1, 1), Options{Kind: Windows, Size: 4}), fault.Unsupported},
		"balls of it":      {plan(torus, Options{Kind: Balls, Size: 2}), ""},
	} {
		if c.code == "" && c.err != nil || c.code != "" && fault.CodeOf(c.err) != c.code {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Plan(ctx, grid(4, 4, 1, 1).Hypergraph(), Options{Kind: Balls, Size: 3}); !errors.Is(err,
		context.Canceled) {
		t.Error(err)
	}
}
