package contract

// Marginals of one component: what they are collected in, and their common exponent.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNoVariables says that marginals were asked for of a network that was built directly:
// it has legs, and no variables.
var ErrNoVariables = errors.New("contract: the network has no variables, so there are no marginals")

// collected is M_v(x) = w_v(x) ∂Z/∂w_v(x) of every variable and value, without the network's scale.
type collected struct {
	variable []int           // per link: the variable whose weights it has, −1 for none
	offset   []int           // per variable: the place of its value 0
	at       []scaled.Number // variable-major
}

// newCollected returns zeros for every variable and value of a network that has variables.
func newCollected(net *btn.Network) (*collected, error) {
	// an empty model has none either, but a choice of cores
	if net.Variables == nil && net.Choice == "" {
		return nil, fault.Wrap(fault.BadInput, ErrNoVariables)
	}

	m := &collected{variable: make([]int, len(net.Links)), offset: make([]int, len(net.Variables))}
	for j := range m.variable {
		m.variable[j] = -1
	}

	total := 0
	for v, place := range net.Variables {
		m.variable[place.Link] = v
		m.offset[v] = total
		total += place.Domain
	}
	m.at = make([]scaled.Number, total)
	return m, nil
}

// link adds the marginals of a link's variable. Value x is term x of the link, so
//
//	M_v(x) = weight · w_v(x) · Σ_c h_c [z^c] Π_ℓ (Σ_y A_ℓ[x, y] Σ_a W_ℓ[y, a] z^a)
//
// where h is the derivative of Z by the link's count polynomial and A_ℓ the link's vectors.
func (j form) link(
	k int, h countspace.Poly, weight scaled.Number, weights []tensor.LegWeights,
) error {
	v := j.m.variable[k]
	if v < 0 || weight.IsZero() || h.IsZero() {
		return nil
	}

	cp := j.net.Links[k].T.(*tensor.CP)
	term := termOf(cp, on(j.net.Links[k].Legs, weights), h.Vars()+1, j.ops)
	for x, w := range cp.Weights {
		if w == 0 {
			continue
		}
		p, err := term.poly(j.ctx, x)
		if err != nil {
			return err
		}
		at := &j.m.at[j.m.offset[v]+x]
		*at = at.Add(weight.Mul(scaled.FromFloat(w)).Mul(countspace.Dot(h, p, j.ops)))
	}
	return nil
}

// result returns what was collected times scale under one exponent: the largest mantissa is in ±[1,
// 2), zeros are +0, and what lies 2^−1022 below the largest loses digits and then everything.
func (m *collected) result(scale scaled.Number) *btn.Marginals {
	out := &btn.Marginals{Mant: make([]float64, len(m.at))}
	found := false
	for i, x := range m.at {
		m.at[i] = x.Mul(scale)
		if x = m.at[i]; !x.IsZero() && (!found || x.Exp > out.Exp) {
			out.Exp = x.Exp
			found = true
		}
	}

	for i, x := range m.at {
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

// finite refuses marginals that are not numbers.
func (m *collected) finite() error {
	for v, from := range m.offset {
		to := len(m.at)
		if v+1 < len(m.offset) {
			to = m.offset[v+1]
		}
		for x := from; x < to; x++ {
			if !m.at[x].IsFinite() {
				return fmt.Errorf("%w: marginal of variable %d, value %d",
					tensor.ErrNotFinite, v, x-from)
			}
		}
	}
	return nil
}
