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

// Sum returns Z̃ = Σ_i alpha[i]·z[i], the total of the components of a model of probabilities, which must be 0 or more.
//
// The products enter exactly and the sum is rounded once, so that any order gives the same bits. If all terms are 0, the total is 0 and
// there is no error. Errors: ErrNegative if the total is below 0 by more than rounding; and those of SumSigned. With ErrNegative
// and ErrCancelled the total is returned, too, for the report. Source: Hamid and Braun, Lemma 5.
func Sum(alpha, z []scaled.Number) (Total, error) {
	total, err := SumSigned(alpha, z)
	if err == nil && total.Z.Sign() < 0 {
		err = fmt.Errorf("%w: %s as the sum of %d components, %.1f digits of which cancelled",
			ErrNegative, Decimal(total.Z), len(z), total.CancellationDigits)
	}
	return total, err
}

// SumSigned returns Z̃ = Σ_i alpha[i]·z[i], rounded once, and how many of its digits cancelled. The total may have either sign. Errors:
// ErrCount; ErrNotFinite, which names the component; and ErrCancelled if |Σ α_i Z_i| < 2^-50 Σ|α_i Z_i| (lostBits is 50).
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

	sum := scaled.SumProducts(alpha, z)
	absoluteSum := scaled.SumAbsProducts(alpha, z)
	total := Total{Z: sum, CancellationDigits: LostDigits(sum, absoluteSum)}
	smallestTrusted := scaled.Number{Mant: absoluteSum.Mant, Exp: absoluteSum.Exp - lostBits}
	if !absoluteSum.IsZero() && sum.Abs().Cmp(smallestTrusted) < 0 {
		return total, fmt.Errorf("%w: %s is left of %d components whose sizes add up to %s",
			ErrCancelled, Decimal(sum), len(z), Decimal(absoluteSum))
	}
	return total, nil
}

// LostDigits returns the number of decimal digits that a sum lost by cancellation among its terms: log10(Σ|terms| / |Σ terms|). It is 0 if
// all terms are 0, +Inf if only the sum is 0, and never negative.
func LostDigits(sum, absoluteSum scaled.Number) float64 {
	switch {
	case absoluteSum.IsZero():
		return 0
	case sum.IsZero():
		return math.Inf(1)
	}
	return max(0, absoluteSum.Div(sum).Log10Abs())
}

// Decimal returns a number of any range as a text with four digits, such as -1.234e+5678.
func Decimal(x scaled.Number) string {
	fitsFloat64 := x.IsZero() || -1000 < x.Exp && x.Exp < 1000
	if fitsFloat64 {
		return fmt.Sprintf("%.4g", x.Float64())
	}

	log10 := x.Log10Abs()
	exponent := math.Floor(log10)
	return fmt.Sprintf("%.4ge%+d", math.Copysign(math.Pow(10, log10-exponent), x.Mant), int64(exponent))
}

// Ones returns a list of n weights of 1.
func Ones(n int) []scaled.Number { return slices.Repeat([]scaled.Number{scaled.One}, n) }
