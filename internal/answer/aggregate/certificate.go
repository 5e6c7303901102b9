package aggregate

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// The certificate of an estimate: an interval for ln Z by Cauchy–Schwarz.

// certificate returns the interval that contains ln Z by the inequality of Cauchy and Schwarz, around an estimate Z̃ = exp(lnZ). Z is
// ⟨B, ⊗_j L^(j)⟩ with the base tensor B and the links L^(j), and Z̃ is the same with an approximation B̃ of B:
//
//	|Z − Z̃| = |⟨B − B̃, ⊗_j L^(j)⟩| ≤ ‖B − B̃‖ · Π_j ‖L^(j)‖,   ln Z in [ln(Z̃ − bound), ln(Z̃ + bound)]
//
// lnNormError is ln ‖B − B̃‖ and lnLinks is ln Π_j ‖L^(j)‖, in nats; the scale of the network, a factor of all terms, is in one of the two.
// digits is the number of decimal digits of Z̃ that cancelled. If it is above withinDigits, the rounding of Z̃ is added to the bound. The
// lower end is nil if the bound is at least Z̃. The result is nil if an argument or the bound is not finite.
func certificate(lnZ, lnNormError, lnLinks, digits float64) *query.Certificate {
	bound := lnNormError + lnLinks // ln of the bound on |Z − Z̃|
	if !isFinite(bound) || !isFinite(lnZ) || !isFinite(digits) {
		return nil
	}

	if digits > withinDigits {
		bound = logSum(bound, lnZ+math.Log(judge.Rounding)+digits*math.Ln10) // cancelled digits raise the relative rounding error
	}
	c := &query.Certificate{LnBound: bound, LnUpper: logSum(lnZ, bound)}
	if bound < lnZ {
		c.LnLower = finite(lnZ + log1mExp(bound-lnZ))
	}
	return c
}

// logSum returns ln(e^a + e^b).
func logSum(a, b float64) float64 { return max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b))) }

// log1mExp returns ln(1 − exp(x)) for x < 0 without losing digits near 0 or −∞. Source: Mächler,
// Accurately computing log(1 − exp(−|a|)), which switches between the two forms at −ln 2.
func log1mExp(x float64) float64 {
	if x > -math.Ln2 {
		return math.Log(-math.Expm1(x))
	}
	return math.Log1p(-math.Exp(x))
}

// isFinite reports whether x is neither NaN nor ±Inf.
func isFinite(x float64) bool { return x-x == 0 }

// finite returns a pointer to x, or nil if x is NaN or ±Inf, which JSON cannot hold.
func finite(x float64) *float64 {
	if !isFinite(x) {
		return nil
	}
	return &x
}
