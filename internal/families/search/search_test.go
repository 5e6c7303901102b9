package search_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/search"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/fault"
)

// both are the most probable assignments of a network by elimination and by a search of so much work.
func both(t *testing.T, net *btn.Network, work int64) (exact, found *btn.Found) {
	t.Helper()
	ctx := context.Background()
	p := problem.New(net, problem.Options{})
	tables, err := descent.Of(ctx, p, btn.AskMPE, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, _, err := tables.Plan(ctx, descent.PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if exact, err = tables.Best(ctx, path, descent.Options{To: path.Count}); err != nil {
		t.Fatal(err)
	}
	part := &search.Search{Shape: tables.Shape(), Work: work}
	if err := part.Fits(net); err != nil {
		t.Fatal(err)
	}
	value, err := part.Contract(ctx, p, problem.Want{})
	if err != nil && fault.CodeOf(err) != fault.OverBudget {
		t.Fatal(err)
	}
	return exact, value.Found
}

// compare checks what a search has found against an elimination.
func compare(t *testing.T, what string, exact, found *btn.Found, whole bool) {
	t.Helper()
	if exact == nil || found == nil {
		if exact != nil && whole || found != nil {
			t.Fatalf("%s: %v by search, %v by elimination", what, found, exact)
		}
		return
	}
	ln, best := found.Weight.LogAbs(), exact.Weight.LogAbs()
	slack := 1e-12 * (1 + math.Abs(best))
	switch {
	case ln > best+slack:
		t.Fatalf("%s: ln weight %v above the largest, %v", what, ln, best)
	case found.Bound < best-slack || found.Bound < ln:
		t.Fatalf("%s: bound %v of %v below the largest, %v", what, found.Bound, ln, best)
	case whole && found.Relaxed:
		t.Fatalf("%s: not proved, gap %v", what, found.Bound-ln)
	case !found.Relaxed && ln < best-search.Tolerance:
		t.Fatalf("%s: proved %v, the largest is %v", what, ln, best)
	case exact.Unique && !found.Relaxed && best-ln == 0 && !slices.Equal(exact.Values, found.Values):
		t.Fatalf("%s: %v, the only best is %v", what, found.Values, exact.Values)
	}
}

// TestEqualToElimination: of models of all kinds of factors the search finds the weight that an elimination finds, and when it ends early
// its bound holds.
func TestEqualToElimination(t *testing.T) {
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 7))
		m := generate.Small(rng, generate.SmallOptions{Zeros: []float64{0, 0.2}[seed%2], Variables: 3 + rng.IntN(6), Factors: 3 + rng.IntN(9)})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, work := range []int64{1 << 30, 1, 200} {
			exact, found := both(t, net, work)
			compare(t, "a small model", exact, found, work == 1<<30)
		}
	}
}

// TestReferenceModels: the same of published models.
func TestReferenceModels(t *testing.T) {
	for _, name := range []string{"uai/Segmentation_11", "uai/DBN_15", "uai/ObjectDetection_35", "uai/Grids_11"} {
		exact, found := both(t, reference.Network(t, name), 1<<32)
		compare(t, name, exact, found, true)
	}
}

// TestEndsInTime: a search whose time is over has an assignment and a bound.
func TestEndsInTime(t *testing.T) {
	m, err := generate.Random(generate.RandomOptions{Variables: 200, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(net, problem.Options{})
	tables, err := descent.Of(context.Background(), p, btn.AskMPE, nil)
	if err != nil {
		t.Fatal(err)
	}
	part := &search.Search{Shape: tables.Shape(), Work: math.MaxInt64}
	value, err := part.Contract(context.Background(), p, problem.Want{Until: time.Now()})
	if err != nil || value.Found == nil || value.Found.Bound < value.Found.Weight.LogAbs() {
		t.Fatalf("%+v, %v", value.Found, err)
	}
	part.Shape = "another"
	if _, err := part.Contract(context.Background(), p, problem.Want{}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("another network: %v", err)
	}
	if part.Work = 0; part.Fits(net) == nil {
		t.Error("a search of no work fits")
	}
}
