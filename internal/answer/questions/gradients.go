package questions

// Questions about the numbers of the model: gradients of ln Z, and likelihoods of cases.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// gradients asks for ∂ ln Z/∂θ = (∂Z/∂θ)/Z by every number θ of every factor.
var gradients = kind{
	name: "gradients",
	want: func(q *query.Query, w *btn.Want) { w.Derivatives = w.Derivatives || q.Gradients },
	answer: func(a *answer) {
		if !a.asked.Query.Gradients || a.total.Derivatives == nil {
			return
		}
		g := gradientsOf(a.total.Derivatives, a.total.Sizes, a.total.Z)
		if a.result.Gradients = &g; g.By == nil {
			a.warn("a gradient is beyond float64: all of them are given as mantissas and exponents")
		}
	},
}

// likelihood asks for the sum of ln Z over cases. If a case is impossible, the answer is its position and no sum.
var likelihood = kind{
	name:     "likelihood",
	want:     func(q *query.Query, w *btn.Want) { w.Cases = q.Cases },
	isOfZero: true,
	answer: func(a *answer) {
		c := a.total.Cases
		if c == nil {
			return
		}
		a.result.Likelihood = &query.Likelihood{Gradients: c.Gradients}
		if c.Impossible > 0 {
			row := c.Impossible - 1 // Impossible counts from 1
			a.result.Likelihood.Impossible = &row
			return
		}
		a.result.Likelihood.Ln = finite(c.Ln)
	},
}

// gradientsOf returns the derivatives of Z divided by Z, core by core (a core is the tensor of one factor of the model). Core c has
// sizes[c] of the derivatives. If a quotient is beyond float64, all quotients are given as mantissas and exponents. z is Z.
func gradientsOf(derivatives []scaled.Number, sizes []int, z scaled.Number) query.Gradients {
	quotients := make([][]float64, len(sizes))
	next := 0 // in derivatives
	for c, n := range sizes {
		quotients[c] = make([]float64, n)
		for k := range n {
			if quotients[c][k] = derivatives[next].Div(z).Float64(); math.IsInf(quotients[c][k], 0) {
				return scaledGradients(derivatives, sizes, z)
			}
			next++
		}
	}
	return query.Gradients{By: quotients}
}

// scaledGradients returns the derivatives divided by z as mantissas and exponents, which hold numbers of any size. They are in a list for
// each core, the tensor of one factor of the model: core c has sizes[c] of the derivatives.
func scaledGradients(derivatives []scaled.Number, sizes []int, z scaled.Number) query.Gradients {
	g := query.Gradients{Mantissas: make([][]float64, len(sizes)), Exponents: make([][]int64, len(sizes))}
	for c, n := range sizes {
		g.Mantissas[c], g.Exponents[c] = make([]float64, n), make([]int64, n)
		for k := range n {
			x := derivatives[k].Div(z)
			g.Mantissas[c][k], g.Exponents[c][k] = x.Mant, x.Exp
		}
		derivatives = derivatives[n:]
	}
	return g
}
