package contraction

// Marginals of one component: what they are Collected in, and their common exponent.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNoVariables says that marginals were asked for of a network that was built directly:
// it has legs, and no variables.
var ErrNoVariables = errors.New("contraction: the network has no variables, so there are no marginals")

// Collected is M_v(x) = w_v(x) ∂Z/∂w_v(x) of every variable and value, without the network's scale.
type Collected struct {
	Variable []int           // per link: the variable whose weights it has, −1 for none
	Offset   []int           // per Variable: the place of its value 0
	At       []scaled.Number // variable-major
}

// newCollected returns zeros for every variable and value of a network that has variables.
func newCollected(net *btn.Network) (*Collected, error) {
	// an empty model has none either, but a choice of cores
	if net.Variables == nil && net.Choice == "" {
		return nil, fault.Wrap(fault.BadInput, ErrNoVariables)
	}

	m := &Collected{Variable: make([]int, len(net.Links)), Offset: make([]int, len(net.Variables))}
	for j := range m.Variable {
		m.Variable[j] = -1
	}

	total := 0
	for v, place := range net.Variables {
		m.Variable[place.Link] = v
		m.Offset[v] = total
		total += place.Domain
	}
	m.At = make([]scaled.Number, total)
	return m, nil
}

// Result returns what was collected times scale under one exponent: the largest mantissa is in ±[1,
// 2), zeros are +0, and what lies 2^−1022 below the largest loses digits and then everything.
func (m *Collected) Result(scale scaled.Number) *btn.Marginals {
	out := &btn.Marginals{Mant: make([]float64, len(m.At))}
	found := false
	for i, x := range m.At {
		m.At[i] = x.Mul(scale)
		if x = m.At[i]; !x.IsZero() && (!found || x.Exp > out.Exp) {
			out.Exp = x.Exp
			found = true
		}
	}

	for i, x := range m.At {
		const vanishing = -1100 // below the smallest float64
		if e := x.Exp - out.Exp; !x.IsZero() && e > vanishing {
			out.Mant[i] = canonicalZero(math.Ldexp(x.Mant, int(e)))
		}
	}
	return out
}

// canonicalZero turns −0 into +0.
func canonicalZero(x float64) float64 {
	if x == 0 {
		return 0
	}
	return x
}

// Finite refuses marginals that are not numbers.
func (m *Collected) Finite() error {
	for v, from := range m.Offset {
		to := len(m.At)
		if v+1 < len(m.Offset) {
			to = m.Offset[v+1]
		}
		for x := from; x < to; x++ {
			if !m.At[x].IsFinite() {
				return fmt.Errorf("%w: marginal of variable %d, value %d",
					tensor.ErrNotFinite, v, x-from)
			}
		}
	}
	return nil
}

// JointValue returns probabilities times Z over the domains of the set;
// nil probabilities are zeros.
func (j Contraction) JointValue(p []float64, z scaled.Number) *btn.Marginals {
	size := 1
	for _, v := range j.Joint {
		size *= j.Net.Variables[v].Domain
	}

	cells := make([]scaled.Number, size)
	for x, q := range p {
		cells[x] = scaled.FromFloat(q).Mul(z)
	}
	return j.JointOf(cells)
}

// JointOf returns the cells of the set under one exponent.
func (j Contraction) JointOf(cells []scaled.Number) *btn.Marginals {
	domains := make([]int, len(j.Joint))
	for k, v := range j.Joint {
		domains[k] = j.Net.Variables[v].Domain
	}

	m := (&Collected{At: cells}).Result(scaled.One)
	m.Domains = domains
	return m
}

// Given returns marginals per variable under one exponent; variables of no row have zeros.
func (j Contraction) Given(rows [][]scaled.Number) *btn.Marginals {
	clear(j.M.At)
	for v, row := range rows {
		copy(j.M.At[j.M.Offset[v]:], row)
	}
	return j.M.Result(scaled.One)
}

// Weighted returns probabilities per variable as marginals that add up to z; variables of no row have zeros.
func (j Contraction) Weighted(rows [][]float64, z scaled.Number) *btn.Marginals {
	clear(j.M.At)
	for v, row := range rows {
		at := j.M.At[j.M.Offset[v]:]
		for x, q := range row {
			at[x] = scaled.FromFloat(q).Mul(z)
		}
	}

	return j.M.Result(scaled.One)
}
