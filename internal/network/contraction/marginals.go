package contraction

// Marginals of one component: their collection, and the common exponent of the result.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNoVariables states that marginals were asked for of a network that was built directly:
// it has legs, and no variables.
var ErrNoVariables = errors.New("contraction: the network has no variables, so there are no marginals")

// Collected has the unnormalised marginals M_v(x) = w_v(x) ∂Z/∂w_v(x) of every variable v and value x, without the network's scale. M_v(x)
// is At[Offset[v]+x].
type Collected struct {
	Variable []int           // per link: the variable whose weights it has, −1 if it is no variable's link
	Offset   []int           // per variable: the position of its value 0 in At
	At       []scaled.Number // variable by variable, value by value
}

// newCollected returns unnormalised marginals of 0 for every variable and value. It returns ErrNoVariables for a network that was built
// directly.
func newCollected(net *btn.Network) (*Collected, error) {
	// The network of an empty model has no variables either, but it has a choice of cores.
	wasBuiltDirectly := net.Variables == nil && net.Choice == ""
	if wasBuiltDirectly {
		return nil, fault.Wrap(fault.BadInput, ErrNoVariables)
	}

	m := &Collected{Variable: make([]int, len(net.Links)), Offset: make([]int, len(net.Variables))}
	for link := range m.Variable {
		m.Variable[link] = -1
	}

	total := 0
	for v, variable := range net.Variables {
		m.Variable[variable.Link] = v
		m.Offset[v] = total
		total += variable.Domain
	}
	m.At = make([]scaled.Number, total)
	return m, nil
}

// Result multiplies the collected numbers by scale, in place, and returns them as mantissas with one common exponent: that of the largest
// number. So the largest mantissa is in ±[1, 2). Zeros are +0. A number more than 2^1022 below the largest loses digits, or becomes 0.
func (m *Collected) Result(scale scaled.Number) *btn.Marginals {
	result := &btn.Marginals{Mant: make([]float64, len(m.At))}
	hasNonZero := false
	for i, x := range m.At {
		x = x.Mul(scale)
		m.At[i] = x
		if !x.IsZero() && (!hasNonZero || x.Exp > result.Exp) {
			result.Exp = x.Exp
			hasNonZero = true
		}
	}

	for i, x := range m.At {
		const vanishing = -1100 // below the smallest float64
		exp := x.Exp - result.Exp
		if !x.IsZero() && exp > vanishing {
			result.Mant[i] = canonicalZero(math.Ldexp(x.Mant, int(exp)))
		}
	}
	return result
}

// canonicalZero returns x, or +0 if x is −0.
func canonicalZero(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x
}

// CheckFinite returns nil if all marginals are finite. Otherwise it returns an error that names the first one that is infinite or NaN. It
// wraps tensor.ErrNotFinite.
func (m *Collected) CheckFinite() error {
	for v, begin := range m.Offset {
		end := len(m.At)
		if v+1 < len(m.Offset) {
			end = m.Offset[v+1]
		}
		for k := begin; k < end; k++ {
			if !m.At[k].IsFinite() {
				return fmt.Errorf("%w: marginal of variable %d, value %d",
					tensor.ErrNotFinite, v, k-begin)
			}
		}
	}
	return nil
}

// JointValue returns the joint marginal of the variables j.Joint. Its cells are z·probabilities[k], with one cell per combination of
// values, the last variable fastest. If probabilities is nil, the cells are 0.
func (j Contraction) JointValue(probabilities []float64, z scaled.Number) *btn.Marginals {
	size := 1
	for _, v := range j.Joint {
		size *= j.Net.Variables[v].Domain
	}

	cells := make([]scaled.Number, size)
	for k, p := range probabilities {
		cells[k] = scaled.FromFloat(p).Mul(z)
	}
	return j.JointOf(cells)
}

// JointOf returns the joint marginal of the variables j.Joint with the given cells, as mantissas with one common exponent. There is one
// cell per combination of values, the last variable fastest.
func (j Contraction) JointOf(cells []scaled.Number) *btn.Marginals {
	domains := make([]int, len(j.Joint))
	for k, v := range j.Joint {
		domains[k] = j.Net.Variables[v].Domain
	}

	m := (&Collected{At: cells}).Result(scaled.One)
	m.Domains = domains
	return m
}

// MarginalsOf returns marginals made of rows, the unnormalised marginals of each variable, with one common exponent. A variable beyond the
// last row, or with an empty row, has zeros.
func (j Contraction) MarginalsOf(rows [][]scaled.Number) *btn.Marginals {
	clear(j.Marginals.At)
	for v, row := range rows {
		copy(j.Marginals.At[j.Marginals.Offset[v]:], row)
	}
	return j.Marginals.Result(scaled.One)
}

// ScaledMarginals returns marginals made of rows, the probabilities of each variable, which are multiplied by z: the marginals of a
// variable add up to z. A variable beyond the last row, or with an empty row, has zeros. It uses j.Marginals as memory.
func (j Contraction) ScaledMarginals(rows [][]float64, z scaled.Number) *btn.Marginals {
	clear(j.Marginals.At)
	for v, row := range rows {
		marginals := j.Marginals.At[j.Marginals.Offset[v]:]
		for x, p := range row {
			marginals[x] = scaled.FromFloat(p).Mul(z)
		}
	}

	return j.Marginals.Result(scaled.One) // z is in the numbers already
}
