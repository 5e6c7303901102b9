package infer_test

// Models whose numbers span more than a float64 holds, against enumeration without rounding.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// span draws numbers of at least 0 log-uniformly.
type span struct {
	*rand.Rand
	decades float64 // from 10^-decades to 10^decades
	exp     int64   // numbers with exponents: those from −exp to exp
	zeros   float64 // probability of a 0
}

func (s span) number() float64 {
	if s.Float64() < s.zeros {
		return 0
	}
	return math.Pow(10, s.decades*(2*s.Float64()-1))
}

func (s span) numbers(n int) []float64 {
	out := make([]float64, n)
	for k := range out {
		out[k] = s.number()
	}
	return out
}

// scaled draws numbers with exponents.
func (s span) scaled(n int) scaled.Vector {
	v := scaled.Vector{Mant: make([]float64, n), Exp: make([]int64, n)}
	for k := range n {
		if s.Float64() >= s.zeros {
			v.Mant[k], v.Exp[k] = 1+s.Float64(), s.Int64N(2*s.exp+1)-s.exp
		}
	}
	return v
}

// tensor draws a factor of one of the forms.
func (s span) tensor(dims []int) tensor.Tensor {
	size := func(shape []int) int {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return n
	}
	switch s.IntN(7) {
	case 0:
		rank := 1 + s.IntN(3)
		t := &tensor.CP{Shape: dims, Weights: s.numbers(rank), Vectors: make([][]float64, len(dims))}
		for pos, d := range dims {
			if d != rank || s.IntN(3) > 0 {
				t.Vectors[pos] = s.numbers(rank * d)
			}
		}
		return t
	case 1:
		l := modeltest.Levels(s.Rand, dims)
		return &tensor.Symmetric{Shape: dims, Levels: l, Values: s.scaled(size(l.Shape()))}
	case 2:
		t := &tensor.SymmetryCP{Shape: dims, Levels: modeltest.Levels(s.Rand, dims)}
		for range 1 + s.IntN(3) {
			term := tensor.SymmetryRankOne{Alpha: s.number(), S: s.scaled(size(t.Levels.Shape()))}
			if s.IntN(3) > 0 {
				term.R = make([][]float64, len(dims))
				for pos, d := range dims {
					if s.IntN(3) > 0 {
						term.R[pos] = s.numbers(d)
					}
				}
			}
			t.Terms = append(t.Terms, term)
		}
		return t
	}
	return &tensor.Dense{Shape: dims, Data: s.numbers(size(dims))}
}

// spread draws a model of 2 to 12 variables with factors that overlap, and evidence.
func spread(seed uint64) (*factorgraph.Model, factorgraph.Evidence) {
	rng := rand.New(rand.NewPCG(seed, 71))
	s := span{rng, []float64{300, 300, 150, 30, 300}[rng.IntN(5)], []int64{3000, 600, 40}[rng.IntN(3)], []float64{0, 0.1, 0.3}[rng.IntN(3)]}
	m := &factorgraph.Model{}
	states := 1
	for range 2 + rng.IntN(11) {
		if d := 2 + rng.IntN(3); states*d <= 1<<9 {
			states *= d
			m.Domains = append(m.Domains, d)
		}
	}
	n := len(m.Domains)
	for range 1 + rng.IntN(2*n) {
		scope := rng.Perm(n)[:1+rng.IntN(min(3, n))]
		dims := make([]int, len(scope))
		for pos, v := range scope {
			dims[pos] = m.Domains[v]
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s.tensor(dims)})
	}
	var ev factorgraph.Evidence
	if rng.IntN(2) == 0 {
		return m, ev
	}
	for v, d := range m.Domains {
		switch rng.IntN(6) {
		case 0:
			ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
		case 1:
			ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: s.numbers(d)})
		}
	}
	return m, ev
}

// TestModelsThatSpanMoreThanFloat64: every question to models of 2 to 12 variables whose numbers are from 1e-300 to 1e300, or with
// exponents to 2^±3000, has an answer, and it is enumeration's. BTN_RANDOM_MODELS is the number of models.
func TestModelsThatSpanMoreThanFloat64(t *testing.T) {
	models := nightly.Rounds(150, 2000)
	if s := os.Getenv("BTN_RANDOM_MODELS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("BTN_RANDOM_MODELS: %v", err)
		}
		models = n
	}
	ways := []query.Settings{{}, {Method: query.MethodExact}, {Method: query.MethodExact, Cores: query.CoresAreVariables}, {Seed: 5}}
	zeros, far := 0, 0
	for seed := range uint64(models) {
		rng := rand.New(rand.NewPCG(seed, 72))
		m, ev := spread(seed)
		set := rng.Perm(len(m.Domains))[:1+rng.IntN(len(m.Domains))]
		queries := []query.Query{
			{},
			{Evidence: ev, Over: 1, Joint: set[:min(2, len(set))]},
			{Evidence: ev, Marginals: true, MPE: true, Best: 3, Map: set, Samples: 2},
			{Evidence: ev, Marginals: true},
		}
		way := ways[seed%4]
		if way.Cores != query.CoresAreVariables {
			queries = append(queries, query.Query{Evidence: ev, Gradients: true},
				query.Query{Evidence: ev, Sensitivity: &query.Sensitivity{Variable: set[0], Range: 0.5}})
		}
		results, err := infer.Run(context.Background(), infer.Request{Job: "t", Model: m, Queries: queries, Settings: way})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c := checkedSpan{t, fmt.Sprint("seed ", seed), m, enumerate(m, ev)}
		if len(ev.Hard)+len(ev.Soft) == 0 {
			c.total(&results[0])
		}
		possible := true
		for q := 1; q < len(results); q++ {
			possible = c.total(&results[q]) && possible
		}
		if !possible {
			zeros++
			continue
		}
		c.ratio(&results[1], &results[0], enumerate(m, factorgraph.Evidence{}))
		c.joint(&results[1], queries[1].Joint)
		c.marginals(&results[2])
		c.marginals(&results[3])
		c.assignments(&results[2], seed, set)
		if len(results) > 4 && c.gradients(&results[4], ev, rng) {
			far++
		}
		if len(results) > 4 {
			c.sensitivity(&results[5], ev, rng)
		}
	}
	t.Logf("%d models are 0, %d have gradients beyond float64", zeros, far)
	if zeros < models/20 || zeros > models/2 || far == 0 {
		t.Errorf("%d of %d models are 0, %d have gradients beyond float64: the test sees too few", zeros, models, far)
	}
}

// checkedSpan compares answers with enumeration.
type checkedSpan struct {
	t    *testing.T
	what string
	m    *factorgraph.Model
	all  enumerated
}

// total compares ln Z, and reports whether Z is above 0.
func (c checkedSpan) total(r *query.Result) bool {
	c.t.Helper()
	z := c.all.sums(nil)[0]
	if r.Error != nil || !r.Exact || r.Zero != z.IsZero() {
		c.t.Fatalf("%s, query %d: %+v, exact %v, zero %v, want %v; %q", c.what, r.Query, r.Error, r.Exact, r.Zero, z.IsZero(), r.Warnings)
	}
	if !r.Zero && math.Abs(*r.LogZ-z.Ln()) > 1e-10+0x1p-50*math.Abs(z.Ln()) {
		c.t.Errorf("%s, query %d: ln Z is %v, want %v", c.what, r.Query, *r.LogZ, z.Ln())
	}
	return !r.Zero
}

// ratio compares P(evidence).
func (c checkedSpan) ratio(r, over *query.Result, all enumerated) {
	if over.Zero {
		return
	}
	if want := c.all.sums(nil)[0].LnOver(all.sums(nil)[0]); r.Ratio == nil ||
		math.Abs(*r.Ratio.Ln-want) > 1e-10+0x1p-48*math.Abs(*over.LogZ) {
		c.t.Errorf("%s: ln P is %+v, want %v", c.what, r.Ratio, want)
	}
}

func (c checkedSpan) marginals(r *query.Result) {
	z := c.all.sums(nil)[0]
	for v := range c.m.Domains {
		for x, part := range c.all.sums([]int{v}) {
			if r.Marginals == nil || math.Abs(r.Marginals[v].P[x]-part.Over(z)) > 1e-11 {
				c.t.Errorf("%s, query %d: P(%d = %d) is %v, want %v", c.what, r.Query, v, x, r.Marginals, part.Over(z))
			}
		}
	}
}

func (c checkedSpan) joint(r *query.Result, set []int) {
	z := c.all.sums(nil)[0]
	for k, part := range c.all.sums(set) {
		if r.Joint == nil || math.Abs(r.Joint.P[k]-part.Over(z)) > 1e-11 {
			c.t.Errorf("%s: cell %d of the joint is %v, want %v", c.what, k, r.Joint, part.Over(z))
		}
	}
}

func (c checkedSpan) assignments(r *query.Result, seed uint64, set []int) {
	at, ln, _ := best(c.all.weights)
	if r.MPE == nil || !slices.Equal(r.MPE.Assignment, c.all.values(at)) || math.Abs(r.MPE.LnWeight-ln) > 1e-12*(1+math.Abs(ln)) {
		c.t.Fatalf("%s: MPE %+v, want %v with ln %v", c.what, r.MPE, c.all.values(at), ln)
	}
	checkOthers(c.t, seed, r.MPE, c.all, 3)
	some := enumerated{domains: make([]int, len(set))}
	for k, v := range set {
		some.domains[k] = c.m.Domains[v]
	}
	at, ln, _ = best(c.all.sums(set))
	if r.Map == nil || !slices.Equal(r.Map.Assignment, some.values(at)) || !r.Map.Exact ||
		math.Abs(r.Map.LnWeight-ln) > 1e-11*(1+math.Abs(ln)) {
		c.t.Errorf("%s: MAP %+v, want %v with ln %v", c.what, r.Map, some.values(at), ln)
	}
	for _, x := range samples(r) {
		k := 0
		for v, a := range x {
			k = k*c.m.Domains[v] + a
		}
		if c.all.weights[k].IsZero() {
			c.t.Errorf("%s: the sample %v is impossible", c.what, x)
		}
	}
}

// gradients compares a few, each the difference of two enumerations, and reports whether they have exponents.
func (c checkedSpan) gradients(r *query.Result, ev factorgraph.Evidence, rng *rand.Rand) bool {
	if r.Gradients == nil || (r.Gradients.By == nil) == (r.Gradients.Mantissas == nil) {
		c.t.Fatalf("%s: gradients %+v", c.what, r.Gradients)
	}
	z := c.all.sums(nil)[0]
	for range 2 {
		f := rng.IntN(len(c.m.Factors))
		list, exps := parameters(c.m.Factors[f].Table)
		k := rng.IntN(len(list))
		was := *list[k]
		*list[k] = 1
		one := enumerate(c.m, ev).sums(nil)[0]
		*list[k] = 0
		want := one.Add(enumerate(c.m, ev).sums(nil)[0].Neg())
		*list[k] = was
		var got oracle.Number
		if r.Gradients.By != nil {
			got = oracle.FromFloat(r.Gradients.By[f][k], exps[k])
		} else {
			got = oracle.FromFloat(r.Gradients.Mantissas[f][k], r.Gradients.Exponents[f][k]+exps[k])
		}
		got = got.Mul(z)
		if least := z.Mul(oracle.FromFloat(1, exps[k]-1074)); r.Gradients.By != nil && want.Over(least) < 1e16 {
			if got.Over(least) > 1e16 {
				c.t.Errorf("%s: the gradient by number %d of factor %d is %v, and below float64", c.what, k, f, r.Gradients.By[f][k])
			}
			continue
		}
		if got.IsZero() != want.IsZero() || !want.IsZero() && math.Abs(got.LnOver(want)) > 1e-10 {
			c.t.Errorf("%s: the gradient by number %d of factor %d is off by %v", c.what, k, f, got.Over(want))
		}
	}
	return r.Gradients.By == nil
}

// sensitivity compares a few derivatives of P, each of two pairs of enumerations, and a swing.
func (c checkedSpan) sensitivity(r *query.Result, ev factorgraph.Evidence, rng *rand.Rand) {
	s := r.Sensitivity
	if s == nil || (s.Derivatives.By != nil) == (s.Derivatives.Mantissas != nil) {
		c.t.Fatalf("%s: sensitivity %+v, %q", c.what, s, r.Warnings)
	}
	z, target := c.all.sums(nil)[0], c.all.sums([]int{s.Variable})[0]
	if math.Abs(s.P-target.Over(z)) > 1e-11 {
		c.t.Errorf("%s: P is %v, want %v", c.what, s.P, target.Over(z))
	}
	if !target.IsZero() && s.P < 1e-280 {
		return // P has not all of its digits
	}
	f := rng.IntN(len(c.m.Factors))
	list, exps := parameters(c.m.Factors[f].Table)
	k := rng.IntN(len(list))
	was := *list[k]
	with := func(x float64) (total, part oracle.Number) {
		*list[k] = x
		all := enumerate(c.m, ev)
		*list[k] = was
		return all.sums(nil)[0], all.sums([]int{s.Variable})[0]
	}
	total, part := with(1)
	without, partWithout := with(0)
	total, part = total.Add(without.Neg()), part.Add(partWithout.Neg())
	// (part·z − target·total)/z², and the sum of its sizes, the scale of rounding
	want, size := part.Mul(z).Add(target.Mul(total).Neg()), part.Mul(z).Add(target.Mul(total))
	unit := z.Mul(z).Mul(oracle.FromFloat(1, exps[k]))
	var got oracle.Number
	if s.Derivatives.By != nil {
		got = oracle.FromFloat(s.Derivatives.By[f][k], 0)
	} else {
		got = oracle.FromFloat(s.Derivatives.Mantissas[f][k], s.Derivatives.Exponents[f][k])
	}
	off := got.Mul(unit).Add(want.Neg())
	if !off.IsZero() && (size.IsZero() || math.Abs(off.Over(size)) > 1e-10) && math.Abs(off.Over(unit)) > 1e-300 {
		c.t.Errorf("%s: the derivative of P by number %d of factor %d is off by %v of %v", c.what, k, f, off.Over(unit), want.Over(unit))
	}
	for _, swing := range s.Tornado {
		if swing.Factor != f || swing.Number != k {
			continue
		}
		low, high := 1.0, 0.0
		for _, x := range []float64{was, swing.From / swing.Theta * was, swing.To / swing.Theta * was} {
			if total, part := with(x); !total.IsZero() {
				low, high = min(low, part.Over(total)), max(high, part.Over(total))
			}
		}
		if swing.Of == nil && (math.Abs(swing.Low-low) > 1e-9 || math.Abs(swing.High-high) > 1e-9) {
			c.t.Errorf("%s: P swings from %v to %v by number %d of factor %d, want %v to %v", c.what, swing.Low, swing.High, k, f, low, high)
		}
	}
}

// parameters lists the numbers of a factor in the sequence of its gradients, and their exponents.
func parameters(t tensor.Tensor) (list []*float64, exps []int64) {
	add := func(data []float64, exp []int64) {
		for k := range data {
			list, exps = append(list, &data[k]), append(exps, 0)
			if exp != nil {
				exps[len(exps)-1] = exp[k]
			}
		}
	}
	switch t := t.(type) {
	case *tensor.Dense:
		add(t.Data, nil)
	case *tensor.CP:
		add(t.Weights, nil)
		for _, v := range t.Vectors {
			add(v, nil)
		}
	case *tensor.Symmetric:
		add(t.Values.Mant, t.Values.Exp)
	case *tensor.SymmetryCP:
		for i := range t.Terms {
			list, exps = append(list, &t.Terms[i].Alpha), append(exps, 0)
			add(t.Terms[i].S.Mant, t.Terms[i].S.Exp)
			for _, v := range t.Terms[i].R {
				add(v, nil)
			}
		}
	}
	return list, exps
}

// TestTermsThatCancelBeyondFloat64: a factor whose entries are differences of terms, of which all but one bit cancels, and further apart
// than a float64 holds.
func TestTermsThatCancelBeyondFloat64(t *testing.T) {
	for _, far := range []int64{0, 900, 3000, 1 << 20} {
		m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: &tensor.SymmetryCP{Shape: []int{2, 2}, Levels: countspace.TwoLevels([]int{2, 2}),
				Terms: []tensor.SymmetryRankOne{
					{Alpha: 1, S: scaled.Vector{Mant: []float64{1, 1, 1}, Exp: []int64{far, 0, -far}}},
					{Alpha: -1, S: scaled.Vector{Mant: []float64{1 - 0x1p-50, 0.5, 0}, Exp: []int64{far, 0, 0}}},
				}}},
			{Scope: []int{0, 1}, Table: &tensor.Symmetric{Shape: []int{2, 2}, Levels: countspace.TwoLevels([]int{2, 2}),
				Values: scaled.Vector{Mant: []float64{1, 1, 1}, Exp: []int64{48 - far, -3, far}}}},
		}}
		results, err := infer.Run(context.Background(), infer.Request{Job: "t", Model: m, Queries: []query.Query{{MPE: true, Best: 4}}})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]   // weights: 1/4, 1/16 twice, 1
		if far == 1<<20 { // sums without rounding would take as many bits
			if r.Error == nil || r.Error.Code != fault.Unsupported {
				t.Errorf("2^%d: %+v", far, r.Error)
			}
			continue
		}
		if r.MPE == nil || !slices.Equal(r.MPE.Assignment, []int{1, 1}) || math.Abs(r.MPE.LnWeight) > 1e-12 || len(r.MPE.Others) != 3 {
			t.Fatalf("2^%d: %+v %+v", far, r.MPE, r.Error)
		}
		for k, want := range []float64{0.25, 0.0625, 0.0625} {
			if got := r.MPE.Others[k].LnWeight; math.Abs(got-math.Log(want)) > 1e-12 {
				t.Errorf("2^%d: the ln weight of number %d is %v, want ln %v", far, k+1, got, want)
			}
		}
	}
}
