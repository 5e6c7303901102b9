package truth

// Larger models with a structure that gives the truth by other means than enumeration.

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Families are the structures that DrawFamily takes in turn.
var Families = []string{"tree", "paths", "counts", "findings", "parities", "strip", "latent", "classes"}

// DrawFamily returns case i of the structured ones, and its truth.
func DrawFamily(seed, i uint64) (*Case, []Truth) {
	family := Families[i%uint64(len(Families))]
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", family, seed)
	rng := rand.New(rand.NewPCG(h.Sum64(), i))
	d := newDrawer(rng, modeltest.Pick(rng, modeltest.Wild, modeltest.Tame))
	c := &Case{
		Name:  fmt.Sprintf("%s-%d-%d", family, seed, i),
		Route: modeltest.Pick(rng, RoutePlain, RoutePlain, RouteJSON, RouteWire),
	}
	c.Settings = d.largeSettings()
	truth := []Truth{d.family(family, c)}
	if family == "latent" || family == "classes" {
		return c, truth // circuits and chains would take all the time that there is
	}
	d.changeExactToCircuit(&c.Settings)
	d.changeEstimateToSampled(&c.Settings)
	return c, truth
}

// drawer draws all of a case.
type drawer struct {
	*modeltest.Drawer
	few bool // structured models small enough to be enumerated
}

func newDrawer(rng *rand.Rand, p modeltest.Profile) *drawer {
	return &drawer{Drawer: modeltest.NewDrawer(rng, p)}
}

// must panics where a constructor of the product refuses what its documentation allows.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// family draws the model and the query of a case, and returns the truth.
func (d *drawer) family(name string, c *Case) Truth {
	draw := map[string]func(*Case) Truth{
		"tree": d.tree, "paths": d.paths, "counts": d.counts, "findings": d.findings, "parities": d.parities,
		"strip": d.strip, "latent": d.latent, "classes": d.classes,
	}
	t := draw[name](c)
	if t.LnZ = math.Inf(-1); t.Z.Sign() > 0 {
		t.LnZ = t.Z.Ln()
	}
	return t
}

// size draws a number of things from least to most, and few where models are to be enumerated.
func (d *drawer) size(least, most, few int) int {
	if d.few {
		least, most = min(least, few), few
	}
	return least + d.Rand.IntN(most-least+1)
}

// largeSettings are the settings that a large model can be asked with.
func (d *drawer) largeSettings() query.Settings {
	s := d.settings()
	s.Memory = modeltest.Pick[int64](d.Rand, 0, 0, 1<<20)
	if d.Chance(0.5) {
		s.Method, s.NoExact = modeltest.Pick(d.Rand, query.MethodAuto, query.MethodExact), false
	}
	return s
}

// add appends a factor.
func (c *Case) add(t tensor.Tensor, scope ...int) {
	if scope == nil {
		scope = []int{}
	}
	c.Model.Factors = append(c.Model.Factors, factorgraph.Factor{Scope: scope, Table: t})
}

func dense(shape []int, data ...float64) *tensor.Dense {
	return &tensor.Dense{Shape: shape, Data: data}
}

// tree draws a tree of pairs of factors of any kind. Its truth are exact messages towards the root
// and back.
func (d *drawer) tree(c *Case) Truth {
	n := d.size(10, 50, 5)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	d.Zero = min(d.Zero, 0.05)
	d.Exponents = min(d.Exponents, 2000)
	reach := modeltest.Pick(d.Rand, 1, 2, n)
	g := chain{parent: make([]int, n), pair: make([][]oracle.Number, n), unary: make([][]oracle.Number, n)}
	for v := range n {
		c.Model.Domains[v] = 2 + d.Rand.IntN(3)
		g.unary[v] = constant(c.Model.Domains[v], oracle.One)
		if d.Chance(0.5) {
			f := d.Factor(c.Model, []int{v})
			c.Model.Factors = append(c.Model.Factors, f)
			g.unary[v] = oracle.ExactEntries(f.Table)
		}
		if v == 0 {
			continue
		}
		g.parent[v] = max(0, v-1-d.Rand.IntN(reach))
		f := d.Factor(c.Model, []int{g.parent[v], v})
		c.Model.Factors = append(c.Model.Factors, f)
		g.pair[v] = oracle.ExactEntries(f.Table)
	}

	c.Queries = []query.Query{{Marginals: true}}
	return g.solve()
}

// paths draws a chain that can stay at 0 or at 1: the path of ones weighs 2^(−k) of the path of
// zeros, the last factors prefer it.
func (d *drawer) paths(c *Case) Truth {
	n, down := d.size(100, 600, 10), 1+d.Rand.IntN(9)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	mixing := modeltest.Pick(d.Rand, 0, 0, 1e-300, 1e-30, 1e-9)
	g := chain{parent: make([]int, n), pair: make([][]oracle.Number, n), unary: make([][]oracle.Number, n)}
	for v := range n {
		c.Model.Domains[v] = 2
		g.unary[v] = constant(2, oracle.One)
		if v > 0 {
			g.parent[v] = v - 1
			t := dense([]int{2, 2}, 1, mixing, mixing, math.Ldexp(1, -down))
			c.add(t, v-1, v)
			g.pair[v] = oracle.ExactEntries(t)
		}
	}

	last := dense([]int{2}, modeltest.Pick(d.Rand, 0, math.SmallestNonzeroFloat64, 1e-300), 1)
	c.add(last, n-1)
	g.unary[n-1] = oracle.ExactEntries(last)
	if d.Chance(0.5) { // beyond a float64's digits
		t := &tensor.Symmetric{Shape: []int{2}, Levels: countspace.TwoLevels([]int{2}),
			Values: scaled.Vector{Mant: []float64{1, 1}, Exp: []int64{0, int64(down * n)}}}
		c.add(t, n-1)
		for x, w := range oracle.ExactEntries(t) {
			g.unary[n-1][x] = g.unary[n-1][x].Mul(w)
		}
	}

	c.Queries = []query.Query{{Marginals: true}}
	return g.solve()
}

// counts draws one function of the count of many variables, with a field on each: Z = Σ_c f(c)
// e_c(w), the elementary symmetric polynomials of the odds.
func (d *drawer) counts(c *Case) Truth {
	n := d.size(20, 120, 10)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v := range n {
		c.Model.Domains[v] = 2
	}
	e := []oracle.Number{oracle.One}
	values := make([]float64, n+1)
	style, k := d.Rand.IntN(3), d.Rand.IntN(n+1)
	for i := range values {
		m := float64(2*i-n) / float64(n)
		switch style {
		case 0: // Curie–Weiss, in nats
			values[i] = float64(n) * (0.5 + d.Zero) * 3 * m * m
		case 1: // exactly k
			values[i] = math.Inf(-1)
			if i == k {
				values[i] = 0
			}
		default:
			values[i] = (d.Rand.Float64() - 0.5) * 3000
		}
	}

	t, err := factorgraph.CardinalityLog(c.Model.Domains, values)
	must(err)
	c.add(t, modeltest.UpTo(n)...)
	d.Out, d.Zero = min(d.Out, 0.05), 0
	for v := range n {
		if d.Chance(0.7) {
			f := dense([]int{2}, d.Positive(), d.Positive())
			c.add(f, v)
			e = timesLinear(e, oracle.FromFloat(f.Data[0], 0), oracle.FromFloat(f.Data[1], 0))
		} else {
			e = timesLinear(e, oracle.One, oracle.One)
		}
	}

	z := oracle.Number{}
	for i := range e {
		z = z.Add(e[i].Mul(oracle.VectorEntry(t.Values, i)))
	}
	c.Queries = []query.Query{{Marginals: d.Chance(0.3)}}
	return Truth{Z: z}
}

// timesLinear is p(z)·(a + b z).
func timesLinear(p []oracle.Number, a, b oracle.Number) []oracle.Number {
	out := make([]oracle.Number, len(p)+1)
	for i, x := range p {
		out[i] = out[i].Add(x.Mul(a))
		out[i+1] = out[i+1].Add(x.Mul(b))
	}
	return out
}

// parities draws sparse parity constraints over bits: Z is 2^(n − rank), or 0 where they contradict
// each other.
func (d *drawer) parities(c *Case) Truth {
	n := d.size(10, 40, 10)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v := range n {
		c.Model.Domains[v] = 2
	}
	var rows []uint64 // bit n: the required sum
	for range n/2 + d.Rand.IntN(n/2) {
		first, scope := d.Rand.IntN(n), []int{}
		row := uint64(0)
		for _, v := range d.Shuffled([]int{0, 1, 2, 3, 4, 5})[:2+d.Rand.IntN(3)] {
			if v = first + v; v < n {
				scope = append(scope, v)
				row |= 1 << v
			}
		}
		odd := d.Chance(0.3)
		if odd {
			row |= 1 << n
		}
		t, err := factorgraph.Parity(len(scope), odd)
		must(err)
		c.add(t, scope...)
		rows = append(rows, row)
	}

	c.Queries = []query.Query{{Marginals: d.Chance(0.3)}}
	rank, contradictory := eliminate(rows, n)
	if contradictory {
		return Truth{}
	}
	return Truth{Z: oracle.FromFloat(1, int64(n-rank))}
}

// eliminate is Gaussian elimination over bits: the rank of the first n columns, and whether a row 0
// = 1 is left.
func eliminate(rows []uint64, n int) (rank int, contradictory bool) {
	for v := range n {
		pivot := -1
		for i := rank; i < len(rows); i++ {
			if rows[i]>>v&1 == 1 {
				pivot = i
				break
			}
		}

		if pivot < 0 {
			continue
		}
		rows[rank], rows[pivot] = rows[pivot], rows[rank]
		for i := range rows {
			if i != rank && rows[i]>>v&1 == 1 {
				rows[i] ^= rows[rank]
			}
		}
		rank++
	}

	for _, row := range rows[rank:] {
		contradictory = contradictory || row != 0
	}
	return rank, contradictory
}
