// Z and marginals by enumeration.

package oracle

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Z returns Σ_x Π_j φ_j(x_j) Π_i w_i(x_i), w the evidence. It panics above MaxStates assignments (the
// observed variables are not enumerated and do not count).
func Z(m *factorgraph.Model, ev factorgraph.Evidence) *big.Float { return SumOf(m, ev).Z }

// Observed is a case as evidence: a value for each of the variables, −1 if it is not observed.
func Observed(variables, values []int) factorgraph.Evidence {
	observed := map[int]int{}
	for k, x := range values {
		if x >= 0 {
			observed[variables[k]] = x
		}
	}
	return factorgraph.Observe(observed)
}

// LogZ returns ln |Z| in nats, −Inf for 0, and the sign of Z.
func LogZ(m *factorgraph.Model, ev factorgraph.Evidence) (float64, int) {
	z := Z(m, ev)
	return Ln(z), z.Sign()
}

// Marginals returns P(X_i = x | evidence) for all i and x, or nil when Z is 0.
func Marginals(m *factorgraph.Model, ev factorgraph.Evidence) [][]float64 {
	return SumOf(m, ev).Marginals()
}

// SumOf adds up the weights of all assignments with the observed values, once for Z and Marginals.
func SumOf(m *factorgraph.Model, ev factorgraph.Evidence) Sums {
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

// Ln returns ln |f| in nats of a number of any range, −Inf for 0.
func Ln(f *big.Float) float64 {
	if f.Sign() == 0 {
		return math.Inf(-1)
	}
	mant := new(big.Float)
	exp := f.MantExp(mant)
	m, _ := mant.Float64()
	return math.Log(math.Abs(m)) + float64(exp)*math.Ln2
}

// RelativeError returns |got − want| / |want|; |got| for want 0. A mantissa and an exponent of 2
// are available from every scaled number.
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
