package bp

// State: the result of a run, and quantities read from its messages.

import (
	"math"
	"sync"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// State has the messages of a run. It keeps the expression. It does not change, so that several goroutines may read it.
type State struct {
	Converged bool  // Change is at most the tolerance
	Updates   int64 // the number of messages computed
	Sweeps    int   // pairs of sweeps, in Updates
	// Change is the largest change of an entry that would result if every message were computed again from the others. It is 0 at a fixed
	// point.
	Change  float64
	Damping float64 // that of the last phase, see Run
	// Contradiction is an index all of whose values the messages exclude, or −1. With entries ≥ 0 it means Z = 0; otherwise messages of both
	// signs may have cancelled. A state with a contradiction has no beliefs.
	Contradiction int
	Signed        bool // some entry of the expression is negative: messages and beliefs may be, too

	g    *graph
	m, v []float64 // all messages, by graph.offset: m from tables to indices, v from indices to tables

	zOnce sync.Once // for ln and sign, the results of Z
	ln    float64
	sign  int
}

// Z returns the Bethe value, which at a fixed point is
//
//	Z_BP = Scale · Π_t z_t · Π_i z_i / Π_(i,t) ⟨m_{t→i}, v_{i→t}⟩,
//	z_t = Σ_x T_t[x] Π_i v_{i→t}[x_i],   z_i = Σ_x Π_t m_{t→i}[x],
//
// as ln |Z_BP| in nats and its sign. For a contradiction it returns −Inf and 0. On trees it is Z. Logarithms are summed with compensation,
// so that the error is like the rounding of the result. Cost: one pass over tables and messages, at the first call.
func (s *State) Z() (ln float64, sign int) {
	s.zOnce.Do(func() { s.ln, s.sign = s.computeZ() })
	return s.ln, s.sign
}

// computeZ computes the results of Z.
func (s *State) computeZ() (ln float64, sign int) {
	if s.Contradiction >= 0 || s.g.e.Scale.IsZero() {
		return math.Inf(-1), 0
	}
	c := newKernel(s.g, s.m, s.v)
	total := newLogSum()
	total.add(s.g.e.Scale, false)
	for t := range s.g.e.Tables {
		total.add(c.tableValue(t), false)
	}

	for i, d := range s.g.e.Dims {
		if s.g.begin[i] == s.g.end[i] {
			total.add(scaled.FromFloat(float64(d)), false)
			continue
		}
		total.add(c.sumOfProducts(i), false)
		for k := s.g.begin[i]; k < s.g.end[i]; k++ {
			total.add(scalarProductNumber(s.g.message(s.m, k), s.g.message(s.v, k)), true)
		}
	}

	return total.value()
}

// LnZ returns ln |Z_BP| in nats, see Z.
func (s *State) LnZ() float64 {
	ln, _ := s.Z()
	return ln
}

// logSum is a product of numbers as the sum of their ln |x| and the product of their signs.
type logSum struct {
	floats.Sum
	sign int
}

// newLogSum returns the empty product, 1.
func newLogSum() *logSum { return &logSum{sign: 1} }

// add multiplies the product by x, or divides it.
func (l *logSum) add(x scaled.Number, divide bool) {
	l.sign *= x.Sign()
	ln := x.LogAbs()
	if divide {
		ln = -ln
	}
	l.Add(ln)
}

// value returns ln of the absolute value of the product, and its sign; −Inf and 0 if a factor was 0.
func (l *logSum) value() (float64, int) {
	if l.sign == 0 {
		return math.Inf(-1), 0
	}
	return l.Value(), l.sign
}

// Belief returns P(i = v) ∝ Π_t m_{t→i}[v], normalised to the sum 1. It is uniform for an index in no table, and if the messages exclude
// all values. Cost: dimension × degree.
func (s *State) Belief(i int) []float64 {
	c := kernel{g: s.g, m: s.m, v: s.v}
	xs := c.productOfMessages(i)
	out := make([]float64, len(xs))
	if total := scaled.Sum(xs); !total.IsZero() {
		for a, x := range xs {
			out[a] = x.Div(total).Float64()
		}
		return out
	}
	for a := range out {
		out[a] = 1 / float64(len(out))
	}
	return out
}

// ToVariable returns m_{t→i}, where i is the k-th index of table t's scope, normalised to the sum 1, or to Σ|·| = 1 if the sum is 0.
func (s *State) ToVariable(t, k int) []float64 {
	m := append([]float64(nil), s.g.message(s.m, s.g.incidence(t, k))...)
	sum := 0.0
	for _, x := range m {
		sum += x
	}
	if sum != 0 {
		for a := range m {
			m[a] /= sum
		}
	}
	return m
}

// ToFactor returns v_{i→t} ∝ Π_{s≠t} m_{s→i}, where i is the k-th index of table t's scope, scaled so that ⟨ToVariable(t, k), v⟩ is 1. If
// that product is 0, or too small for float64, v is normalised to Σ|v| = 1.
func (s *State) ToFactor(t, k int) []float64 {
	v := append([]float64(nil), s.g.message(s.v, s.g.incidence(t, k))...)
	product := scalarProductNumber(s.ToVariable(t, k), v)
	if product.IsZero() || product.LogAbs() < -700 {
		return v
	}
	for a, x := range v {
		v[a] = scaled.FromFloat(x).Div(product).Float64()
	}
	return v
}

// Messages returns all m_{t→i}, table by table, in the sequence of the scopes, for Restore.
func (s *State) Messages() []float64 {
	out := make([]float64, 0, len(s.m))
	for _, k := range s.g.incidences {
		out = append(out, s.g.message(s.m, k)...)
	}
	return out
}

// sumOfProducts returns z_i = Σ_x Π_t m_{t→i}[x].
func (c *kernel) sumOfProducts(i int) scaled.Number {
	sum := 0.0
	if begin, end := c.g.begin[i], c.g.end[i]; end-begin <= carefulDegree {
		for a := range c.g.e.Dims[i] {
			p := 1.0
			for k := begin; k < end; k++ {
				p *= c.m[c.g.offset[k]+a]
			}
			sum += p
		}
	}
	if size := math.Abs(sum); size > tiny && size < huge {
		return scaled.FromFloat(sum)
	}
	return scaled.Sum(c.productOfMessages(i))
}
