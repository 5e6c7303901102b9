package problem_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// ring is the network of a ring of four variables.
func ring(t *testing.T) *btn.Network {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 1))
	m := &factorgraph.Model{Domains: []int{2, 3, 2, 3}}
	for v, d := range m.Domains {
		w := (v + 1) % len(m.Domains)
		table := modeltest.Tensor(rng, modeltest.Dense, []int{d, m.Domains[w]}, modeltest.SmallOptions{})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, w}, Table: table})
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// must fails for an error.
func must[T any](t *testing.T, made T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// form makes one of the forms of a problem.
type form struct {
	name string
	of   func(*testing.T, *problem.Problem) any
}

// forms are all of them, each different from the others.
func forms() []form {
	exact := func(marginals bool, set ...int) func(*testing.T, *problem.Problem) any {
		return func(t *testing.T, p *problem.Problem) any {
			made, err := exact.PreparedOf(t.Context(), p, marginals, set)
			return must(t, made, err)
		}
	}
	truncated := func(marginals bool) func(*testing.T, *problem.Problem) any {
		return func(t *testing.T, p *problem.Problem) any {
			made, err := truncated.Simplify(t.Context(), p, marginals)
			return must(t, made, err)
		}
	}
	return []form{
		{"exact", exact(false)},
		{"exact with marginals", exact(true)},
		{"joint marginal", exact(false, 0, 2)},
		{"joint marginal with marginals", exact(true, 0, 2)},
		{"truncated", truncated(false)},
		{"truncated with marginals", truncated(true)},
		{"ground", func(t *testing.T, p *problem.Problem) any {
			made, err := regions.ProblemGround(t.Context(), p, 0)
			return must(t, made, err)
		}},
	}
}

// TestFormsAreMadeOnce: every form of a problem is made when it is first asked for,
// and is the same one from then on.
func TestFormsAreMadeOnce(t *testing.T) {
	p := problem.New(ring(t), problem.Options{})
	first := map[any]string{}
	for _, f := range forms() {
		made := f.of(t, p)
		if other, known := first[made]; known {
			t.Errorf("%s is the form of %s", f.name, other)
		}
		first[made] = f.name
	}
	for _, f := range forms() {
		if name := first[f.of(t, p)]; name != f.name {
			t.Errorf("%s was made again", f.name)
		}
	}
}

// TestJointMarginalsHaveTheirOwnForm:
// two queries under one evidence share their problem, whatever sets they ask for.
func TestJointMarginalsHaveTheirOwnForm(t *testing.T) {
	p := problem.New(ring(t), problem.Options{})
	of := func(set ...int) any {
		made, err := exact.PreparedOf(t.Context(), p, false, set)
		return must(t, made, err)
	}
	first, without := of(0, 2), of()
	if of(0, 2) != first {
		t.Error("the form of a set was made again")
	}
	for _, set := range [][]int{{0, 1}, {2, 0}, {1, 3}} {
		if of(set...) == first {
			t.Errorf("set %v has the form of set [0 2]", set)
		}
	}
	if of() != without {
		t.Error("the form without a set was made again")
	}
	if of(0, 2) == first {
		t.Error("the forms of two sets are kept")
	}
}

// TestGroundKeepsItsRegions: the regions that were planned last are kept, until others are asked for.
func TestGroundKeepsItsRegions(t *testing.T) {
	p := problem.New(ring(t), problem.Options{})
	g, err := regions.ProblemGround(t.Context(), p, 0)
	must(t, g, err)
	families := func(size int) *region.Family {
		f, err := g.Family(t.Context(), region.Options{Kind: region.Balls, Size: size})
		return must(t, f, err)
	}
	first := families(2)
	if families(2) != first {
		t.Error("the same regions are planned again")
	}
	if families(3) == first {
		t.Error("another size has the same regions")
	}
}

// TestSharedKeepsTheLastProblem: the same query is the same problem;
// another evidence, network, list of messages or bound is another one, with forms of its own.
func TestSharedKeepsTheLastProblem(t *testing.T) {
	base, s := ring(t), &problem.Shared{}
	evidence := factorgraph.Observe(map[int]int{0: 1})
	soft := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 1,
		Weights: []float64{1, 2, 3}}}}
	messages := []float64{1, 2}
	of := func(
		net *btn.Network, ev factorgraph.Evidence, messages []float64, o problem.Options,
	) *problem.Problem {
		made, err := s.Problem(net, ev, messages, o)
		return must(t, made, err)
	}
	first := of(base, evidence, messages, problem.Options{})
	for _, f := range forms() {
		if f.name == "ground" {
			continue // these messages are none
		}
		made := f.of(t, first)
		again := of(base, factorgraph.Observe(map[int]int{0: 1}), messages,
			problem.Options{Memory: query.DefaultMemory})
		if again != first || f.of(t, again) != made {
			t.Errorf("%s was made again for the same query", f.name)
		}
	}
	made := forms()[0].of(t, first)
	for _, c := range []struct {
		name  string
		other func() *problem.Problem
	}{
		{"value", func() *problem.Problem {
			return of(base, factorgraph.Observe(map[int]int{0: 0}), messages, problem.Options{})
		}},
		{"variable", func() *problem.Problem {
			return of(base, factorgraph.Observe(map[int]int{2: 1}), messages, problem.Options{})
		}},
		{"no evidence", func() *problem.Problem {
			return of(base, factorgraph.Evidence{}, messages, problem.Options{})
		}},
		{"likelihood", func() *problem.Problem {
			return of(base, soft, messages, problem.Options{})
		}},
		{"network", func() *problem.Problem {
			return of(ring(t), evidence, messages, problem.Options{})
		}},
		{"messages", func() *problem.Problem {
			return of(base, evidence, slices.Clone(messages), problem.Options{})
		}},
		{"no messages", func() *problem.Problem {
			return of(base, evidence, nil, problem.Options{})
		}},
		{"memory", func() *problem.Problem {
			return of(base, evidence, messages, problem.Options{Memory: 1 << 20})
		}},
		{"threads", func() *problem.Problem {
			return of(base, evidence, messages, problem.Options{Threads: 1})
		}},
	} {
		before := of(base, evidence, messages, problem.Options{})
		if other := c.other(); other == before || forms()[0].of(t, other) == made {
			t.Errorf("%s: another query has the same problem", c.name)
		}
		if of(base, evidence, messages, problem.Options{}) == before {
			t.Errorf("%s: two problems are kept", c.name)
		}
	}
	if _, err := s.Problem(base, factorgraph.Observe(map[int]int{9: 0}), nil,
		problem.Options{}); err == nil {
		t.Error("evidence on a variable that does not exist was accepted")
	}
}

// TestUnmaskedIsSharedByQueries:
// the network without evidence is simplified once for all queries to it.
func TestUnmaskedIsSharedByQueries(t *testing.T) {
	base, s := ring(t), &problem.Shared{}
	of := func(s *problem.Shared, net *btn.Network, ev map[int]int) any {
		p, err := s.Problem(net, factorgraph.Observe(ev), nil, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		made, err := truncated.SimplifyBase(t.Context(), p)
		return must(t, made, err)
	}
	first := of(s, base, nil)
	if of(s, base, map[int]int{0: 1}) != first || of(s, base, map[int]int{3: 2}) != first {
		t.Error("it was made again for other evidence")
	}
	if of(s, ring(t), nil) == first {
		t.Error("another network has the same")
	}
	if of(s, base, nil) == first {
		t.Error("two networks are kept")
	}
	if of(nil, base, nil) == of(nil, base, nil) {
		t.Error("something was kept nowhere")
	}
}

// TestDropForgets: everything.
func TestDropForgets(t *testing.T) {
	base, s := ring(t), &problem.Shared{}
	of := func() (*problem.Problem, any, any) {
		p, err := s.Problem(base, factorgraph.Evidence{}, nil, problem.Options{})
		if err != nil {
			t.Fatal(err)
		}
		unmasked, err := truncated.SimplifyBase(t.Context(), p)
		return p, forms()[0].of(t, p), must(t, unmasked, err)
	}
	p, exact, unmasked := of()
	if again, exactAgain, unmaskedAgain := of(); again != p || exactAgain != exact ||
		unmaskedAgain != unmasked {
		t.Fatal("nothing is kept")
	}
	s.Drop()
	q, exactAgain, unmaskedAgain := of()
	if q == p || exactAgain == exact || unmaskedAgain == unmasked {
		t.Errorf("kept: the problem %v, its exact form %v, the network without evidence %v",
			q == p, exactAgain == exact,
			unmaskedAgain == unmasked)
	}
	(*problem.Shared)(nil).Drop() // nothing is kept there to begin with
}

// TestGivenAddsASlice: digits of the values, the last variable fastest,
// beside the evidence, which stays what it is.
func TestGivenAddsASlice(t *testing.T) {
	p := problem.New(ring(t), problem.Options{})
	evidence := factorgraph.Evidence{Hard: make([]factorgraph.Observation, 1, 8)}
	evidence.Hard[0] = factorgraph.Observation{Var: 0, Value: 1}
	for at := range int64(6) {
		got, err := p.EvidenceOfSlice(btn.Slice{Variables: []int{2, 1}, At: at}, evidence)
		want := factorgraph.Observe(map[int]int{0: 1, 1: int(at % 3), 2: int(at / 3)})
		if err != nil || !slices.Equal(got.Hard, want.Hard) {
			t.Errorf("slice %d: %v, %v; want %v", at, got.Hard, err, want.Hard)
		}
	}
	if got, err := p.EvidenceOfSlice(btn.Slice{}, evidence); err != nil ||
		!slices.Equal(got.Hard, evidence.Hard) {
		t.Errorf("no slice: %v, %v", got.Hard, err)
	}
	if _, err := p.EvidenceOfSlice(btn.Slice{Variables: []int{0}, At: 0}, evidence); !errors.Is(err,
		factorgraph.ErrContradictory) {
		t.Errorf("a slice that the evidence excludes: %v", err)
	}
	if spare := evidence.Hard[:2]; spare[1] != (factorgraph.Observation{}) {
		t.Error("the evidence's memory was written to")
	}
}
