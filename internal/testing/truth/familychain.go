package truth

// Trees and strips by exact messages, noisy-or networks by inclusion and exclusion.

import (
	"math/big"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// rootedTree is a tree-structured model with exact tables. The root is variable 0.
type rootedTree struct {
	parent []int             // parent[v] < v is the parent of v > 0
	pair   [][]oracle.Number // pair[v][a·d + b] is the entry for parent[v] = a and v = b, where v has d values
	unary  [][]oracle.Number // unary[v][a] is the entry for v = a
}

// newRootedTree returns a tree of n variables whose tables are not set.
func newRootedTree(n int) rootedTree {
	return rootedTree{parent: make([]int, n), pair: make([][]oracle.Number, n), unary: make([][]oracle.Number, n)}
}

// repeat returns a list of n numbers x.
func repeat(x oracle.Number, n int) []oracle.Number {
	out := make([]oracle.Number, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// solve returns Z and all marginals, by exact messages towards the root and back: P(v = a) = below[v][a] · down[v][a] / Z.
//
//   - below[v][a] is the sum over the variables below v, given v = a, unary[v] included.
//   - up[v][a] is the message to v's parent: the sum over v and the variables below it, given parent = a.
//   - down[v][a] is the sum over all other variables, given v = a.
func (g *rootedTree) solve() Truth {
	n := len(g.parent)
	up, below := make([][]oracle.Number, n), make([][]oracle.Number, n)
	for v := range n {
		below[v] = append([]oracle.Number{}, g.unary[v]...)
	}

	// Children come after their parents, so this goes from the leaves to the root.
	for v := n - 1; v > 0; v-- {
		p, d := g.parent[v], len(g.unary[v])
		up[v] = make([]oracle.Number, len(g.unary[p]))
		for a := range up[v] {
			for b := range d {
				up[v][a] = up[v][a].Add(g.pair[v][a*d+b].Mul(below[v][b]))
			}
			below[p][a] = below[p][a].Mul(up[v][a])
		}
	}

	t := Truth{Z: total(below[0])}
	if t.Z.IsZero() {
		return t
	}
	t.Marginals = make([][]float64, n)
	down := g.downMessages(up)
	for v := range n {
		for a := range below[v] {
			t.Marginals[v] = append(t.Marginals[v], below[v][a].Mul(down[v][a]).Over(t.Z))
		}
	}
	return t
}

// downMessages returns the message down[v] of every variable's parent p to it: down[v][b] is the sum over all variables that are neither v
// nor below it, given v = b. It is Σ_a pair(a, b) · down[p][a] · unary[p][a] · Π up[w][a] over the other children w of p, where up[w][a]
// is the message of w to p.
func (g *rootedTree) downMessages(up [][]oracle.Number) [][]oracle.Number {
	n := len(g.parent)
	children := make([][]int, n)
	for v := 1; v < n; v++ {
		children[g.parent[v]] = append(children[g.parent[v]], v)
	}
	down := make([][]oracle.Number, n)
	down[0] = repeat(oracle.One, len(g.unary[0]))
	for p := range n {
		for _, v := range children[p] {
			d := len(g.unary[v])
			down[v] = make([]oracle.Number, d)
			for a := range g.unary[p] {
				withoutV := down[p][a].Mul(g.unary[p][a])
				for _, sibling := range children[p] {
					if sibling != v {
						withoutV = withoutV.Mul(up[sibling][a])
					}
				}
				for b := range d {
					down[v][b] = down[v][b].Add(withoutV.Mul(g.pair[v][a*d+b]))
				}
			}
		}
	}

	return down
}

// strip draws a grid of two or three rows of binary variables with tables of any numbers; variable column·rows + row is at (row, column).
// The truth is an exact sum, column by column (the transfer matrix method). A state of a column is a number whose bit r is the value of its
// variable in row r.
func (d *drawer) strip(c *Case) Truth {
	rows, columns := 2+d.Rand.IntN(2), d.size(8, 28, 4)
	c.Model = &factorgraph.Model{Domains: make([]int, rows*columns)}
	for v := range c.Model.Domains {
		c.Model.Domains[v] = 2
	}
	d.Zero = min(d.Zero, 0.05)
	states := 1 << rows
	addPair := func(u, v int) (entry func(x, y int) oracle.Number) {
		t := dense([]int{2, 2}, d.Numbers(4)...)
		c.addFactor(t, u, v)
		table := oracle.ExactEntries(t)
		return func(x, y int) oracle.Number { return table[2*x+y] }
	}

	// sums[s] is the sum over all columns before the current one, given its state s.
	sums := repeat(oracle.One, states)
	for column := range columns {
		// Factors between this column and the one before.
		if column > 0 {
			rowEntry := make([]func(x, y int) oracle.Number, rows)
			for r := range rows {
				rowEntry[r] = addPair((column-1)*rows+r, column*rows+r)
			}
			next := make([]oracle.Number, states)
			for s := range states {
				for before := range states {
					w := sums[before]
					for r := range rows {
						w = w.Mul(rowEntry[r](before>>r&1, s>>r&1))
					}
					next[s] = next[s].Add(w)
				}
			}
			sums = next
		}

		// Factors within this column.
		for r := range rows - 1 {
			entry := addPair(column*rows+r, column*rows+r+1)
			for s := range states {
				sums[s] = sums[s].Mul(entry(s>>r&1, s>>(r+1)&1))
			}
		}
	}

	c.Queries = []query.Query{{Marginals: d.Chance(0.3)}}
	return Truth{Z: total(sums)}
}

// findingBits is the precision of the sums of inclusion and exclusion, which lose some 50 digits by cancellation.
const findingBits = 600

// findings draws a network of diseases, each with a prior, and findings, each a noisy-or of some diseases. The variables are the diseases,
// then the findings. The evidence has up to ten positive findings and some negative ones; the others are not observed. The truth is
// computed by inclusion and exclusion over the positive findings.
func (d *drawer) findings(c *Case) Truth {
	diseases, findings := d.size(20, 100, 6), d.size(5, 45, 5)
	parents, positive := min(diseases, d.size(3, 15, 4)), 1+d.Rand.IntN(8)
	if !d.isSmall && d.Chance(0.2) { // of the size of QMR-DT
		diseases, findings, parents, positive = 600, 100, 100, 6+d.Rand.IntN(5)
	}

	// Priors.
	n := diseases + findings
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	prior := make([][2]float64, diseases)
	for v := range n {
		c.Model.Domains[v] = 2
		if v < diseases {
			p := d.Rand.Float64() * modeltest.Pick(d.Rand, 0.5, 0.01)
			prior[v] = [2]float64{1 - p, p}
			c.addFactor(dense([]int{2}, 1-p, p), v)
		}
	}

	// Findings, and the evidence about them.
	var q query.Query
	s := inclusion{prior: prior}
	for f := range findings {
		scope := d.Shuffled(modeltest.UpTo(diseases))[:parents]
		strengths := make([]float64, parents)
		for i := range strengths {
			strengths[i] = d.Rand.Float64()
		}
		t, err := factorgraph.NoisyOr(modeltest.Pick(d.Rand, 0, 1e-3, d.Rand.Float64()/20), strengths...)
		panicOnError(err)
		c.addFactor(t, append(scope, diseases+f)...)
		switch {
		case f < positive:
			q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: diseases + f, Value: 1})
			s.positive = append(s.positive, absenceOf(t, scope, diseases))
		case d.Chance(0.7):
			q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: diseases + f})
			s.negative = append(s.negative, absenceOf(t, scope, diseases))
		}
	}

	c.Queries = []query.Query{q}
	return Truth{Z: s.solve()}
}

// absence is the probability that a finding is absent given the diseases x: noLeak · Π_i factor[i]^x_i.
type absence struct {
	noLeak float64   // the probability if no disease is present
	factor []float64 // of each disease; 1 if the finding does not depend on it
}

// absenceOf returns P(finding absent | diseases) of a noisy-or over the diseases of scope and the finding. Its CP form has two terms, of
// which the second one is this probability: entry 3 of a vector of two terms and two values is that of term 1 and value 1.
func absenceOf(t *tensor.CP, scope []int, diseases int) absence {
	p := absence{noLeak: t.Weights[1], factor: make([]float64, diseases)}
	for i := range p.factor {
		p.factor[i] = 1
	}
	for pos, v := range scope[:len(t.Shape)-1] {
		p.factor[v] = t.Vectors[pos][3]
	}
	return p
}

// inclusion computes the probability of findings by inclusion and exclusion over the subsets S of the positive ones:
//
//	Z = Σ_S (−1)^|S| Π_f noLeak_f · Π_i (prior[i][0] + prior[i][1] · Π_f factor_f[i]), f in S or negative.
type inclusion struct {
	prior    [][2]float64 // of each disease: P(absent), P(present)
	positive []absence
	negative []absence
}

// findingFloat returns x in the precision of the sums of inclusion and exclusion.
func findingFloat(x float64) *big.Float { return new(big.Float).SetPrec(findingBits).SetFloat64(x) }

// solve returns the probability that the positive findings are present and the negative ones absent.
func (s *inclusion) solve() oracle.Number {
	noLeak, factor := findingFloat(1), make([]*big.Float, len(s.prior))
	for i := range factor {
		factor[i] = findingFloat(1)
	}
	for _, f := range s.negative {
		noLeak, factor = timesAbsence(f, noLeak, factor)
	}
	sum := s.sumSubsets(s.positive, noLeak, factor)
	if sum.Sign() == 0 {
		return oracle.Number{}
	}

	// An integer mantissa of findingBits bits, and an exponent.
	m := new(big.Float)
	exp := sum.MantExp(m)
	i, _ := m.SetMantExp(m, findingBits).Int(nil)
	return oracle.NewNumber(i, int64(exp)-findingBits)
}

// timesAbsence returns the product of P(f absent | diseases) and noLeak · Π_i factor[i]^x_i, in the same form.
func timesAbsence(f absence, noLeak *big.Float, factor []*big.Float) (*big.Float, []*big.Float) {
	noLeak = new(big.Float).Mul(noLeak, findingFloat(f.noLeak))
	out := make([]*big.Float, len(factor))
	for i := range factor {
		if out[i] = factor[i]; f.factor[i] != 1 {
			out[i] = new(big.Float).Mul(factor[i], findingFloat(f.factor[i]))
		}
	}
	return noLeak, out
}

// sumSubsets returns the probability that all positive findings are present and certain others absent, where noLeak · Π_i factor[i]^x_i is
// the probability of the absent ones given the diseases. For the first positive finding f it uses P(f present, …) = P(…) − P(f absent, …).
func (s *inclusion) sumSubsets(positive []absence, noLeak *big.Float, factor []*big.Float) *big.Float {
	if len(positive) > 0 {
		p := s.sumSubsets(positive[1:], noLeak, factor)
		noLeak, factor = timesAbsence(positive[0], noLeak, factor)
		return p.Sub(p, s.sumSubsets(positive[1:], noLeak, factor))
	}

	// Sum over the diseases, which are independent here.
	z := new(big.Float).Set(noLeak)
	for i, p := range s.prior {
		w := new(big.Float).Mul(findingFloat(p[1]), factor[i])
		z.Mul(z, w.Add(w, findingFloat(p[0])))
	}
	return z
}
