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

// Families lists the structures of large models. Case i of DrawFamily has structure i modulo their number.
var Families = []string{"tree", "paths", "counts", "findings", "parities", "strip", "latent", "classes"}

// DrawFamily returns case i of the large models with a structure, and its true answer, which follows from the structure.
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
	truth := []Truth{d.drawFamily(family, c)}
	if family == "latent" || family == "classes" {
		return c, truth // circuits and sampling would take too long for these
	}
	d.changeExactToCircuit(&c.Settings)
	d.changeEstimateToSampled(&c.Settings)
	return c, truth
}

// drawer draws the parts of a case: model, queries and settings.
type drawer struct {
	*modeltest.Drawer
	isSmall bool // structured models are drawn small enough to be enumerated
}

// newDrawer returns a drawer of cases whose numbers are of this profile.
func newDrawer(rng *rand.Rand, p modeltest.Profile) *drawer {
	return &drawer{Drawer: modeltest.NewDrawer(rng, p)}
}

// panicOnError panics if err is not nil. It is for constructors whose documentation allows the arguments that they get here.
func panicOnError(err error) {
	if err != nil {
		panic(err)
	}
}

// drawFamily draws the model and the query of a case with the structure of this name, and returns the true answer.
func (d *drawer) drawFamily(name string, c *Case) Truth {
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

// size draws a number from least to most. If the drawer draws small models, smallMost replaces most.
func (d *drawer) size(least, most, smallMost int) int {
	if d.isSmall {
		least, most = min(least, smallMost), smallMost
	}
	return least + d.Rand.IntN(most-least+1)
}

// largeSettings draws settings that are fit for large models: enough memory, and in half of the cases a method that may be exact.
func (d *drawer) largeSettings() query.Settings {
	s := d.settings()
	s.Memory = modeltest.Pick[int64](d.Rand, 0, 0, 1<<20)
	if d.Chance(0.5) {
		s.Method, s.NoExact = modeltest.Pick(d.Rand, query.MethodAuto, query.MethodExact), false
	}
	return s
}

// addFactor appends a factor with the table t over the variables of scope to the case's model.
func (c *Case) addFactor(t tensor.Tensor, scope ...int) {
	if scope == nil {
		scope = []int{}
	}
	c.Model.Factors = append(c.Model.Factors, factorgraph.Factor{Scope: scope, Table: t})
}

// dense returns a dense tensor with these entries, row-major.
func dense(shape []int, data ...float64) *tensor.Dense {
	return &tensor.Dense{Shape: shape, Data: data}
}

// tree draws a tree-structured model: a factor of any kind over each variable v > 0 and its parent, and factors of single variables. The
// truth is computed by exact messages towards the root and back.
func (d *drawer) tree(c *Case) Truth {
	n := d.size(10, 50, 5)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	d.Zero = min(d.Zero, 0.05)
	d.Exponents = min(d.Exponents, 2000)
	maxStep := modeltest.Pick(d.Rand, 1, 2, n) // a parent is at most so many variables before its child; 1: a chain
	g := newRootedTree(n)
	for v := range n {
		c.Model.Domains[v] = 2 + d.Rand.IntN(3)
		g.unary[v] = repeat(oracle.One, c.Model.Domains[v])
		if d.Chance(0.5) {
			f := d.Factor(c.Model, []int{v})
			c.Model.Factors = append(c.Model.Factors, f)
			g.unary[v] = oracle.ExactEntries(f.Table)
		}
		if v == 0 {
			continue
		}
		g.parent[v] = max(0, v-1-d.Rand.IntN(maxStep))
		f := d.Factor(c.Model, []int{g.parent[v], v})
		c.Model.Factors = append(c.Model.Factors, f)
		g.pair[v] = oracle.ExactEntries(f.Table)
	}

	c.Queries = []query.Query{{Marginals: true}}
	return g.solve()
}

// paths draws a chain of binary variables with two heavy states: all 0, and all 1, which weighs 2^(−bitsPerStep) less at each step. The
// last factors prefer 1, so that the state which is light along the chain may win at its end. Other states weigh little (mixing).
func (d *drawer) paths(c *Case) Truth {
	n, bitsPerStep := d.size(100, 600, 10), 1+d.Rand.IntN(9)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	mixing := modeltest.Pick(d.Rand, 0, 0, 1e-300, 1e-30, 1e-9)
	g := newRootedTree(n)
	for v := range n {
		c.Model.Domains[v] = 2
		g.unary[v] = repeat(oracle.One, 2)
		if v > 0 {
			g.parent[v] = v - 1
			t := dense([]int{2, 2}, 1, mixing, mixing, math.Ldexp(1, -bitsPerStep))
			c.addFactor(t, v-1, v)
			g.pair[v] = oracle.ExactEntries(t)
		}
	}

	// The last variable prefers 1: by a factor of up to 1e300, and in half of the cases by 2^(bitsPerStep·n) as well, which undoes what
	// all steps took away and may exceed the range of float64.
	preference := dense([]int{2}, modeltest.Pick(d.Rand, 0, math.SmallestNonzeroFloat64, 1e-300), 1)
	c.addFactor(preference, n-1)
	g.unary[n-1] = oracle.ExactEntries(preference)
	if d.Chance(0.5) {
		t := &tensor.Symmetric{Shape: []int{2}, Levels: countspace.TwoLevels([]int{2}),
			Values: scaled.Vector{Mant: []float64{1, 1}, Exp: []int64{0, int64(bitsPerStep * n)}}}
		c.addFactor(t, n-1)
		for x, w := range oracle.ExactEntries(t) {
			g.unary[n-1][x] = g.unary[n-1][x].Mul(w)
		}
	}

	c.Queries = []query.Query{{Marginals: true}}
	return g.solve()
}

// counts draws a model of n binary variables with one factor f over all of them that depends on the number of ones only, and factors of
// single variables. Z = Σ_k f(k) e_k, where e_k is the total weight of the assignments with k ones in the single factors: the coefficient
// of z^k in Π_v (w_v(0) + w_v(1) z).
func (d *drawer) counts(c *Case) Truth {
	n := d.size(20, 120, 10)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v := range n {
		c.Model.Domains[v] = 2
	}

	// ln f(count)
	lnF := make([]float64, n+1)
	style, k := d.Rand.IntN(3), d.Rand.IntN(n+1)
	for count := range lnF {
		magnetisation := float64(2*count-n) / float64(n)
		switch style {
		case 0: // Curie–Weiss
			lnF[count] = float64(n) * (0.5 + d.Zero) * 3 * magnetisation * magnetisation
		case 1: // exactly k
			lnF[count] = math.Inf(-1)
			if count == k {
				lnF[count] = 0
			}
		default:
			lnF[count] = (d.Rand.Float64() - 0.5) * 3000
		}
	}
	t, err := factorgraph.CardinalityLog(c.Model.Domains, lnF)
	panicOnError(err)
	c.addFactor(t, modeltest.UpTo(n)...)

	// Factors of single variables, and the polynomial Σ_k e_k z^k.
	d.Out, d.Zero = min(d.Out, 0.05), 0
	e := []oracle.Number{oracle.One}
	for v := range n {
		if d.Chance(0.7) {
			f := dense([]int{2}, d.Positive(), d.Positive())
			c.addFactor(f, v)
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

// timesLinear returns the coefficients of p(z)·(a + b z), where p[i] is the coefficient of z^i.
func timesLinear(p []oracle.Number, a, b oracle.Number) []oracle.Number {
	out := make([]oracle.Number, len(p)+1)
	for i, x := range p {
		out[i] = out[i].Add(x.Mul(a))
		out[i+1] = out[i+1].Add(x.Mul(b))
	}
	return out
}

// parities draws parity constraints over two to four of six neighbouring bits each. They are linear equations modulo 2, so Z is the number
// of their solutions: 2^(n − rank), or 0 if they contradict each other.
func (d *drawer) parities(c *Case) Truth {
	n := d.size(10, 40, 10)
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	for v := range n {
		c.Model.Domains[v] = 2
	}
	var rows []uint64 // an equation each: bit v < n is set if variable v is in it, bit n if the sum must be odd
	for range n/2 + d.Rand.IntN(n/2) {
		first, scope := d.Rand.IntN(n), []int{}
		row := uint64(0)
		for _, v := range d.Shuffled([]int{0, 1, 2, 3, 4, 5})[:2+d.Rand.IntN(3)] {
			if v = first + v; v < n {
				scope = append(scope, v)
				row |= 1 << v
			}
		}
		isOdd := d.Chance(0.3)
		if isOdd {
			row |= 1 << n
		}
		t, err := factorgraph.Parity(len(scope), isOdd)
		panicOnError(err)
		c.addFactor(t, scope...)
		rows = append(rows, row)
	}

	c.Queries = []query.Query{{Marginals: d.Chance(0.3)}}
	rank, isContradictory := eliminateModulo2(rows, n)
	if isContradictory {
		return Truth{}
	}
	return Truth{Z: oracle.FromFloat(1, int64(n-rank))}
}

// eliminateModulo2 solves linear equations modulo 2 by Gaussian elimination, in place. Bit v < n of a row is the coefficient of variable v
// and bit n the right side. It returns the rank of the coefficients, and whether an equation 0 = 1 remains.
func eliminateModulo2(rows []uint64, n int) (rank int, isContradictory bool) {
	for v := range n {
		pivot := -1
		for i := rank; i < len(rows); i++ {
			if rows[i]>>v&1 == 1 {
				pivot = i
				break
			}
		}

		if pivot < 0 {
			continue // v is free
		}
		rows[rank], rows[pivot] = rows[pivot], rows[rank]
		for i := range rows {
			if i != rank && rows[i]>>v&1 == 1 {
				rows[i] ^= rows[rank]
			}
		}
		rank++
	}

	// The coefficients of the remaining rows are all 0.
	for _, row := range rows[rank:] {
		isContradictory = isContradictory || row != 0
	}
	return rank, isContradictory
}
