package einsum_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// programOf compiles net for min-fill or a random order.
func programOf(t *testing.T, rng *rand.Rand, net *btn.Network) (*einsum.Program, bool) {
	t.Helper()
	shape, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	order := orders.MinFill(shape)
	if rng.IntN(2) == 0 {
		order = shuffled(rng)(shape)
	}
	return einsum.Compile(net, order, 1e6)
}

// contradiction is evidence that excludes every value of a variable.
func contradiction(m *factorgraph.Model) factorgraph.Evidence {
	return factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 0}},
		Soft: []factorgraph.Likelihood{{Var: 0, Weights: make([]float64, m.Domains[0])}},
	}
}

// TestProgramsAgreeWithEnumeration: Z and all marginals under random, empty and impossible evidence, one program for all, on
// all kinds of factors, zeros, signs, both choices of cores and maps.
func TestProgramsAgreeWithEnumeration(t *testing.T) {
	rounds, compiled, zeros, above := nightly.Rounds(50, 200), 0, 0, 0
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 31))
		m := generate.Small(rng, generate.SmallOptions{Variables: 2 + rng.IntN(6), Factors: 1 + rng.IntN(8),
			MinDomain: 1 + rng.IntN(2), MaxDomain: 4,
			MaxArity: 4, MaxStates: 1 << 9, Constant: seed%2 == 0, Negative: seed%5 == 1, Zeros: []float64{0, 0.15, 0.4}[seed%3]})
		maps := []btn.MapKind{btn.MapIdentity, btn.MapIdentity, btn.MapOrthogonal}[rng.IntN(3)]
		net, err := reparam.Build(context.Background(), m, reparam.Options{
			Maps:  maps,
			Cores: []btn.CoreChoice{btn.CoresAreFactors, btn.CoresAreVariables}[rng.IntN(2)],
		})
		if err != nil {
			t.Fatal(err)
		}
		p, ok := programOf(t, rng, net)
		if !ok {
			if e, err := lower.Build(context.Background(), net); err != nil || !e.Scale.IsZero() && !e.Signed() {
				t.Fatalf("seed %d: not compiled, %v", seed, err)
			}
			continue
		}
		compiled++
		for k := range 6 {
			var ev factorgraph.Evidence
			switch {
			case k == 5:
				ev = contradiction(m)
			case k > 0:
				ev = generate.Evidence(rng, m)
			}
			under, err := net.Condition(ev)
			if err != nil {
				t.Fatal(err)
			}
			what := fmt.Sprintf("seed %d, query %d", seed, k)
			z, ok := p.Z(under)
			if !ok {
				t.Fatalf("%s: no value", what)
			}
			want, terms := oracle.Z(m, ev), absolute(m, ev)
			agree(t, what, z, want, terms)
			if want.Sign() == 0 && maps == btn.MapIdentity && seed%5 != 1 && !z.IsZero() {
				t.Errorf("%s: Z = %v, it is 0", what, z)
			}
			if p.Above(under) {
				above++
				if want.Sign() <= 0 {
					t.Errorf("%s: above 0, enumeration %v", what, want)
				}
			}
			if z.IsZero() {
				zeros++
			}
			checkMarginals(t, what, p, under, m, ev, z, terms)
		}
	}
	if compiled < rounds/2 || zeros < rounds/4 || above < rounds/4 {
		t.Errorf("%d models compiled, %d values of 0, %d seen to be above: too few to say anything", compiled, zeros, above)
	}
}

// checkMarginals holds M_v(x) against Z under evidence and v = x.
func checkMarginals(t *testing.T, what string, p *einsum.Program, under *btn.Network, m *factorgraph.Model,
	ev factorgraph.Evidence, z scaled.Number, terms *big.Float) {
	t.Helper()
	total := 0
	for _, d := range m.Domains {
		total += d
	}
	into := make([]scaled.Number, total)
	again, ok := p.Marginals(under, into)
	if z.IsZero() {
		if ok {
			t.Errorf("%s: marginals of 0", what)
		}
		return
	}
	if !ok || again != z {
		t.Fatalf("%s: with marginals %v, %t, without %v", what, again, ok, z)
	}
	at := 0
	for v, d := range m.Domains {
		for x := range d {
			here := factorgraph.Observation{Var: v, Value: x}
			want := new(big.Float)
			if !slices.ContainsFunc(ev.Hard, func(o factorgraph.Observation) bool { return o.Var == v && o != here }) {
				want = oracle.Z(m, factorgraph.Evidence{Hard: append(slices.Clone(ev.Hard), here), Soft: ev.Soft})
			}
			agree(t, fmt.Sprintf("%s, variable %d, value %d", what, v, x), into[at], want, terms)
			at++
		}
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

// TestProgramsRefuseWhatTheyWouldLose: two phases of a chain whose weights differ by more than float64 holds, the lighter one
// being all that the evidence leaves.
func TestProgramsRefuseWhatTheyWouldLose(t *testing.T) {
	m := chain(60, 2, func(from, to int) float64 {
		switch {
		case from != to:
			return 0
		case to == 0:
			return 1
		}
		return 0x1p-40
	})
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := programOf(t, rand.New(rand.NewPCG(1, 1)), net)
	if !ok {
		t.Fatal("not compiled")
	}
	under, err := net.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0, Value: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if z, ok := p.Z(under); ok {
		t.Errorf("Z = %v, it spans 2^4720", z)
	}
	mild := chain(400, 2, func(from, to int) float64 { return 0x1p-30 * float64(1+from+2*to) })
	if net, err = reparam.Build(context.Background(), mild, reparam.Options{}); err != nil {
		t.Fatal(err)
	}
	if p, ok = programOf(t, rand.New(rand.NewPCG(1, 1)), net); !ok {
		t.Fatal("not compiled")
	}
	if z, ok := p.Z(net); !ok || !(z.LogAbs() < -10000) {
		t.Errorf("Z = %v, %t: carried exponents reach anywhere", z, ok)
	}
}

// TestProgramsSpareMemory: a run allocates nothing.
func TestProgramsSpareMemory(t *testing.T) {
	m := chain(30, 3, func(from, to int) float64 { return float64(1 + from + 2*to) })
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, ok := programOf(t, rand.New(rand.NewPCG(2, 1)), net)
	if !ok {
		t.Fatal("not compiled")
	}
	into := make([]scaled.Number, 180)
	run := func() {
		if _, ok := p.Z(net); !ok {
			t.Fatal("no value")
		}
		if _, ok := p.Marginals(net, into); !ok {
			t.Fatal("no marginals")
		}
	}
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%v allocations a run", n)
	}
}

// TestProgramsGiveTheSameBits: alone, after other evidence, from several goroutines, freshly compiled or
// remembered.
func TestProgramsGiveTheSameBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 31))
	m := generate.Small(rng, generate.SmallOptions{Variables: 9, Factors: 12, MaxArity: 3})
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	order := orders.MinFill(shape)
	var under []*btn.Network
	var want []scaled.Number
	for range 40 {
		n, err := net.Condition(generate.Evidence(rng, m))
		if err != nil {
			t.Fatal(err)
		}
		var none *einsum.Programs
		p, ok := none.Of(net, order)
		if !ok {
			t.Fatal("not compiled")
		}
		z, _ := p.Z(n)
		under, want = append(under, n), append(want, z)
	}
	var programs einsum.Programs
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range under {
				i = (i*7 + g) % len(under)
				p, ok := programs.Of(net, slices.Clone(order))
				if !ok {
					t.Error("not compiled")
					return
				}
				if z, _ := p.Z(under[i]); z != want[i] {
					t.Errorf("query %d: %v, alone %v", i, z, want[i])
				}
			}
		})
	}
	group.Wait()
}

func TestProgramsAreForSmallNetworks(t *testing.T) {
	m := chain(30, 3, func(from, to int) float64 { return float64(1 + from + 2*to) })
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	order := orders.MinFill(shape)
	p, ok := einsum.Compile(net, order, 1e6)
	if !ok {
		t.Fatal("not compiled")
	}
	forth, both := p.Plan(false), p.Plan(true)
	if !(forth.Flops > 0 && both.Flops > forth.Flops && both.Bytes > forth.Bytes && forth.Width == 1) {
		t.Errorf("plans %+v and %+v", forth, both)
	}
	if _, ok := einsum.Compile(net, order, forth.Flops-1); ok {
		t.Error("compiled, although it takes more flops than that")
	}
	if _, ok := einsum.Compile(net, order[1:], 1e6); ok {
		t.Error("compiled for an order that leaves out an index")
	}
	if math.IsNaN(forth.Log2Table) {
		t.Error("NaN")
	}
}
