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
	// Contradiction is an index all of whose values the messages exclude, or −1. With entries ≥ 0 it means Z = 0; otherwise messages of
	// both signs may have cancelled. A state with a contradiction has no beliefs.
	Contradiction int
	Signed        bool // some entry of the expression is negative: messages and beliefs may be, too

	graph *graph
	// All messages, one after the other as in graph.messageStart: toIndex has m_{t→i}, from tables to indices, and toTable has v_{i→t},
	// from indices to tables.
	toIndex, toTable []float64

	zOnce sync.Once // computes lnZ and signZ at the first call of Z
	lnZ   float64
	signZ int
}

// Z returns the Bethe value, which at a fixed point is
//
//	Z_BP = Scale · Π_t z_t · Π_i z_i / Π_(i,t) ⟨m_{t→i}, v_{i→t}⟩,
//	z_t = Σ_x T_t[x] Π_i v_{i→t}[x_i],   z_i = Σ_x Π_t m_{t→i}[x],
//
// as ln |Z_BP| in nats and its sign. For a contradiction it returns −Inf and 0. On trees it is Z. Logarithms are summed with compensation,
// so that the error is like the rounding of the result. Cost: one pass over tables and messages, at the first call.
func (s *State) Z() (ln float64, sign int) {
	s.zOnce.Do(func() { s.lnZ, s.signZ = s.computeZ() })
	return s.lnZ, s.signZ
}

// computeZ computes ln |Z_BP| and the sign of the Bethe value
//
//	Z_BP = Scale · Π_t z_t · Π_i z_i / Π_(i,t) ⟨m_{t→i}, v_{i→t}⟩
//
// with z_t = Σ_x T_t[x] Π_i v_{i→t}[x_i] and z_i = Σ_x Π_t m_{t→i}[x]. m are the messages to indices, v those to tables.
func (s *State) computeZ() (lnZ float64, signZ int) {
	if s.Contradiction >= 0 || s.graph.expression.Scale.IsZero() {
		return math.Inf(-1), 0
	}
	kernel := newKernel(s.graph, s.toIndex, s.toTable)
	product := newLogProduct()
	product.multiply(s.graph.expression.Scale)
	for t := range s.graph.expression.Tables {
		product.multiply(kernel.tableValue(t))
	}

	for i, d := range s.graph.expression.Dims {
		if s.graph.firstIncidence[i] == s.graph.endIncidence[i] { // an index in no table: the sum over its values is their number
			product.multiply(scaled.FromFloat(float64(d)))
			continue
		}
		product.multiply(kernel.sumOfProducts(i))
		for k := s.graph.firstIncidence[i]; k < s.graph.endIncidence[i]; k++ {
			product.divide(scalarProductNumber(s.graph.messageOf(s.toIndex, k), s.graph.messageOf(s.toTable, k)))
		}
	}

	return product.value()
}

// LnZ returns ln |Z_BP| of the Bethe value Z_BP in nats, see Z.
func (s *State) LnZ() float64 {
	lnZ, _ := s.Z()
	return lnZ
}

// logProduct is a product of numbers, kept as the sum of their ln |x| and the product of their signs.
type logProduct struct {
	floats.Sum
	sign int
}

// newLogProduct returns the empty product, 1.
func newLogProduct() *logProduct { return &logProduct{sign: 1} }

// multiply multiplies the product by x.
func (l *logProduct) multiply(x scaled.Number) {
	l.sign *= x.Sign()
	l.Add(x.LogAbs())
}

// divide divides the product by x.
func (l *logProduct) divide(x scaled.Number) {
	l.sign *= x.Sign()
	l.Add(-x.LogAbs())
}

// value returns ln of the absolute value of the product, and its sign; −Inf and 0 if a factor was 0.
func (l *logProduct) value() (float64, int) {
	if l.sign == 0 {
		return math.Inf(-1), 0
	}
	return l.Value(), l.sign
}

// Belief returns the belief of index i, P(i = x) ∝ Π_t m_{t→i}[x], normalised to the sum 1. m_{t→i} is the message from table t to i. The
// belief is uniform for an index in no table, and if the messages exclude all values. Cost: dimension × degree.
func (s *State) Belief(i int) []float64 {
	kernel := kernel{graph: s.graph, toIndex: s.toIndex, toTable: s.toTable}
	products := kernel.productOfMessages(i)
	belief := make([]float64, len(products))
	if total := scaled.Sum(products); !total.IsZero() {
		for x, product := range products {
			belief[x] = product.Div(total).Float64()
		}
		return belief
	}
	for x := range belief {
		belief[x] = 1 / float64(len(belief))
	}
	return belief
}

// ToVariable returns the message from table t to the k-th index of its scope, normalised to the sum 1, or to Σ|·| = 1 if the sum is 0.
func (s *State) ToVariable(t, k int) []float64 {
	m := append([]float64(nil), s.graph.messageOf(s.toIndex, s.graph.incidenceAt(t, k))...)
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

// ToFactor returns the message v from the k-th index of table t's scope to the table, scaled so that ⟨ToVariable(t, k), v⟩ is 1. It is
// proportional to the product of the messages from the other tables to the index. If ⟨ToVariable(t, k), v⟩ is 0, or too small for float64,
// v is normalised to Σ|v| = 1.
func (s *State) ToFactor(t, k int) []float64 {
	v := append([]float64(nil), s.graph.messageOf(s.toTable, s.graph.incidenceAt(t, k))...)
	product := scalarProductNumber(s.ToVariable(t, k), v)
	if product.IsZero() || product.LogAbs() < -700 { // e^−700 is near the smallest number of float64
		return v
	}
	for a, x := range v {
		v[a] = scaled.FromFloat(x).Div(product).Float64()
	}
	return v
}

// Messages returns the messages to indices one after the other, table by table, in the sequence of the scopes. Restore makes a state of
// them.
func (s *State) Messages() []float64 {
	messages := make([]float64, 0, len(s.toIndex))
	for _, k := range s.graph.incidences {
		messages = append(messages, s.graph.messageOf(s.toIndex, k)...)
	}
	return messages
}

// sumOfProducts returns z_i = Σ_x Π_t m_{t→i}[x], where m_{t→i} is the message from table t to index i. If i has at most carefulDegree
// tables, it computes in float64. It computes with exponents if there are more tables, or if the sum in float64 is out of the safe range,
// between tiny (2^−400) and huge (2^900).
func (c *kernel) sumOfProducts(i int) scaled.Number {
	sum := 0.0
	begin, end := c.graph.firstIncidence[i], c.graph.endIncidence[i]
	if end-begin <= carefulDegree {
		for x := range c.graph.expression.Dims[i] {
			product := 1.0
			for k := begin; k < end; k++ {
				product *= c.toIndex[c.graph.messageStart[k]+x]
			}
			sum += product
		}
	}
	if size := math.Abs(sum); size > tiny && size < huge { // not so if there are more tables: then sum is 0
		return scaled.FromFloat(sum)
	}
	return scaled.Sum(c.productOfMessages(i))
}
