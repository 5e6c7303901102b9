// Z and marginals by enumeration.

package oracle

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Z returns the partition function of a model under evidence: Σ_x Π_j φ_j(x) Π_i w_i(x_i), where w_i(x_i) is the likelihood of soft
// evidence on variable i, and observed variables have their value only. It panics above MaxStates assignments of the other variables.
func Z(m *factorgraph.Model, ev factorgraph.Evidence) *big.Float { return SumModel(m, ev).Z }

// ObservedEvidence returns the evidence variables[k] = values[k] for all k, without those whose value is −1, which are not observed.
func ObservedEvidence(variables, values []int) factorgraph.Evidence {
	observed := map[int]int{}
	for k, x := range values {
		if x >= 0 {
			observed[variables[k]] = x
		}
	}
	return factorgraph.Observe(observed)
}

// LogZ returns ln |Z| in nats, −Inf if Z is 0, and the sign of Z.
func LogZ(m *factorgraph.Model, ev factorgraph.Evidence) (float64, int) {
	z := Z(m, ev)
	return Ln(z), z.Sign()
}

// Marginals returns P(X_i = x | evidence) for all i and x, or nil when Z is 0.
func Marginals(m *factorgraph.Model, ev factorgraph.Evidence) [][]float64 {
	return SumModel(m, ev).Marginals()
}

// SumModel returns the sum of the weights of all assignments that have the observed values (Z), and its parts by the value of each
// variable.
func SumModel(m *factorgraph.Model, ev factorgraph.Evidence) Sums {
	s := newSummer(m.Domains)
	for _, o := range ev.Hard {
		s.allowed[o.Var] = []int{o.Value}
	}
	for _, l := range ev.Soft {
		s.multiply([]int{l.Var}, func(x []int) *big.Float { return fromFloat(l.Weights[x[0]]) })
	}
	for _, f := range m.Factors {
		s.multiply(f.Scope, func(x []int) *big.Float { return Entry(f.Table, x) })
	}
	return s.sum(fromFloat(1))
}

// Ln returns ln |f| in nats, −Inf if f is 0. Numbers beyond the range of float64 are allowed.
func Ln(f *big.Float) float64 {
	if f.Sign() == 0 {
		return math.Inf(-1)
	}
	mant := new(big.Float)
	exp := f.MantExp(mant)
	m, _ := mant.Float64()
	return math.Log(math.Abs(m)) + float64(exp)*math.Ln2
}

// RelativeError returns |got − want| / |want| for got = mant·2^exp, or |got| if want is 0.
func RelativeError(mant float64, exp int64, want *big.Float) float64 {
	got := fromFloat(mant)
	got.SetMantExp(got, int(exp))
	diff := newFloat().Sub(got, want)
	if want.Sign() != 0 {
		diff.Quo(diff, want)
	}
	e, _ := diff.Float64()
	return math.Abs(e)
}
