// Package additive adds up the values of components: Z, marginals and derivatives are linear in a decomposition (Lemma 5).
//
// The value of a decomposition Σ_i α_i Q^(i) is Z̃ = Σ_i α_i Z(T^{Q^(i)}). α and Z have either sign
// and any range, so the sum is exact and rounded once: the same bits however the work was split and
// whatever arrived first. Logarithms are taken only of the finished sum.
package additive

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

var (
	// ErrNegative says that a total that has to be a partition function is below 0.
	ErrNegative = errors.New("negative total")
	// ErrCancelled says that a sum lost all its digits: what is left is the rounding of its terms.
	ErrCancelled = errors.New("total lost all its digits")
	// ErrNotFinite says that a weight or a value is NaN or infinite.
	ErrNotFinite = errors.New("a component is not a finite number")
	// ErrCount says that there are not as many values as weights.
	ErrCount = errors.New("weights and values do not match")
)

// lostBits is the cancellation in bits above which a sum is not believed: values carry 53 bits, of
// which contractions round away some.
const lostBits = 50

// Total is a sum of components.
type Total struct {
	Z scaled.Number // Z̃ = Σ_i α_i Z_i, correctly rounded
	// CancellationDigits is log10 Σ|α_i Z_i| − log10 |Σ α_i Z_i| ≥ 0: how many decimal digits of
	// the components the sum lost. 0 if all terms are 0, +Inf if non-zero terms cancel exactly.
	CancellationDigits float64
}

// Sum returns Z̃ = Σ_i alpha[i]·z[i] for a model of probabilities: a total of 0 or more.
//
// The products enter exactly and the sum is rounded once, hence the same bits in any order. If all
// terms are 0 the total is 0 and no error. Errors: ErrNegative if the total is below 0 and not only
// rounding, and those of SumSigned; the total is returned beside ErrNegative and ErrCancelled,
// for the report. Source: Hamid and Braun, Lemma 5.
func Sum(alpha, z []scaled.Number) (Total, error) {
	e, err := SumSigned(alpha, z)
	if err == nil && e.Z.Sign() < 0 {
		err = fmt.Errorf("%w: %s as the sum of %d components, %.1f digits of which cancelled",
			ErrNegative, Decimal(e.Z), len(z), e.CancellationDigits)
	}
	return e, err
}

// SumSigned is Sum for algebra that is not about probabilities: the total may have either sign.
// Errors: ErrCount, ErrNotFinite (naming the component), and ErrCancelled if |Σ α_i Z_i| < 2^-50
// Σ|α_i Z_i|.
func SumSigned(alpha, z []scaled.Number) (Total, error) {
	if len(alpha) != len(z) {
		return Total{}, fmt.Errorf("%w: %d weights, %d values", ErrCount, len(alpha), len(z))
	}
	for i := range z {
		if !alpha[i].IsFinite() || !z[i].IsFinite() {
			return Total{}, fmt.Errorf(
				"%w: component %d has weight %v and value %v", ErrNotFinite, i, alpha[i].Mant,
				z[i].Mant,
			)
		}
	}

	total := scaled.SumProducts(alpha, z)
	size := scaled.SumAbsProducts(alpha, z)
	e := Total{Z: total, CancellationDigits: LostDigits(total, size)}
	floor := scaled.Number{Mant: size.Mant, Exp: size.Exp - lostBits}
	if !size.IsZero() && total.Abs().Cmp(floor) < 0 {
		return e, fmt.Errorf("%w: %s is left of %d components whose sizes add up to %s",
			ErrCancelled, Decimal(total), len(z), Decimal(size))
	}
	return e, nil
}

// LostDigits returns log10(size / |total|), and 0 if all terms were 0. Rounding never makes it
// negative.
func LostDigits(total, size scaled.Number) float64 {
	switch {
	case size.IsZero():
		return 0
	case total.IsZero():
		return math.Inf(1)
	}
	return max(0, size.Div(total).Log10Abs())
}

// Decimal formats a number of any range with four digits, as in -1.234e+5678.
func Decimal(x scaled.Number) string {
	if e := x.Exp; x.IsZero() || -1000 < e && e < 1000 {
		return fmt.Sprintf("%.4g", x.Float64())
	}

	l := x.Log10Abs()
	whole := math.Floor(l)
	return fmt.Sprintf("%.4ge%+d", math.Copysign(math.Pow(10, l-whole), x.Mant), int64(whole))
}

// Ones returns n weights of 1.
func Ones(n int) []scaled.Number { return slices.Repeat([]scaled.Number{scaled.One}, n) }
