package counts_test

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// hungModel draws a symmetric factor over some of the variables, tables from these to others, and, where joined says so, tables
// between these as well. Numbers are few, so that many assignments have the same weight.
func hungModel(rng *rand.Rand, joined bool) *factorgraph.Model {
	m := &factorgraph.Model{}
	n, more := 2+rng.IntN(5), rng.IntN(5)
	for range n + more {
		m.Domains = append(m.Domains, 2)
	}
	m.Domains[n+more-1] = 2 + rng.IntN(2)
	add := func(scope ...int) {
		t := &tensor.Dense{Shape: []int{}}
		size := 1
		for _, v := range scope {
			t.Shape = append(t.Shape, m.Domains[v])
			size *= m.Domains[v]
		}
		for range size {
			t.Data = append(t.Data, []float64{0, 0.5, 1, 1, 2, 3, 0.7}[rng.IntN(7)])
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	for v := range n + more {
		if rng.IntN(3) > 0 {
			add(v)
		}
	}
	order := rng.Perm(n + more)
	counting, others := order[:n], order[n:]
	for i, v := range others {
		switch {
		case i > 0 && !joined && rng.IntN(2) == 0:
			add(others[rng.IntN(i)], v) // further from the counting legs
			continue
		case i > 0 && joined:
			add(others[i-1], v)
		}
		add(counting[rng.IntN(n)], v)
	}
	if joined {
		add(counting[0], counting[1])
	}

	scope := slices.Clone(counting)
	slices.Sort(scope)
	dims := make([]int, n)
	for i, v := range scope {
		dims[i] = m.Domains[v]
	}
	values := make([]float64, n+1)
	for c := range values {
		values[c] = []float64{0, 1, 1, 2, 4}[rng.IntN(5)]
	}
	s, err := factorgraph.Cardinality(dims, values)
	if err != nil {
		panic(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	return m
}

// formOf is the count space of the last symmetric factor of a model under evidence.
func formOf(t *testing.T, m *factorgraph.Model, e factorgraph.Evidence) (*counts.Form, *btn.Network) {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err == nil {
		net, err = net.Condition(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	part := &counts.Counts{Cores: []int{len(net.Cores) - 1}, Terms: []int{0}}
	f, err := counts.NewForm(context.Background(), net, part, counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	return f, net
}

// allOf lists the weights of all assignments, with ln of none for 0.
func allOf(m *factorgraph.Model, e factorgraph.Evidence) (list [][]int, ln []float64) {
	oracle.Each(m.Domains, func(x []int) {
		w := new(big.Float).SetPrec(300).SetInt64(1)
		for _, f := range m.Factors {
			own := make([]int, len(f.Scope))
			for i, v := range f.Scope {
				own[i] = x[v]
			}
			w.Mul(w, oracle.Entry(f.Table, own))
		}
		for _, o := range e.Hard {
			if x[o.Var] != o.Value {
				w.SetInt64(0)
			}
		}
		for _, o := range e.Soft {
			w.Mul(w, big.NewFloat(o.Weights[x[o.Var]]))
		}
		list = append(list, slices.Clone(x))
		if w.Sign() == 0 {
			ln = append(ln, math.Inf(-1))
		} else {
			ln = append(ln, oracle.Ln(w))
		}
	})
	return list, ln
}

func streams(seed uint64) func(k int) *rand.Rand {
	return func(k int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(k))) }
}

// TestBestAgainstEnumeration: of the assignments of the largest weight it is the smallest, and it says whether it is the only one.
func TestBestAgainstEnumeration(t *testing.T) {
	tied, alone, none := 0, 0, 0
	for round := range 300 {
		rng := rand.New(rand.NewPCG(31, uint64(round)))
		m := hungModel(rng, false)
		var e factorgraph.Evidence
		if round%2 == 0 {
			e = modeltest.Evidence(rng, m)
		}
		f, net := formOf(t, m, e)
		if !f.CanFind(btn.AskMPE) {
			t.Fatalf("round %d: not found in count space", round)
		}
		got, err := f.MostProbable(context.Background())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all, ln := allOf(m, e)
		top := slices.Max(ln)
		var want []int
		ties := 0
		for k, x := range ln {
			if x > top-1e-12 && !math.IsInf(top, -1) {
				if ties++; want == nil {
					want = all[k]
				}
			}
		}
		if got == nil || want == nil {
			if (got == nil) != (want == nil) {
				t.Errorf("round %d: %v, want %v", round, got, want)
			}
			none++
			continue
		}
		if ties == 1 {
			alone++
		} else {
			tied++
		}
		if !slices.Equal(got.Values, want) || got.Unique != (ties == 1) || math.Abs(got.Weight.Mul(net.Scale).LogAbs()-top) > 1e-12 {
			t.Errorf("round %d: %v, unique %t, ln %v; want %v, one of %d, %v",
				round, got.Values, got.Unique, got.Weight.Mul(net.Scale).LogAbs(), want, ties, top)
		}
	}
	if tied < 40 || alone < 40 || none < 4 {
		t.Errorf("%d rounds with ties, %d without, %d with Z = 0", tied, alone, none)
	}
}

// TestDrawAgainstEnumeration: single values and pairs come with their probabilities, also where pieces count more than once and many
// are equal.
func TestDrawAgainstEnumeration(t *testing.T) {
	const draws = 1500
	for round := range 48 {
		rng := rand.New(rand.NewPCG(32, uint64(round)))
		m := hungModel(rng, round%2 == 0)
		var e factorgraph.Evidence
		if round%3 == 0 {
			e = modeltest.Evidence(rng, m)
		}
		f, net := formOf(t, m, e)
		a, values, err := f.Draw(context.Background(), draws, streams(uint64(round)))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		all, ln := allOf(m, e)
		z := 0.0
		for _, x := range ln {
			z += math.Exp(x)
		}
		if z == 0 {
			if values != nil {
				t.Errorf("round %d: draws of an impossible model", round)
			}
			continue
		}
		if off := a.Z.Mul(net.Scale).Float64()/z - 1; math.Abs(off) > 1e-12 {
			t.Errorf("round %d: Z is off by %.3g", round, off)
		}
		n := len(m.Domains)
		for v := range n {
			for u := range v + 1 {
				share := map[[2]int]float64{}
				for k, x := range all {
					share[[2]int{x[u], x[v]}] += math.Exp(ln[k]) / z
				}
				drawn := map[[2]int]float64{}
				for k := range draws {
					drawn[[2]int{values[k*n+u], values[k*n+v]}]++
				}
				for pair, q := range share {
					if off := math.Abs(drawn[pair] - draws*q); off > 6*math.Sqrt(draws*q*(1-q))+1e-9 && off > 1 {
						t.Errorf("round %d: %d and %d are %v %v times in %d, with probability %v", round, u, v, pair, drawn[pair], draws, q)
					}
				}
			}
		}
	}
}

// TestDrawEqualPairs: seven equal pieces of two legs each, by the number of pieces that have two legs counting, and by the first.
func TestDrawEqualPairs(t *testing.T) {
	const pairs, draws = 7, 4000
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 2*pairs)}
	scope := make([]int, 2*pairs)
	values := make([]float64, 2*pairs+1)
	for v := range scope {
		scope[v] = v
		values[v] = 1 / float64(1+(v-5)*(v-5))
	}
	for k := range pairs {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{2 * k, 2*k + 1},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{3, 1, 0.5, 2}}})
	}
	s, err := factorgraph.Cardinality(m.Domains, values)
	if err != nil {
		t.Fatal(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	f, _ := formOf(t, m, factorgraph.Evidence{})
	all, ln := allOf(m, factorgraph.Evidence{})
	features := func(x []int) [2]int {
		both := 0
		for k := range pairs {
			both += x[2*k] * x[2*k+1]
		}
		return [2]int{both, 2*x[0] + x[1]}
	}
	z := 0.0
	share, drawn := map[[2]int]float64{}, map[[2]int]float64{}
	for k, x := range all {
		z += math.Exp(ln[k])
		share[features(x)] += math.Exp(ln[k])
	}
	_, got, err := f.Draw(context.Background(), draws, streams(3))
	if err != nil {
		t.Fatal(err)
	}
	for k := range draws {
		drawn[features(got[k*2*pairs:][:2*pairs])]++
	}
	for x, w := range share {
		q := w / z
		if math.Abs(drawn[x]-draws*q) > 6*math.Sqrt(draws*q*(1-q))+1 {
			t.Errorf("%v in %v of %d draws, with probability %v", x, drawn[x], draws, q)
		}
	}
}

// TestThousandLegs: the largest weight equals a chain of counters', leg after leg, in logarithms, and the counts and the first leg
// of draws come with the probabilities of the chain.
func TestThousandLegs(t *testing.T) {
	const n, draws = 1000, 400
	rng := rand.New(rand.NewPCG(33, 33))
	weights := make([][]float64, n)
	for v := range weights {
		weights[v] = []float64{math.Exp(rng.NormFloat64()), math.Exp(rng.NormFloat64())}
		if v > 900 {
			weights[v] = weights[v%10] // some are equal
		}
	}
	lnS := func(c int) float64 { m := float64(2*c - n); return 1.1*m*m/(2*n) + 3*math.Cos(m) }
	net := oneCore(t, lnS, weights)
	f, err := counts.NewForm(context.Background(), net, whole(), counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}

	most, sums := make([]float64, n+1), make([]float64, n+1)
	for c := range most {
		most[c], sums[c] = math.Inf(-1), math.Inf(-1)
	}
	add := func(a, b float64) float64 {
		top := max(a, b)
		if math.IsInf(top, -1) {
			return top
		}
		return top + math.Log(math.Exp(a-top)+math.Exp(b-top))
	}
	chain := func(weights [][]float64) {
		most[0], sums[0] = 0, 0
		for v, w := range weights {
			off, on := math.Log(w[0]), math.Log(w[1])
			for c := v + 1; c >= 1; c-- {
				most[c] = max(most[c]+off, most[c-1]+on)
				sums[c] = add(sums[c]+off, sums[c-1]+on)
			}
			most[0], sums[0] = most[0]+off, sums[0]+off
		}
	}
	chain(weights)
	top, z := math.Inf(-1), math.Inf(-1)
	for c := range most {
		top, z = max(top, most[c]+lnS(c)), add(z, sums[c]+lnS(c))
	}
	best, err := f.MostProbable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	ln, ones := 0.0, 0
	for v, x := range best.Values {
		ln += math.Log(weights[v][x])
		ones += x
	}
	ln += lnS(ones)
	if math.Abs(ln-top) > 1e-9 || math.Abs(best.Weight.Mul(net.Scale).LogAbs()-top) > 1e-9 {
		t.Errorf("ln of the largest weight is %v, that of the values %v; want %v", best.Weight.LogAbs(), ln, top)
	}

	mean, square := 0.0, 0.0
	for c := range sums {
		q := math.Exp(sums[c] + lnS(c) - z)
		mean += q * float64(c)
		square += q * float64(c) * float64(c)
	}
	a, values, err := f.Draw(context.Background(), draws, streams(9))
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Z.Mul(net.Scale).LogAbs(); math.Abs(got-z) > 1e-9 {
		t.Errorf("ln Z = %v, want %v", got, z)
	}
	total := 0.0
	for _, x := range values {
		total += float64(x)
	}
	if off := total/draws - mean; math.Abs(off) > 6*math.Sqrt((square-mean*mean)/draws) {
		t.Errorf("mean count %v, want %v", total/draws, mean)
	}

	// The probability that the first leg counts: the chain of the others.
	for c := range most {
		most[c], sums[c] = math.Inf(-1), math.Inf(-1)
	}
	chain(weights[1:])
	one := math.Inf(-1)
	for c := range n {
		one = add(one, sums[c]+lnS(c+1))
	}
	q := math.Exp(one + math.Log(weights[0][1]) - z)
	drawn := 0.0
	for k := range draws {
		drawn += float64(values[k*n])
	}
	if math.Abs(drawn-draws*q) > 6*math.Sqrt(draws*q*(1-q)) {
		t.Errorf("the first leg counts in %v of %d draws, with probability %v", drawn, draws, q)
	}
}

// TestDrawInWindows: so many legs that their product is cut to windows, of a count that is known.
func TestDrawInWindows(t *testing.T) {
	const n, c = 20_000, 7_000
	weights := make([][]float64, n)
	rng := rand.New(rand.NewPCG(34, 34))
	for v := range weights {
		weights[v] = []float64{1, math.Exp(rng.NormFloat64())}
	}
	net := oneCore(t, func(k int) float64 { return map[bool]float64{true: 0, false: math.Inf(-1)}[k == c] }, weights)
	f, err := counts.NewForm(context.Background(), net, whole(), counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	a, values, err := f.Draw(context.Background(), 2, streams(1))
	if err != nil {
		t.Fatal(err)
	}
	if whole, err := counts.Whole(context.Background(), f); err != nil || off(a.Z, whole.Z) > 1e-13 || a.MulAdds >= whole.MulAdds {
		t.Errorf("Z = %v in %d multiply-adds, %v in %d without windows, %v", a.Z, a.MulAdds, whole.Z, whole.MulAdds, err)
	}
	for k := range 2 {
		ones := 0
		for _, x := range values[k*n:][:n] {
			ones += x
		}
		if ones != c {
			t.Errorf("draw %d has %d ones, not %d", k, ones, c)
		}
	}
}

// TestAssignmentsRefused: numbers below 0, two count variables, pieces that count twice.
func TestAssignmentsRefused(t *testing.T) {
	ctx := context.Background()
	net := oneCore(t, func(c int) float64 { return float64(c) }, [][]float64{{1, -1}, {1, 2}, {1, 3}})
	f, err := counts.NewForm(ctx, net, whole(), counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.MostProbable(ctx); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("a weight below 0: %v", err)
	}
	if _, _, err := f.Draw(ctx, 1, streams(1)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("a weight below 0: %v", err)
	}

	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	pair := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 5}}
	s, err := factorgraph.Cardinality(m.Domains, []float64{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	m.Factors = []factorgraph.Factor{{Scope: []int{0, 1}, Table: pair}, {Scope: []int{0, 1, 2}, Table: s}}
	f, _ = formOf(t, m, factorgraph.Evidence{})
	if _, err := f.MostProbable(ctx); fault.CodeOf(err) != fault.Unsupported || !f.CanFind(btn.AskSamples) || f.CanFind(btn.AskMap) {
		t.Errorf("a piece that counts twice: %v", err)
	}

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	f, err = counts.NewForm(ctx, different(t, 3000), whole(), counts.Options{Memory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.MostProbable(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if _, _, err := f.Draw(cancelled, 1, streams(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}
