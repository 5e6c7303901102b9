package search_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// both are the most probable assignments of a network by elimination and by searches of so much work, one part or several.
func both(t *testing.T, net *btn.Network, parts ...search.Search) (exact, found *btn.Found) {
	t.Helper()
	ctx := context.Background()
	p := problem.New(net, problem.Options{})
	tables, err := descent.PreparedOf(ctx, p, btn.AskMPE, nil)
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
	var list []*btn.Found
	for _, part := range parts {
		part.Shape = tables.Shape()
		if err := part.Fits(net); err != nil {
			t.Fatal(err)
		}
		value, err := part.Contract(ctx, p, btn.Want{})
		if err != nil {
			t.Fatal(err)
		}
		if value.Found != nil {
			list = append(list, value.Found)
		}
	}
	return exact, btn.BestOfSearches(list)
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
	case !found.Relaxed && ln < best-btn.Tolerance:
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
		m := modeltest.Small(rng, modeltest.SmallOptions{Zeros: []float64{0, 0.2}[seed%2], Variables: 3 + rng.IntN(6), Factors: 3 + rng.IntN(9)})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, work := range []int64{1 << 30, 1, 200} {
			exact, found := both(t, net, search.Search{Work: work})
			compare(t, "a small model", exact, found, work == 1<<30)
			exact, found = both(t, net, search.Search{Work: max(1, work/16)}, search.Search{Work: work})
			compare(t, "after a short search", exact, found, work == 1<<30)
		}
	}
}

// TestReferenceModels: the same of published models.
func TestReferenceModels(t *testing.T) {
	for _, name := range []string{"uai/Segmentation_11", "uai/DBN_15", "uai/ObjectDetection_35", "uai/Grids_11"} {
		exact, found := both(t, reference.Network(t, name), search.Search{Work: 1 << 32})
		compare(t, name, exact, found, true)
	}
}

// whole is the problem of a generated model, and a search for its most probable assignment.
func whole(t *testing.T, m *factorgraph.Model, err error) (*problem.Problem, *search.Search) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(net, problem.Options{})
	tables, err := descent.PreparedOf(context.Background(), p, btn.AskMPE, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, &search.Search{Shape: tables.Shape()}
}

// TestEndsInTime: a search whose time is over has an assignment and a bound.
func TestEndsInTime(t *testing.T) {
	m, err := generate.Random(generate.RandomOptions{Variables: 200, Degree: 3, Arity: 3, MinDomain: 2, MaxDomain: 3, Strength: 2, Seed: 1})
	p, part := whole(t, m, err)
	part.Work = math.MaxInt64
	late := btn.Want{Until: time.Now()}
	value, err := part.Contract(context.Background(), p, late)
	if err != nil || value.Found == nil || value.Found.Bound < value.Found.Weight.LogAbs() {
		t.Fatalf("%+v, %v", value.Found, err)
	}
	part.Shape = "another"
	if _, err := part.Contract(context.Background(), p, btn.Want{}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("another network: %v", err)
	}
	if part.Work = 0; part.Fits(p.Net) == nil {
		t.Error("a search of no work fits")
	}
}

// TestNothingFound: a search without an assignment is no error, because other parts of the plan may have one.
func TestNothingFound(t *testing.T) {
	m, err := generate.Constraints(generate.ConstraintOptions{Variables: 100, Constraints: 350, Seed: 1})
	p, part := whole(t, m, err)
	part.Work = 1
	value, err := part.Contract(context.Background(), p, btn.Want{})
	if f := value.Found; err != nil || f == nil || len(f.Values) > 0 || !f.Bounded || !f.Relaxed || math.IsInf(f.Bound, 0) {
		t.Errorf("%+v, %v", f, err)
	}
}

// lists are the best assignments of a model by elimination, in slices where that is asked for, and by a search of so much work.
func lists(t *testing.T, net *btn.Network, best int, sliced bool, work int64) (exact, found *btn.Found) {
	t.Helper()
	ctx := context.Background()
	p := problem.New(net, problem.Options{})
	tables, err := descent.PreparedOf(ctx, p, btn.AskMPE, nil)
	if err != nil {
		t.Fatal(err)
	}
	var path *descent.Path
	for memory := int64(64); path == nil; memory *= 2 {
		if !sliced {
			memory = 1 << 30
		}
		if path, _, err = tables.Plan(ctx, descent.PlanOptions{Memory: memory}); err != nil && fault.CodeOf(err) != fault.OverBudget {
			t.Fatal(err)
		}
	}
	for at := range min(2, path.Count) { // in two parts
		part := &descent.Descent{Along: path, From: at * path.Count / 2, To: path.Count}
		if at == 0 && path.Count > 1 {
			part.To = path.Count / 2
		}
		value, err := part.Contract(ctx, p, btn.Want{Best: best})
		if err != nil {
			t.Fatal(err)
		}
		exact = exact.Better(value.Found)
	}
	if exact != nil {
		exact.Shorten(best)
	}
	value, err := (&search.Search{Shape: tables.Shape(), Work: work}).Contract(ctx, p, btn.Want{Best: best})
	if err != nil {
		t.Fatal(err)
	}
	if found = value.Found; found != nil && len(found.Values) == 0 {
		found = nil
	}
	return exact, found
}

// checkList compares a list with the weights of all assignments that are possible, by their logarithms the largest first.
func checkList(t *testing.T, what string, f *btn.Found, best int, want map[string]float64, whole bool) {
	t.Helper()
	if f == nil {
		if len(want) > 0 && whole {
			t.Fatalf("%s: nothing of %d assignments", what, len(want))
		}
		return
	}
	sorted := slices.SortedFunc(maps.Values(want), func(a, b float64) int { return cmp.Compare(b, a) })
	list := slices.Insert(slices.Clone(f.Others), 0, btn.Other{Values: f.Values, Weight: f.Weight})
	rest := maps.Clone(want)
	last := math.Inf(1)
	for k, o := range list {
		ln, possible := rest[fmt.Sprint(o.Values)]
		delete(rest, fmt.Sprint(o.Values))
		slack := 1e-12 * (1 + math.Abs(ln))
		switch got := o.Weight.LogAbs(); {
		case !possible:
			t.Fatalf("%s: %v, assignment %d, is impossible or listed twice", what, o.Values, k)
		case math.Abs(got-ln) > slack || got > last+slack:
			t.Fatalf("%s: ln weight %v of assignment %d is %v, after %v", what, got, k, ln, last)
		case whole && math.Abs(got-sorted[k]) > slack && (!f.Bounded || math.Abs(got-sorted[k]) > btn.Tolerance):
			t.Fatalf("%s: assignment %d has ln weight %v, not %v", what, k, got, sorted[k])
		default:
			last = got
		}
	}
	above := math.Inf(-1) // of those that are not listed
	for _, ln := range rest {
		above = max(above, ln)
	}
	tie := len(sorted) > 1 && sorted[0]-sorted[1] < 1e-12
	switch {
	case f.All && len(rest) > 0 || whole && !f.All && len(rest) == 0:
		t.Fatalf("%s: %d are not listed, all: %v", what, len(rest), f.All)
	case whole && len(list) != min(best, len(want)):
		t.Fatalf("%s: %d assignments of %d, %d are asked for", what, len(list), len(want), best)
	case f.Bounded && f.Bound < above-1e-12*(1+math.Abs(above)):
		t.Fatalf("%s: bound %v, and %v is not listed", what, f.Bound, above)
	case f.Bounded && whole && f.Relaxed:
		t.Fatalf("%s: not proved, bound %v, the last one listed has %v", what, f.Bound, last)
	case f.Unique && tie:
		t.Fatalf("%s: unique, and the second has the same weight", what)
	case whole && !f.Unique && len(list) > 1 && sorted[0]-sorted[1] > 2*btn.Tolerance:
		t.Fatalf("%s: not unique, and the second is %v below", what, sorted[0]-sorted[1])
	}
}

// lnWeights are the logarithms of the weights of all assignments that are possible, by their values.
func lnWeights(m *factorgraph.Model) map[string]float64 {
	tables := make([][]float64, len(m.Factors))
	for j, f := range m.Factors {
		oracle.Each(f.Table.Dims(), func(x []int) {
			w, _ := oracle.Entry(f.Table, x).Float64()
			tables[j] = append(tables[j], w)
		})
	}
	all := map[string]float64{}
	oracle.Each(m.Domains, func(x []int) {
		w := 1.0
		for j, f := range m.Factors {
			at := 0
			for _, v := range f.Scope {
				at = at*m.Domains[v] + x[v]
			}
			w *= tables[j][at]
		}
		if w > 0 {
			all[fmt.Sprint(x)] = math.Log(w)
		}
	})
	return all
}

// drawn draws a model of all kinds of factors; some with ties, some with clauses and parities that are chains of states in tables.
func drawn(t *testing.T, rng *rand.Rand, seed uint64) *factorgraph.Model {
	t.Helper()
	o := modeltest.SmallOptions{Zeros: []float64{0, 0.3}[seed%2], Variables: 2 + rng.IntN(5), Factors: 1 + rng.IntN(8), MaxStates: 250}
	long := seed%24 == 5
	if long {
		o.Variables, o.MaxDomain, o.MaxStates = 10, 2, 1<<10
	}
	m := modeltest.Small(rng, o)
	if seed%3 == 0 {
		for _, f := range m.Factors {
			if d, ok := f.Table.(*tensor.Dense); ok {
				for k, x := range d.Data {
					d.Data[k] = math.Ceil(2 * x)
				}
			}
		}
	}
	if long {
		odd, err := factorgraph.Parity(9, true)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(10)[:9], Table: odd},
			factorgraph.Factor{Scope: rng.Perm(10), Table: factorgraph.Clause(slices.Repeat([]bool{true}, 10)...)})
	}
	return m
}

// TestListsEqualToEnumeration: the best assignments, as enumeration finds them, by elimination in slices and without and by search; where
// that ends early, nothing above its bound is missing.
func TestListsEqualToEnumeration(t *testing.T) {
	for seed := range uint64(nightly.Rounds(500, 1200)) {
		rng := rand.New(rand.NewPCG(seed, 8))
		m := drawn(t, rng, seed)
		want := lnWeights(m)
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		best := 2 + rng.IntN([]int{2, 30, 300}[rng.IntN(3)])
		for _, work := range []int64{1 << 30, 1, 300} {
			exact, found := lists(t, net, best, work == 1, work)
			what := fmt.Sprintf("seed %d, best %d", seed, best)
			checkList(t, what+" by elimination", exact, best, want, true)
			checkList(t, fmt.Sprintf("%s by search of %d", what, work), found, best, want, work == 1<<30)
		}
	}
}

// TestKnownFits: what is known of other variables or values is refused before a value of it is an answer.
func TestKnownFits(t *testing.T) {
	net := &btn.Network{Variables: []btn.Variable{{Domain: 2}, {Domain: 3}}}
	for _, c := range []struct {
		values, other []int
		fits          bool
	}{
		{[]int{1, 2}, nil, true}, {nil, nil, true}, {[]int{1, 2}, []int{0, 0}, true},
		{[]int{1, 3}, nil, false}, {[]int{-1, 0}, nil, false}, {[]int{1}, nil, false}, {[]int{1, 2, 0}, nil, false},
		{[]int{1, 2}, []int{2, 0}, false},
	} {
		known := &search.Known{Found: &btn.Found{Values: c.values}}
		if c.other != nil {
			known.Found.Others = []btn.Other{{Values: c.other}}
		}
		if err := known.Part().Fits(net); (err == nil) != c.fits {
			t.Errorf("%v, %v: %v", c.values, c.other, err)
		}
	}
	if (&search.Known{}).Part().Fits(net) == nil {
		t.Error("nothing known fits")
	}
}
