package junction_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// plan is a contraction tree for a network: that of its min-fill order, or of a random one.
func plan(t testing.TB, rng *rand.Rand, net *btn.Network) (contractionorder.Tree, bool) {
	t.Helper()
	h, ok := junction.Shape(net)
	if !ok {
		return contractionorder.Tree{}, false
	}
	order := orders.MinFill(h)
	if rng.IntN(2) == 0 {
		order = contractionorder.RestrictOrder(rng.Perm(len(h.Dims)), h)
	}
	tree, err := contractionorder.FromOrder(h, order)
	if err != nil {
		t.Fatal(err)
	}
	return tree, true
}

// build makes the network of a model.
func build(t testing.TB, m *factorgraph.Model, o reparam.Options) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// values is the number of values of all variables.
func values(m *factorgraph.Model) (n int) {
	for _, d := range m.Domains {
		n += d
	}
	return n
}

// run answers queries.
func run(t testing.TB, tree *junction.Tree, queries ...junction.Query) []junction.Answer {
	t.Helper()
	answers, err := tree.Run(t.Context(), queries, junction.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return answers
}

// contradiction is evidence that excludes every value of a variable.
func contradiction(m *factorgraph.Model) factorgraph.Evidence {
	return factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 0}},
		Soft: []factorgraph.Likelihood{{Var: 0, Weights: make([]float64, m.Domains[0])}},
	}
}

// TestTreesAgreeWithEnumeration: Z and all marginals under random, empty and impossible evidence, one tree for all, queries alone and
// together, on all kinds of factors, zeros, both choices of cores and maps.
func TestTreesAgreeWithEnumeration(t *testing.T) {
	rounds, compiled, zeros := nightly.Rounds(50, 200), 0, 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 31))
		m := modeltest.Small(rng, modeltest.SmallOptions{Variables: 2 + rng.IntN(6), Factors: 1 + rng.IntN(8),
			MinDomain: 1 + rng.IntN(2), MaxDomain: 4,
			MaxArity: 4, MaxStates: 1 << 9, Constant: seed%2 == 0, Zeros: []float64{0, 0.15, 0.4}[seed%3]})
		net := build(t, m, reparam.Options{
			Maps:  []query.MapKind{query.MapIdentity, query.MapIdentity, query.MapOrthogonal}[rng.IntN(3)],
			Cores: []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)],
		})
		over, ok := plan(t, rng, net)
		if !ok {
			if e, err := lower.Build(t.Context(), net); err != nil || !e.Scale.IsZero() && !e.Signed() {
				t.Fatalf("seed %d: no shape, %v", seed, err)
			}
			continue
		}
		tree, ok := junction.Compile(net, over)
		if !ok {
			t.Fatalf("seed %d: no tree", seed)
		}
		compiled++
		var evidence []factorgraph.Evidence
		var queries []junction.Query
		for k := range 11 {
			var ev factorgraph.Evidence
			switch {
			case k == 5:
				ev = contradiction(m)
			case k > 0:
				ev = modeltest.Evidence(rng, m)
			}
			under, err := net.Condition(ev)
			if err != nil {
				t.Fatal(err)
			}
			evidence = append(evidence, ev)
			queries = append(queries, junction.Query{Net: under})
		}
		answers := run(t, tree, queries...)
		for k := range queries {
			queries[k].Marginals = make([]scaled.Number, values(m))
		}
		again := run(t, tree, queries...)
		for k, ev := range evidence {
			what := fmt.Sprintf("seed %d, query %d", seed, k)
			z := answers[k].Z
			if !answers[k].OK || again[k].Z != z || run(t, tree, junction.Query{Net: queries[k].Net})[0].Z != z {
				t.Fatalf("%s: together %+v, with marginals %+v, and another number alone", what, answers[k], again[k])
			}
			want := oracle.Z(m, ev)
			agree(t, what, z, want, want)
			if again[k].OK == z.IsZero() {
				t.Errorf("%s: Z = %v, marginals %t", what, z, again[k].OK)
			}
			if z.IsZero() {
				zeros++
				continue
			}
			checkMarginals(t, what, queries[k].Marginals, m, ev, want)
			alone := junction.Query{Net: queries[k].Net, Marginals: make([]scaled.Number, values(m))}
			if run(t, tree, alone); !slices.Equal(alone.Marginals, queries[k].Marginals) {
				t.Errorf("%s: other marginals alone", what)
			}
			target := rng.IntN(len(m.Domains))
			alone.Targets = []int{target}
			clear(alone.Marginals)
			offset := 0
			for _, d := range m.Domains[:target] {
				offset += d
			}
			run(t, tree, alone)
			if d := m.Domains[target]; !slices.Equal(alone.Marginals[offset:offset+d], queries[k].Marginals[offset:offset+d]) {
				t.Errorf("%s: variable %d has other marginals as the only target", what, target)
			}
		}
	}
	if compiled < rounds/2 || zeros < rounds/4 {
		t.Errorf("%d models compiled, %d values of 0: too few to say anything", compiled, zeros)
	}
}

// checkMarginals holds M_v(x) against Z under evidence and v = x.
func checkMarginals(
	t *testing.T, what string, got []scaled.Number, m *factorgraph.Model, ev factorgraph.Evidence, z *big.Float,
) {
	t.Helper()
	at := 0
	for v, d := range m.Domains {
		for x := range d {
			here := factorgraph.Observation{Var: v, Value: x}
			want := new(big.Float)
			if !slices.ContainsFunc(ev.Hard, func(o factorgraph.Observation) bool { return o.Var == v && o != here }) {
				want = oracle.Z(m, factorgraph.Evidence{Hard: append(slices.Clone(ev.Hard), here), Soft: ev.Soft})
			}
			agree(t, fmt.Sprintf("%s, variable %d, value %d", what, v, x), got[at], want, z)
			at++
		}
	}
}

// agree compares a number with enumeration, relative to a scale.
func agree(t *testing.T, what string, z scaled.Number, want, scale *big.Float) {
	t.Helper()
	got := new(big.Float).SetMantExp(big.NewFloat(z.Mant), int(z.Exp))
	diff := new(big.Float).Sub(got, want)
	if scale.Sign() != 0 {
		diff.Quo(diff, scale)
	}
	if d, _ := diff.Abs(diff).Float64(); d > 1e-12 || !z.IsFinite() {
		t.Errorf("%s: %v, enumeration %v, error %.3g", what, got, want, d)
	}
}

// chain is a hidden Markov model: n states of d values, each with an observation.
func chain(n, d int, entry func(from, to int) float64) *factorgraph.Model {
	m := &factorgraph.Model{}
	for i := range 2 * n {
		m.Domains = append(m.Domains, d)
		if i < 2 {
			continue
		}
		scope := []int{i - 2, i}
		if i%2 == 1 {
			scope[0] = i - 1
		}
		data := make([]float64, d*d)
		for k := range data {
			data[k] = entry(k/d, k%d)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: []int{d, d}, Data: data}})
	}
	return m
}

// TestTreesRefuseWhatTheyWouldLose: two phases of a chain whose weights differ by more than float64 holds, the lighter one
// being all that the evidence leaves. Beside it a query of the other phase keeps its numbers.
func TestTreesRefuseWhatTheyWouldLose(t *testing.T) {
	m := chain(60, 2, func(from, to int) float64 {
		switch {
		case from != to:
			return 0
		case to == 0:
			return 1
		}
		return 0x1p-40
	})
	net := build(t, m, reparam.Options{})
	over, _ := plan(t, rand.New(rand.NewPCG(1, 1)), net)
	tree, ok := junction.Compile(net, over)
	if !ok {
		t.Skip("the tree loses numbers without evidence already")
	}
	var queries []junction.Query
	for _, x := range []int{1, 0, 0, 0, 0, 0, 0, 0} {
		under, err := net.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0, Value: x}}})
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, junction.Query{Net: under})
	}
	answers := run(t, tree, queries...)
	if want := -40 * 118 * math.Ln2; answers[0].OK && math.Abs(answers[0].Z.LogAbs()-want) > 1e-9 {
		t.Errorf("ln Z = %v, want %v or none", answers[0].Z.LogAbs(), want)
	}
	if a := answers[1]; !a.OK || a.Z.LogAbs() != 0 {
		t.Errorf("ln Z of the other phase is %v, %t", a.Z.LogAbs(), a.OK)
	}
}

// TestExponentsReachAnywhere: a chain whose observations are all rare, so that products leave float64 many times, beside its recursion in
// wide numbers.
func TestExponentsReachAnywhere(t *testing.T) {
	const states = 400
	entry := func(from, to int) float64 {
		if to == 1 {
			return 0x1p-20 * float64(3+from)
		}
		return float64(1 + from)
	}
	net := build(t, chain(states, 2, entry), reparam.Options{})
	over, _ := plan(t, rand.New(rand.NewPCG(1, 1)), net)
	tree, ok := junction.Compile(net, over)
	if !ok {
		t.Fatal("not compiled")
	}
	before := [2]*big.Float{big.NewFloat(2), big.NewFloat(2)} // by state, with the free observation of the first
	rare := map[int]int{}
	for k := 1; k < states; k++ {
		rare[2*k+1] = 1
		var next [2]*big.Float
		for y := range next {
			next[y] = new(big.Float)
			for x := range before {
				next[y].Add(next[y], new(big.Float).Mul(before[x], big.NewFloat(entry(x, y))))
			}
			next[y].Mul(next[y], big.NewFloat(entry(y, 1)))
		}
		before = next
	}
	observed, err := net.Condition(factorgraph.Observe(rare))
	if err != nil {
		t.Fatal(err)
	}
	want := new(big.Float).Add(before[0], before[1])
	a := run(t, tree, junction.Query{Net: observed})[0]
	if agree(t, "all observed", a.Z, want, want); !a.OK || !(a.Z.LogAbs() < -5000) {
		t.Errorf("ln Z = %v, %t", a.Z.LogAbs(), a.OK)
	}
}

// TestEvidenceCostsWhatItChanges: no evidence costs nothing, and one observation less than all.
func TestEvidenceCostsWhatItChanges(t *testing.T) {
	m := chain(100, 3, func(from, to int) float64 { return float64(1 + from + 2*to) })
	net := build(t, m, reparam.Options{})
	h, _ := junction.Shape(net)
	over, _ := plan(t, rand.New(rand.NewPCG(1, 1)), net)
	tree, ok := junction.Compile(net, over)
	if !ok {
		t.Fatal("not compiled")
	}
	forth, both := junction.Price(h, over)
	if !(forth.Flops > 0 && both.Flops > forth.Flops && both.Bytes > forth.Bytes && forth.Width == 2) {
		t.Errorf("prices %+v and %+v", forth, both)
	}
	prices, ok := junction.NewPrices(net, over)
	if !ok {
		t.Fatal("no prices")
	}
	some := map[int]int{}
	for v := range m.Domains {
		some[v] = 1
	}
	all, err := net.Condition(factorgraph.Observe(some))
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for v := range m.Domains {
		one, err := net.Condition(factorgraph.Observe(map[int]int{v: 0}))
		if err != nil {
			t.Fatal(err)
		}
		target := (7 * v) % len(m.Domains)
		q := junction.Query{Net: one, Marginals: make([]scaled.Number, values(m)), Targets: []int{target}}
		with, without := run(t, tree, q)[0].Flops, run(t, tree, junction.Query{Net: one})[0].Flops
		if back := prices.FlopsWithMarginals([]int{target}) - prices.FlopsWithMarginals(nil); math.Abs(with-without-back) > 1e-9*back {
			t.Errorf("variable %d observed: %v and %v flops with a target, whose price is %v", v, without, with, back)
		}
		mean += without / float64(len(m.Domains))
	}
	answers := run(t, tree, junction.Query{Net: net}, junction.Query{Net: all})
	if answers[0].Flops != 0 || math.Abs(answers[1].Flops/forth.Flops-1) > 0.01 || !(mean < forth.Flops/3) {
		t.Errorf("%v flops without evidence, %v with one observation, %v with all; the price is %v",
			answers[0].Flops, mean, answers[1].Flops, forth.Flops)
	}
}

// TestTreesGiveTheSameBits: alone, after other evidence, from several goroutines, freshly compiled or remembered.
func TestTreesGiveTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 31))
	m := modeltest.Small(rng, modeltest.SmallOptions{Variables: 9, Factors: 12, MaxArity: 3})
	net := build(t, m, reparam.Options{})
	over, ok := plan(t, rng, net)
	if !ok {
		t.Fatal("no shape")
	}
	var under []*btn.Network
	var want []scaled.Number
	for range 40 {
		n, err := net.Condition(modeltest.Evidence(rng, m))
		if err != nil {
			t.Fatal(err)
		}
		var none *junction.Trees
		tree, ok := none.Compiled(net, over)
		if !ok {
			t.Fatal("not compiled")
		}
		under, want = append(under, n), append(want, run(t, tree, junction.Query{Net: n})[0].Z)
	}
	var trees junction.Trees
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range under {
				i = (i*7 + g) % len(under)
				tree, ok := trees.Compiled(net, contractionorder.Tree{Leaves: over.Leaves, Merges: slices.Clone(over.Merges)})
				if !ok {
					t.Error("not compiled")
					return
				}
				answers, err := tree.Run(context.Background(), []junction.Query{{Net: under[i]}}, junction.Options{})
				if err != nil || answers[0].Z != want[i] {
					t.Errorf("query %d: %v, alone %v, %v", i, answers, want[i], err)
				}
			}
		})
	}
	group.Wait()
}

// TestTreesOverOtherTables are none.
func TestTreesOverOtherTables(t *testing.T) {
	net := build(t, chain(5, 2, func(from, to int) float64 { return float64(1 + from + 2*to) }), reparam.Options{})
	over, _ := plan(t, rand.New(rand.NewPCG(1, 1)), net)
	for name, other := range map[string]contractionorder.Tree{
		"fewer tables":   {Leaves: over.Leaves - 1, Merges: over.Merges[:len(over.Merges)-1]},
		"a table twice":  {Leaves: over.Leaves, Merges: append(slices.Clone(over.Merges[:len(over.Merges)-1]), [2]int{0, 0})},
		"no merges":      {Leaves: over.Leaves},
		"no table there": {Leaves: over.Leaves, Merges: append([][2]int{{0, 1 << 20}}, over.Merges[1:]...)},
	} {
		if _, ok := junction.Compile(net, other); ok {
			t.Errorf("%s: compiled", name)
		}
	}
}

// TestARunEnds with its context, also within a query.
func TestARunEnds(t *testing.T) {
	net := build(t, chain(40, 64, func(from, to int) float64 { return float64(1 + from + 2*to) }), reparam.Options{})
	over, _ := plan(t, rand.New(rand.NewPCG(1, 1)), net)
	tree, ok := junction.Compile(net, over)
	if !ok {
		t.Fatal("not compiled")
	}
	under, err := net.Condition(factorgraph.Observe(map[int]int{0: 1, 79: 2}))
	if err != nil {
		t.Fatal(err)
	}
	q := junction.Query{Net: under, Marginals: make([]scaled.Number, 80*64)}
	ctx := &endsAtLook{Context: t.Context(), looks: 4}
	if _, err := tree.Run(ctx, []junction.Query{q}, junction.Options{Threads: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	again := run(t, tree, q)[0]
	if fresh, _ := junction.Compile(net, over); !again.OK || again.Z != run(t, fresh, q)[0].Z {
		t.Errorf("after a run that ended: %+v", again)
	}
}

// endsAtLook is a context that ends when it is looked at so many times.
type endsAtLook struct {
	context.Context
	looks int
}

// Err implements context.Context.
func (c *endsAtLook) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}
