package questions

// Questions about the numbers of the model: gradients of ln Z, and likelihoods of cases.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// gradients are ∂ ln Z/∂θ by every number θ of every factor.
var gradients = kind{
	name: "gradients",
	want: func(q *query.Query, w *btn.Want) { w.Derivatives = w.Derivatives || q.Gradients },
	answer: func(a *answer) {
		if !a.asked.Query.Gradients || a.total.Derivatives == nil {
			return
		}
		g := quotients(a.total.Derivatives, a.total.Sizes, a.total.Z)
		if a.to.Gradients = &g; g.By == nil {
			a.warn("a gradient is beyond float64: all of them are given as mantissas and exponents")
		}
	},
}

// likelihood is the sum of ln Z over cases.
var likelihood = kind{
	name:     "likelihood",
	want:     func(q *query.Query, w *btn.Want) { w.Cases = q.Cases },
	isOfZero: true,
	answer: func(a *answer) {
		c := a.total.Cases
		if c == nil {
			return
		}
		a.to.Likelihood = &query.Likelihood{Gradients: c.Gradients}
		if c.Impossible > 0 {
			row := c.Impossible - 1
			a.to.Likelihood.Impossible = &row
			return
		}
		a.to.Likelihood.Ln = finite(c.Ln)
	},
}

// quotients divides derivatives by Z, core by core: into numbers with exponents where one is beyond float64.
func quotients(by []scaled.Number, sizes []int, z scaled.Number) query.Gradients {
	out := make([][]float64, len(sizes))
	at := 0
	for c, n := range sizes {
		out[c] = make([]float64, n)
		for k := range n {
			if out[c][k] = by[at].Div(z).Float64(); math.IsInf(out[c][k], 0) {
				return scaledGradients(by, sizes, z)
			}
			at++
		}
	}
	return query.Gradients{By: out}
}

// scaledGradients is gradients for numbers of any range.
func scaledGradients(by []scaled.Number, sizes []int, z scaled.Number) query.Gradients {
	out := query.Gradients{Mantissas: make([][]float64, len(sizes)), Exponents: make([][]int64, len(sizes))}
	for c, n := range sizes {
		out.Mantissas[c], out.Exponents[c] = make([]float64, n), make([]int64, n)
		for k := range n {
			x := by[k].Div(z)
			out.Mantissas[c][k], out.Exponents[c][k] = x.Mant, x.Exp
		}
		by = by[n:]
	}
	return out
}
