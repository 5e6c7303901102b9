package bp

// State: the result of a run, and quantities read from its messages.

import (
	"math"
	"sync"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// State holds the messages of a run. It keeps the expression, and nothing of it changes: it may be
// read by several goroutines.
type State struct {
	Converged bool  // Change is at most the tolerance
	Updates   int64 // messages computed
	Sweeps    int   // pairs of sweeps among them
	// Change is the largest change of an entry if every message were recomputed from the others: 0
	// at a fixed point.
	Change  float64
	Damping float64 // the last, see Run
	// Contradiction is an index none of whose values the messages allow, −1 for none. With entries ≥
	// 0 it means Z = 0; messages of either sign may also have cancelled. Such a state has no
	// beliefs.
	Contradiction int
	Signed        bool // some entry of the expression is negative: messages and beliefs may be, too

	g    *graph
	m, v []float64

	valued sync.Once // ln and sign are those of Z
	ln     float64
	sign   int
}

// Z returns the Bethe value, which at a fixed point is
//
//	Z_BP = Scale · Π_t z_t · Π_i z_i / Π_(i,t) ⟨m_{t→i}, v_{i→t}⟩,
//	z_t = Σ_x T_t[x] Π_i v_{i→t}[x_i],   z_i = Σ_x Π_t m_{t→i}[x],
//
// as ln |Z_BP| in nats and its sign; −Inf and 0 for a contradiction. It is Z itself on trees.
// Logarithms are summed with compensation: the error grows like the rounding of the result.
// Cost: one pass over tables and messages, at the first call.
func (s *State) Z() (ln float64, sign int) {
	s.valued.Do(func() { s.ln, s.sign = s.z() })
	return s.ln, s.sign
}

// z is Z at its first call.
func (s *State) z() (ln float64, sign int) {
	if s.Contradiction >= 0 || s.g.e.Scale.IsZero() {
		return math.Inf(-1), 0
	}
	c := newKernel(s.g, s.m, s.v)
	total := newLogs()
	total.add(s.g.e.Scale, false)
	for t := range s.g.e.Tables {
		total.add(c.value(t), false)
	}

	for i, d := range s.g.e.Dims {
		if s.g.begin[i] == s.g.end[i] {
			total.add(scaled.FromFloat(float64(d)), false)
			continue
		}
		total.add(c.sumOfProducts(i), false)
		for k := s.g.begin[i]; k < s.g.end[i]; k++ {
			total.add(dot(s.g.message(s.m, k), s.g.message(s.v, k)), true)
		}
	}

	return total.value()
}

// LnZ returns ln |Z_BP| in nats, see Z.
func (s *State) LnZ() float64 {
	ln, _ := s.Z()
	return ln
}

// logs adds up ln |x| and multiplies signs.
type logs struct {
	floats.Sum
	sign int
}

func newLogs() *logs { return &logs{sign: 1} }

// add adds ln |x|, or subtracts it to divide, and multiplies the sign.
func (l *logs) add(x scaled.Number, divide bool) {
	l.sign *= x.Sign()
	ln := x.LogAbs()
	if divide {
		ln = -ln
	}
	l.Add(ln)
}

func (l *logs) value() (float64, int) {
	if l.sign == 0 {
		return math.Inf(-1), 0
	}
	return l.Value(), l.sign
}

// Belief returns P(i = v) ∝ Π_t m_{t→i}[v], normalised to sum 1; uniform for an index in no table,
// and where the messages allow no value.
// Cost: dimension × degree.
func (s *State) Belief(i int) []float64 {
	c := kernel{g: s.g, m: s.m, v: s.v}
	xs := c.product(i)
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

// ToVariable returns m_{t→i}, i the k-th index of table t's scope, normalised to sum 1 (to Σ|·| = 1
// where a message of either sign sums to 0).
func (s *State) ToVariable(t, k int) []float64 {
	m := append([]float64(nil), s.g.message(s.m, s.g.edge(t, k))...)
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

// ToFactor returns v_{i→t} ∝ Π_{s≠t} m_{s→i}, i the k-th index of table t's scope, scaled such that
// ⟨ToVariable(t, k), v⟩ = 1. Where that product is 0, or v would leave float64, Σ|v| is 1.
func (s *State) ToFactor(t, k int) []float64 {
	v := append([]float64(nil), s.g.message(s.v, s.g.edge(t, k))...)
	by := dot(s.ToVariable(t, k), v)
	if by.IsZero() || by.LogAbs() < -700 {
		return v
	}
	for a, x := range v {
		v[a] = scaled.FromFloat(x).Div(by).Float64()
	}
	return v
}

// Messages returns all m_{t→i}, table by table, index by index of its scope: for Options.Warm and
// Restore.
func (s *State) Messages() []float64 {
	out := make([]float64, 0, len(s.m))
	for _, k := range s.g.incidences {
		out = append(out, s.g.message(s.m, k)...)
	}
	return out
}

// sumOfProducts returns Σ_x Π_t m_{t→i}[x].
func (c *kernel) sumOfProducts(i int) scaled.Number {
	sum := 0.0
	if begin, end := c.g.begin[i], c.g.end[i]; end-begin <= carefulDegree {
		for a := range c.g.e.Dims[i] {
			p := 1.0
			for k := begin; k < end; k++ {
				p *= c.m[c.g.at[k]+a]
			}
			sum += p
		}
	}
	if size := math.Abs(sum); size > tiny && size < huge {
		return scaled.FromFloat(sum)
	}
	return scaled.Sum(c.product(i))
}
