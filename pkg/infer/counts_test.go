package infer

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Models of symmetric factors over hundreds of variables,
// held against sums over counts in big floats that share no code.

// counted is a model of disjoint groups of variables with as many values as levels,
// a value of S per count vector and a weight per variable and value.
type counted struct {
	levels  int
	groups  [][]int
	s       []map[string]*big.Float // by group and counts
	weights [][]float64
	model   *factorgraph.Model
}

const bigBits = 400

func newBig(x float64) *big.Float { return new(big.Float).SetPrec(bigBits).SetFloat64(x) }

// newCounted makes groups of so many variables each.
// Wild entries of S are 2^±2000, weights 1e±150, some of both 0.
func newCounted(rng *rand.Rand, levels int, wild bool, sizes ...int) *counted {
	c := &counted{levels: levels, model: &factorgraph.Model{}}
	for _, n := range sizes {
		from := len(c.model.Domains)
		var group []int
		for k := range n {
			group = append(group, from+k)
			c.model.Domains = append(c.model.Domains, levels)
		}
		dims := slices.Repeat([]int{levels}, n)
		lv, _ := countspace.Identity(dims)
		size, _ := lv.Size()
		values, table := scaled.NewVector(size), map[string]*big.Float{}
		at := make([]int, levels-1)
		for i := range size {
			x := scaled.FromFloat(0.1 + rng.Float64())
			if wild {
				x = scaled.Make(x.Mant, int64(rng.IntN(4001)-2000))
			}
			if rng.IntN(7) == 0 {
				x = scaled.Number{}
			}
			values.Set(i, x)
			table[fmt.Sprint(at)] = new(big.Float).SetMantExp(newBig(x.Mant), int(x.Exp))
			for a := len(at) - 1; a >= 0; a-- {
				if at[a]++; at[a] <= n {
					break
				}
				at[a] = 0
			}
		}
		c.groups, c.s = append(c.groups, group), append(c.s, table)
		c.model.Factors = append(
			c.model.Factors,
			factorgraph.Factor{Scope: group,
				Table: &tensor.Symmetric{Shape: dims, Levels: lv, Values: values}},
		)
	}
	for v, d := range c.model.Domains {
		w := make([]float64, d)
		for x := range w {
			w[x] = 0.1 + rng.Float64()
			if wild {
				w[x] *= math.Pow(10, float64(rng.IntN(301)-150))
			}
		}
		c.weights = append(c.weights, w)
		c.model.Factors = append(
			c.model.Factors,
			factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{d}, Data: slices.Clone(w)}},
		)
	}
	return c
}

// z sums over the counts of every group, variable by variable. fixed holds variables to one value.
func (c *counted) z(fixed map[int]int, soft map[int][]float64) *big.Float {
	total := newBig(1)
	for g, group := range c.groups {
		sums := map[string]*big.Float{fmt.Sprint(make([]int, c.levels-1)): newBig(1)}
		counts := map[string][]int{fmt.Sprint(make([]int, c.levels-1)): make([]int, c.levels-1)}
		for _, v := range group {
			next, where := map[string]*big.Float{}, map[string][]int{}
			for key, sum := range sums {
				for x, w := range c.weights[v] {
					if only, ok := fixed[v]; ok && only != x {
						continue
					}
					if e := soft[v]; e != nil {
						w *= e[x]
					}
					to := slices.Clone(counts[key])
					if x > 0 {
						to[x-1]++
					}
					k := fmt.Sprint(to)
					if next[k] == nil {
						next[k], where[k] = newBig(0), to
					}
					next[k].Add(next[k], new(big.Float).Mul(sum, newBig(w)))
				}
			}
			sums, counts = next, where
		}
		z := newBig(0)
		for key, sum := range sums {
			z.Add(z, new(big.Float).Mul(sum, c.s[g][key]))
		}
		total.Mul(total, z)
	}
	return total
}

func lnBig(x *big.Float) float64 {
	m := new(big.Float)
	e := x.MantExp(m)
	f, _ := m.Float64()
	return math.Log(f) + float64(e)*math.Ln2
}

func ratioBig(a, b *big.Float) float64 {
	f, _ := new(big.Float).Quo(a, b).Float64()
	return f
}

func runOne(t *testing.T, m *factorgraph.Model, q query.Query, s query.Settings) query.Result {
	t.Helper()
	results, err := Run(context.Background(),
		Request{Job: "counts", Model: m, Queries: []query.Query{q}, Settings: s})

	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}

func TestSymmetricFactorsInCountSpace(t *testing.T) {
	for _, c := range []struct {
		levels int
		wild   bool
		sizes  []int
	}{
		{2, false, []int{70}}, {2, true, []int{180}}, {2, true, []int{70, 80}}, {2, true,
			[]int{66, 3, 2}},
		{3, false, []int{18}}, {3, true, []int{16}}, {3, true, []int{15, 2}}, {4, true, []int{8}},
	} {
		rng := rand.New(rand.NewPCG(10, uint64(c.levels*1000+c.sizes[0])))
		m := newCounted(rng, c.levels, c.wild, c.sizes...)
		last := len(m.model.Domains) - 1
		soft := map[int][]float64{5: []float64{0.25, 0.5, 1, 2}[:c.levels]}
		known := map[string]*big.Float{}
		zOf := func(fixed map[int]int) *big.Float { // by the oracle, once for both methods
			key := fmt.Sprint(fixed)
			if known[key] == nil {
				known[key] = m.z(fixed, soft)
			}
			return known[key]
		}
		for _, method := range []query.Method{query.MethodAuto, query.MethodExact} {
			name := fmt.Sprintf("%d levels, %v variables, wild %t, %s",
				c.levels, c.sizes, c.wild, method)
			q := query.Query{Marginals: true, Joint: []int{last, 0, 2},
				Evidence: factorgraph.Evidence{
					Hard: []factorgraph.Observation{{Var: 1,
						Value: c.levels - 1}}, Soft: []factorgraph.Likelihood{{Var: 5,
						Weights: soft[5]}}}}
			r := runOne(t, m.model, q, query.Settings{Method: method})
			if r.Error != nil || !r.Exact || r.LogZ == nil {
				t.Fatalf("%s: %+v", name, r)
			}
			fixed := map[int]int{1: c.levels - 1}
			z := zOf(fixed)
			if want := lnBig(z); math.Abs(*r.LogZ-want) > 1e-11*(1+math.Abs(want)) {
				t.Errorf("%s: ln Z = %v, want %v", name, *r.LogZ, want)
			}
			for _, v := range []int{0, 1, 5, last} {
				for x := range c.levels {
					want := 0.0
					if only, ok := fixed[v]; !ok || only == x {
						given := map[int]int{1: c.levels - 1, v: x}
						want = ratioBig(zOf(given), z)
					}
					if got := r.Marginals[v].P[x]; math.Abs(got-want) > 1e-11 || want > 1e-300 &&
						math.Abs(got/want-1) > 1e-9 {
						t.Errorf("%s: P(x_%d = %d) = %v, want %v", name, v, x, got, want)
					}
				}
			}
			cells := 0
			for a := range c.levels {
				for b := range c.levels {
					for d := range c.levels {
						want := ratioBig(zOf(map[int]int{1: c.levels - 1, last: a, 0: b, 2: d}), z)
						if got := r.Joint.P[cells]; math.Abs(got-want) > 1e-11 {
							t.Errorf("%s: joint cell %d = %v, want %v", name, cells, got, want)
						}
						cells++
					}
				}
			}
		}
	}
}

// Two symmetric factors over the same variables, one of them as a sum of two terms, with a rank-one
// table among them: a form in the counts of both, against enumeration of the counts by hand.
func TestTwoSymmetricFactorsOverTheSameVariables(t *testing.T) {
	const n = 66
	rng := rand.New(rand.NewPCG(3, 4))
	a, b, w := make([]float64, n+1), make([]float64, n+1), make([][]float64, n)
	for k := range a {
		a[k], b[k] = rng.Float64(), rng.Float64()
	}
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	all := make([]int, n)
	for v := range w {
		all[v] = v
		w[v] = []float64{0.2 + rng.Float64(), 0.2 + rng.Float64()}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: slices.Clone(w[v])}})
	}
	dims := m.Domains
	levels := countspace.TwoLevels(dims)
	r0, r1 := make([][]float64, n), make([][]float64, n)
	for v := range r0 {
		r0[v], r1[v] = []float64{1, 0.5}, []float64{0.25, 1}
	}
	m.Factors = append(m.Factors,
		factorgraph.Factor{Scope: all,
			Table: &tensor.Symmetric{Shape: dims, Levels: levels, Values: scaled.FromFloats(a)}},
		factorgraph.Factor{Scope: all,
			Table: &tensor.SymmetryCP{Shape: dims, Levels: levels, Terms: []tensor.SymmetryRankOne{
				{Alpha: 2, S: scaled.FromFloats(b), R: r0}, {Alpha: 0.5, S: scaled.FromFloats(a),
					R: r1}}}},
		factorgraph.Factor{Scope: []int{0, 1},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 6}}})
	// Σ over counts of a·s·Π w·r, and the table on variables 0 and 1
	sum := func(s []float64, r []float64) *big.Float {
		p := []*big.Float{newBig(1)}
		for v := range n {
			f := []float64{w[v][0] * r[0], w[v][1] * r[1]}
			switch v {
			case 0:
				f[1] *= 3
			case 1:
				f[1] *= 2
			}
			next := make([]*big.Float, len(p)+1)
			for k := range next {
				next[k] = newBig(0)
			}
			for k, x := range p {
				next[k].Add(next[k], new(big.Float).Mul(x, newBig(f[0])))
				next[k+1].Add(next[k+1], new(big.Float).Mul(x, newBig(f[1])))
			}
			p = next
		}
		z := newBig(0)
		for k, x := range p {
			z.Add(z, new(big.Float).Mul(x, newBig(a[k]*s[k])))
		}
		return z
	}
	want := new(big.Float).Add(new(big.Float).Mul(newBig(2), sum(b, r0[0])),
		new(big.Float).Mul(newBig(0.5), sum(a, r1[0])))
	r := runOne(t, m, query.Query{Marginals: true}, query.Settings{})
	if r.Error != nil || !r.Exact || math.Abs(*r.LogZ-lnBig(want)) > 1e-11 {
		t.Fatalf("ln Z = %+v, want %v", r, lnBig(want))
	}
	if r.Plan != nil || r.Components != 2 {
		t.Errorf("%d components along %v, want a closed form of 2", r.Components, r.Plan)
	}
}

// A part of other factors beside a long symmetric factor follows elimination,
// and joint marginals reach over both.
func TestPartsBesideASymmetricFactor(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	m := newCounted(rng, 2, false, 90)
	n := len(m.model.Domains)
	table := []float64{1, 2, 3, 5}
	m.model.Domains = append(m.model.Domains, 2, 2, 2, 3)
	for k := range 3 {
		m.model.Factors = append(
			m.model.Factors,
			factorgraph.Factor{Scope: []int{n + k, n + (k+1)%3},
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: table}},
		)
	}
	var loop float64
	joint := [2]float64{}
	for x := range 8 {
		a, b, c := x>>2&1, x>>1&1, x&1
		p := table[2*a+b] * table[2*b+c] * table[2*c+a]
		loop += p
		joint[a] += p
	}
	r := runOne(t, m.model, query.Query{Marginals: true, Joint: []int{n, 4}}, query.Settings{})
	z := m.z(nil, nil)
	if want := lnBig(z) + math.Log(3*loop); r.Error != nil || !r.Exact ||
		math.Abs(*r.LogZ-want) > 1e-11*math.Abs(want) {
		t.Fatalf("%+v, want ln Z %v", r, want)
	}
	for a := range 2 {
		if got, want := r.Marginals[n].P[a], joint[a]/loop; math.Abs(got-want) > 1e-13 {
			t.Errorf("P(x_%d = %d) = %v, want %v", n, a, got, want)
		}
		for b := range 2 {
			want := joint[a] / loop * ratioBig(m.z(map[int]int{4: b}, nil), z)
			if got := r.Joint.P[2*a+b]; math.Abs(got-want) > 1e-13 {
				t.Errorf("joint cell %d %d = %v, want %v", a, b, got, want)
			}
		}
	}
}

// Exactly k of 3000: formerly a chain of counters over the budget. All weights are 1, so Z is a binomial coefficient.
func TestExactlyKOfThousands(t *testing.T) {
	const n, k = 3000, 1100
	f, err := factorgraph.Exactly(n, k)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	all := make([]int, n)
	for v := range all {
		all[v] = v
	}
	m.Factors = []factorgraph.Factor{{Scope: all, Table: f}}
	r := runOne(t, m, query.Query{Marginals: true}, query.Settings{})
	want := lnBig(new(big.Float).SetPrec(bigBits).SetInt(new(big.Int).Binomial(n, k)))
	if r.Error != nil || !r.Exact || math.Abs(*r.LogZ-want) > 1e-11*want {
		t.Fatalf("%+v, want ln Z %v", r.Error, want)
	}
	for v, p := range r.Marginals {
		if math.Abs(p.P[1]-k/float64(n)) > 1e-12 {
			t.Fatalf("P(x_%d = 1) = %v, want %v", v, p.P[1], k/float64(n))
		}
	}
	// All observed but one, and one too many: an impossible event is exactly 0.
	var ev factorgraph.Evidence
	for v := range k + 1 {
		ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: 1})
	}
	if r := runOne(t, m, query.Query{Evidence: ev}, query.Settings{}); r.Error != nil || !r.Zero ||
		!r.Exact {
		t.Errorf("%d ones of %d: %+v", k+1, k, r)
	}
}

// Exactly k of 2000 with weights of their own, twice with a copy of a leg beside it: those with the largest ratios are 1, draws have k
// ones, and the marginals of draws agree with the query.
func TestAssignmentsOfThousands(t *testing.T) {
	const n, k, draws = 2000, 600, 50
	f, err := factorgraph.Exactly(n, k)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, 7))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n+2)}
	all := make([]int, n)
	ln := 0.0
	ratio := make([]float64, n)
	for v := range all {
		all[v] = v
		w := []float64{1 + rng.Float64(), math.Exp(rng.NormFloat64())}
		ln += math.Log(w[0])
		ratio[v] = w[1] / w[0]
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: w}})
	}
	for v := range 2 {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, n + v},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}})
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: all, Table: f})

	r := runOne(t, m, query.Query{Marginals: true, MPE: true, Samples: draws, Seed: 3}, query.Settings{})
	if r.Error != nil || !r.Exact || r.MPE == nil || !r.MPE.Unique {
		t.Fatalf("%+v %+v", r.Error, r.MPE)
	}
	sorted := slices.Clone(ratio)
	slices.Sort(sorted)
	for _, x := range sorted[n-k:] {
		ln += math.Log(x)
	}
	for v, x := range r.MPE.Assignment {
		if want := ratio[v%n] >= sorted[n-k]; want != (x == 1) {
			t.Errorf("variable %d is %d", v, x)
		}
	}
	if math.Abs(r.MPE.LnWeight-ln) > 1e-9 {
		t.Errorf("ln of the largest weight is %v, want %v", r.MPE.LnWeight, ln)
	}

	size := make([]float64, n)
	for _, x := range r.Samples.Assignments {
		ones := 0
		for v := range n {
			ones += x[v]
			size[v] += float64(x[v])
		}
		if ones != k || x[0] != x[n] || x[1] != x[n+1] {
			t.Fatalf("%d ones, %d %d, %d %d", ones, x[0], x[n], x[1], x[n+1])
		}
	}
	for v := range n {
		q := r.Marginals[v].P[1]
		if math.Abs(size[v]-draws*q) > 6*math.Sqrt(draws*q*(1-q))+1 {
			t.Errorf("variable %d is 1 in %v of %d draws, with probability %v", v, size[v], draws, q)
		}
	}
}

// A model above the memory bound is refused with the bytes it would take.
func TestCountSpaceOverTheBudget(t *testing.T) {
	m := newCounted(rand.New(rand.NewPCG(1, 1)), 3, false, 300)
	r := runOne(t, m.model, query.Query{}, query.Settings{Method: query.MethodExact, Memory: 1 << 20})
	if r.Error == nil || r.Error.Code != fault.OverBudget || !strings.Contains(
		r.Error.Message, "9.06e+04 count vectors together, which takes 5.8e+06 bytes",
	) {
		t.Errorf("%+v", r.Error)
	}
}
