package btn

// Maps: constructors of orthogonal ones, and inversion with a condition number.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/query"
)

// MaxCondition is the largest 2-norm condition number of a map that is inverted. Lemma 1 applies an
// inverse along every mode of a factor and the map itself in the variable tensor, so a condition
// number κ costs about log10 κ digits a leg; 1e8 leaves half of a float64's.
const MaxCondition = 1e8

// ErrIllConditioned says that a map is singular or too close to it.
var ErrIllConditioned = errors.New("btn: map is singular or ill-conditioned")

// ErrMap says that a map is not a square matrix of the leg's dimension with finite entries.
var ErrMap = errors.New("btn: map")

// Identity returns the map that changes nothing.
func Identity() Map { return Map{Kind: query.MapIdentity} }

// Orthogonal returns the orthogonal map for dimension d: the identity for d ≤ 1, the Hadamard map for 2, and DCT-II above.
func Orthogonal(d int) Map {
	switch {
	case d <= 1:
		return Identity()
	case d == 2:
		return Hadamard()
	}
	return DCT(d)
}

// Hadamard returns the orthogonal map of dimension 2, [1 1; 1 −1]/√2.
// It is its own inverse. It turns the two terms of a parity into tensors of one entry each; the rank of a tensor does not change.
func Hadamard() Map {
	h := math.Sqrt2 / 2
	return Map{Kind: query.MapOrthogonal, A: []float64{h, h, h, -h}}
}

// DCT returns the orthogonal DCT-II map of dimension d ≥ 1,
//
//	A[x, k] = c_k cos(π (x + ½) k / d),  c_0 = √(1/d), c_k = √(2/d),
//
// whose column 0 is constant. For d = 2 it is the Hadamard map.
func DCT(d int) Map {
	a := make([]float64, d*d)
	for x := range d {
		a[x*d] = math.Sqrt(1 / float64(d))
		for k := 1; k < d; k++ {
			// The angle is π·(2x+1)k/(2d). It is reduced modulo 2π exactly, in integers, so that maps of large d are orthogonal, too.
			reduced := (2*x + 1) * k % (4 * d)
			a[x*d+k] = math.Sqrt(2/float64(d)) * math.Cos(math.Pi*float64(reduced)/float64(2*d))
		}
	}
	return Map{Kind: query.MapOrthogonal, A: a}
}

// Inverse returns the inverse A⁻¹ of a map on a leg of dimension d, row-major (rows x̄, columns x). If A is nil, the identity, it returns
// nil. A map of kind orthogonal is transposed, after a check that it is orthogonal within 1e-12.
//
// It returns ErrMap for a wrong size, an entry that is not finite, or an orthogonal map that is not orthogonal. It returns
// ErrIllConditioned, with the condition number in the text, for a 2-norm condition number above MaxCondition. Cost O(d³).
func (m Map) Inverse(d int) ([]float64, error) {
	if m.A == nil {
		return nil, nil
	}
	if d < 1 || len(m.A)/d != d || len(m.A)%d != 0 {
		return nil, fmt.Errorf("%w: %d entries, dimension %d needs its square", ErrMap, len(m.A), d)
	}
	for k, a := range m.A {
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return nil, fmt.Errorf("%w: entry (%d, %d) is %v", ErrMap, k/d, k%d, a)
		}
	}

	// The inverse of an orthogonal map is its transpose.
	if m.Kind == query.MapOrthogonal {
		return m.checkedTranspose(d)
	}

	kappa, err := conditionNumber(m.A, d)
	if err != nil {
		return nil, err
	}
	if !(kappa <= MaxCondition) {
		return nil, fmt.Errorf("%w: condition number %.3g, at most %.0e",
			ErrIllConditioned, kappa, float64(MaxCondition))
	}

	inverse, err := linalg.Inverse(m.A, d)
	if err != nil { // entries beyond float64; or a condition number above 1/ε, which kappa excludes
		return nil, fmt.Errorf("%w: %w", ErrIllConditioned, err)
	}
	return inverse, nil
}

// conditionNumber returns the 2-norm condition number of a d×d matrix, or +Inf if it is singular.
func conditionNumber(a []float64, d int) (float64, error) {
	values, err := linalg.SingularValues(a, d, d)
	if err != nil {
		return 0, fmt.Errorf("%w: its singular values cannot be computed: %w",
			ErrIllConditioned, err)
	}

	largest, smallest := values[0], values[len(values)-1]
	if smallest == 0 {
		return math.Inf(1), nil
	}
	return largest / smallest, nil
}

// orthogonalTolerance bounds |AᵀA − 1| of a map that calls itself orthogonal:
// rounding of a DCT-II of dimension 1000 is below 1e-14.
const orthogonalTolerance = 1e-12

// checkedTranspose returns Aᵀ, the inverse of an orthogonal map of dimension d. It returns ErrMap if A is not orthogonal, that is, unless
// row j of Aᵀ times row k is 1 for j = k, else 0. The error names them as columns of A.
func (m Map) checkedTranspose(d int) ([]float64, error) {
	transpose := make([]float64, d*d)
	for x := range d {
		for k := range d {
			transpose[k*d+x] = m.A[x*d+k]
		}
	}

	for j := range d {
		for k := range d {
			deviation := 0.0 // of the product of rows j and k
			for x := range d {
				deviation += transpose[j*d+x] * transpose[k*d+x]
			}
			if j == k {
				deviation--
			}
			if math.Abs(deviation) > orthogonalTolerance {
				return nil, fmt.Errorf("%w: kind is orthogonal, but columns %d and %d are off by "+
					"%.3g", ErrMap, j, k, deviation)
			}
		}
	}
	return transpose, nil
}

// MapRounding returns a bound of the effect of rounding on a mapped network's Z, relative to the product of the norms of B and of the
// links:
//
//	Π (1 + s) − 1,   s = 4 (legs + 4) 2^−53 κ_max Π_ℓ κ_ℓ
//
// The product is over all cores and links. s is the relative error of a core or link with the legs ℓ, where κ_ℓ is the condition number of
// the map on leg ℓ. A map may amplify the rounding of its leg by κ_ℓ in the leg's core and in its link; κ_max stands for the rounding of
// its inverse. The bound is +Inf if a condition number cannot be computed.
func MapRounding(n *Network) float64 {
	// The condition numbers by leg, and the largest.
	kappas, largest := make([]float64, len(n.Dims)), 1.0
	for l := range n.Dims {
		kappas[l] = 1
		isOrthogonal := l >= len(n.Maps) || n.Maps[l].A == nil || n.Maps[l].Kind == query.MapOrthogonal
		if isOrthogonal {
			continue
		}
		kappa, err := conditionNumber(n.Maps[l].A, n.Dims[l])
		if err != nil {
			return math.Inf(1)
		}
		kappas[l], largest = kappa, max(largest, kappa)
	}

	// ln Π (1 + s) over all cores and links. addTensor adds ln(1 + s) of one of them.
	lnProduct := 0.0
	addTensor := func(legs []int) {
		s := 4 * float64(len(legs)+4) * 0x1p-53 * largest
		for _, l := range legs {
			s *= kappas[l]
		}
		lnProduct += math.Log1p(s)
	}
	for _, c := range n.Cores {
		addTensor(c.Legs)
	}
	for _, l := range n.Links {
		addTensor(l.Legs)
	}
	return math.Expm1(lnProduct)
}
