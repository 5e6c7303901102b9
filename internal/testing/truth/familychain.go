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

// chain is a tree of tables of two variables: pair[v] is over (parent[v], v), parent[v] < v, the
// root is 0.
type chain struct {
	parent []int
	pair   [][]oracle.Number
	unary  [][]oracle.Number
}

func constant(n int, x oracle.Number) []oracle.Number {
	out := make([]oracle.Number, n)
	for i := range out {
		out[i] = x
	}
	return out
}

// solve returns Z and all marginals, by exact messages towards the root and back.
func (g *chain) solve() Truth {
	n := len(g.parent)
	// message to the parent; all that is known below v, v's own included
	up, below := make([][]oracle.Number, n), make([][]oracle.Number, n)
	for v := range n {
		below[v] = append([]oracle.Number{}, g.unary[v]...)
	}
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
	down := g.down(up)
	for v := range n {
		for a := range below[v] {
			t.Marginals[v] = append(t.Marginals[v], below[v][a].Mul(down[v][a]).Over(t.Z))
		}
	}
	return t
}

// down returns the message of every variable's parent.
func (g *chain) down(up [][]oracle.Number) [][]oracle.Number {
	n := len(g.parent)
	children := make([][]int, n)
	for v := 1; v < n; v++ {
		children[g.parent[v]] = append(children[g.parent[v]], v)
	}
	down := make([][]oracle.Number, n)
	down[0] = constant(len(g.unary[0]), oracle.One)
	for p := range n {
		for _, v := range children[p] {
			d := len(g.unary[v])
			down[v] = make([]oracle.Number, d)
			for a := range g.unary[p] {
				rest := down[p][a].Mul(g.unary[p][a])
				for _, other := range children[p] {
					if other != v {
						rest = rest.Mul(up[other][a])
					}
				}
				for b := range d {
					down[v][b] = down[v][b].Add(rest.Mul(g.pair[v][a*d+b]))
				}
			}
		}
	}

	return down
}

// strip draws a grid of two or three rows with tables of any numbers. Its truth is an exact sum
// column by column.
func (d *drawer) strip(c *Case) Truth {
	rows, columns := 2+d.Rand.IntN(2), d.size(8, 28, 4)
	c.Model = &factorgraph.Model{Domains: make([]int, rows*columns)}
	for v := range c.Model.Domains {
		c.Model.Domains[v] = 2
	}
	d.Zero = min(d.Zero, 0.05)
	states := 1 << rows
	sums := constant(states, oracle.One) // of everything left of a column, by the column's state
	pair := func(u, v int) func(x, y int) oracle.Number {
		t := dense([]int{2, 2}, d.Numbers(4)...)
		c.add(t, u, v)
		table := oracle.ExactEntries(t)
		return func(x, y int) oracle.Number { return table[2*x+y] }
	}
	for column := range columns {
		if column > 0 {
			across := make([]func(x, y int) oracle.Number, rows)
			for r := range rows {
				across[r] = pair((column-1)*rows+r, column*rows+r)
			}
			next := make([]oracle.Number, states)
			for s := range states {
				for from := range states {
					w := sums[from]
					for r := range rows {
						w = w.Mul(across[r](from>>r&1, s>>r&1))
					}
					next[s] = next[s].Add(w)
				}
			}
			sums = next
		}

		for r := range rows - 1 {
			along := pair(column*rows+r, column*rows+r+1)
			for s := range states {
				sums[s] = sums[s].Mul(along(s>>r&1, s>>(r+1)&1))
			}
		}
	}

	c.Queries = []query.Query{{Marginals: d.Chance(0.3)}}
	return Truth{Z: total(sums)}
}

// findingBits is the precision of sums that lose some 50 digits.
const findingBits = 600

// findings draws a two-layer noisy-or network with some findings there and some not.
func (d *drawer) findings(c *Case) Truth {
	diseases, findings := d.size(20, 100, 6), d.size(5, 45, 5)
	parents, positive := min(diseases, d.size(3, 15, 4)), 1+d.Rand.IntN(8)
	if !d.few && d.Chance(0.2) { // of the size of QMR-DT
		diseases, findings, parents, positive = 600, 100, 100, 6+d.Rand.IntN(5)
	}
	n := diseases + findings
	c.Model = &factorgraph.Model{Domains: make([]int, n)}
	prior := make([][2]float64, diseases)
	for v := range n {
		c.Model.Domains[v] = 2
		if v < diseases {
			p := d.Rand.Float64() * modeltest.Pick(d.Rand, 0.5, 0.01)
			prior[v] = [2]float64{1 - p, p}
			c.add(dense([]int{2}, 1-p, p), v)
		}
	}

	var q query.Query
	s := inclusion{prior: prior}
	for f := range findings {
		scope := d.Shuffled(modeltest.UpTo(diseases))[:parents]
		p := make([]float64, parents)
		for i := range p {
			p[i] = d.Rand.Float64()
		}
		t, err := factorgraph.NoisyOr(modeltest.Pick(d.Rand, 0, 1e-3, d.Rand.Float64()/20), p...)
		must(err)
		c.add(t, append(scope, diseases+f)...)
		switch {
		case f < positive:
			q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: diseases + f, Value: 1})
			s.positive = append(s.positive, absent(t, scope, diseases))
		case d.Chance(0.7):
			q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: diseases + f})
			s.negative = append(s.negative, absent(t, scope, diseases))
		}
	}

	c.Queries = []query.Query{q}
	return Truth{Z: s.solve()}
}

// absence is P(finding absent | diseases): leak · Π_i factor[i]^x_i.
type absence struct {
	leak   float64
	factor []float64
}

// absent reads it out of the CP form of a noisy-or, whose second term it is.
func absent(t *tensor.CP, scope []int, diseases int) absence {
	p := absence{leak: t.Weights[1], factor: make([]float64, diseases)}
	for i := range p.factor {
		p.factor[i] = 1
	}
	for pos, v := range scope[:len(t.Shape)-1] {
		p.factor[v] = t.Vectors[pos][3]
	}
	return p
}

// inclusion sums over the subsets of the positive findings: Z = Σ_S (−1)^|S| Π_i (prior_0 + prior_1
// Π_{f in S or negative} q_f,i).
type inclusion struct {
	prior              [][2]float64
	positive, negative []absence
}

func float(x float64) *big.Float { return new(big.Float).SetPrec(findingBits).SetFloat64(x) }

// solve returns Z, exactly.
func (s *inclusion) solve() oracle.Number {
	leak, factor := float(1), make([]*big.Float, len(s.prior))
	for i := range factor {
		factor[i] = float(1)
	}
	for _, f := range s.negative {
		leak, factor = with(f, leak, factor)
	}
	sum := s.visit(s.positive, leak, factor)
	if sum.Sign() == 0 {
		return oracle.Number{}
	}
	m := new(big.Float)
	exp := sum.MantExp(m)
	i, _ := m.SetMantExp(m, findingBits).Int(nil)
	return oracle.NewNumber(i, int64(exp)-findingBits)
}

// with multiplies P(f absent) in.
func with(f absence, leak *big.Float, factor []*big.Float) (*big.Float, []*big.Float) {
	leak = new(big.Float).Mul(leak, float(f.leak))
	out := make([]*big.Float, len(factor))
	for i := range factor {
		if out[i] = factor[i]; f.factor[i] != 1 {
			out[i] = new(big.Float).Mul(factor[i], float(f.factor[i]))
		}
	}
	return leak, out
}

// visit is P(the rest present and the chosen ones absent): present = everything less absent.
func (s *inclusion) visit(rest []absence, leak *big.Float, factor []*big.Float) *big.Float {
	if len(rest) > 0 {
		a := s.visit(rest[1:], leak, factor)
		leak, factor = with(rest[0], leak, factor)
		return a.Sub(a, s.visit(rest[1:], leak, factor))
	}
	z := new(big.Float).Set(leak)
	for i, p := range s.prior {
		w := new(big.Float).Mul(float(p[1]), factor[i])
		z.Mul(z, w.Add(w, float(p[0])))
	}
	return z
}
