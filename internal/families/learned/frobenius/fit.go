package frobenius

// The weights of a fixed dictionary: α minimising ‖B‖² + αᵀGα − 2αᵀb, and the explained fraction.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrNotFinite reports an entry that is NaN or ±Inf where a real number is needed.
var ErrNotFinite = errors.New("frobenius: not a finite number")

// epsilon is the unit roundoff of float64, 2^−53.
const epsilon = 0x1p-53

// Fit is the outcome of fitting the weights of a dictionary.
type Fit struct {
	Alpha []scaled.Number // weights of the components as given, not of their normalised versions
	// Explained is (2αᵀb − αᵀGα)/‖B‖², at the optimum αᵀb/‖B‖². It is 1−ρ, held as a scaled number
	// and never computed as a difference from 1.
	Explained scaled.Number
	Residual  float64 // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]
	// Rounding bounds the rounding error of ρ: 4(n+16)·2^−53·(C+A)² for n legs, by Cauchy–Schwarz on
	// absolute values, with A = Σ|α_i|‖Q^(i)‖/‖B‖ and C = ‖B′‖/‖B‖, where B′ has all numbers of B's cores
	// made positive so that no terms cancel (C = 1 in FitWeights). Certificates must add it to ρ.
	Rounding float64
	size     float64 // A
	// Rounding for A ≤ 3: ρ below it is not distinguished from 0, however large the weights are
	floor float64
	// condition number of G scaled to a unit diagonal; 2^53 means singular to working precision
	Condition float64
	Rank      int // numerical rank of G that was used; components in the active set when α ≥ 0 is asked for
}

// LnExplained returns ln(1−ρ) in nats, −Inf when nothing is explained.
func (f Fit) LnExplained() float64 { return math.Min(0, f.Explained.LogAbs()) }

// vanished reports whether ρ is down to the rounding of its own computation.
func (f Fit) vanished() bool { return f.Residual <= f.floor }

// FitWeights minimises norm2 + αᵀGα − 2αᵀb over α, over α ≥ 0 if nonNegative.
//
// G is scaled to a unit diagonal and solved by Cholesky when its condition number is below 10^10,
// else by its eigendecomposition with eigenvalues below r·2^−45 of the largest left out, which gives
// the α of least norm. For α ≥ 0 it is the active-set method of Lawson and Hanson. A component of
// norm zero gets weight zero. legs is the number of legs behind G and b; it enters Rounding only.
// norm2 is ‖B‖²; when it is 0, all weights are 0 and ρ is 0. Time O(r³). It returns ErrNotFinite for
// NaN or infinite entries, and an error when the shapes disagree.
// Source: Hamid and Braun, equation of the Gram objective.
func FitWeights(
	g [][]scaled.Number, b []scaled.Number, norm2 scaled.Number, legs int, nonNegative bool,
) (Fit, error) {
	if err := checkGram(g, b, norm2); err != nil {
		return Fit{}, err
	}
	r := len(b)
	fit := Fit{Alpha: make([]scaled.Number, r), Residual: 1, Condition: 1}
	if norm2.IsZero() {
		fit.Residual, fit.Explained = 0, scaled.One
		return fit, nil
	}

	unit, keep := unitGram(g, b)
	if err := unit.check(keep); err != nil {
		return fit, err
	}
	if len(keep) == 0 {
		return fit, nil
	}

	x, err := fit.solve(unit, nonNegative)
	if err != nil {
		return fit, fmt.Errorf("frobenius: weights of %d components: %w", len(keep), err)
	}
	size := scaled.Number{}
	norm := norm2.Sqrt()
	for k, i := range keep {
		fit.Alpha[i] = scaled.FromFloat(x[k]).Mul(unit.scale).Div(unit.norm[k])
		size = size.Add(scaled.FromFloat(math.Abs(x[k])).Mul(unit.scale).Div(norm))
	}

	gain := gramGain(unit.g, unit.y, x)
	if gain > 0 {
		fit.Explained = scaled.FromFloat(gain).Mul(unit.scale).Mul(unit.scale).Div(norm2)
	}
	fit.Residual = math.Min(1, math.Max(0, 1-fit.Explained.Float64()))
	fit.size = size.Float64()
	fit.rounds(legs, 1)
	return fit, nil
}

// rounds sets Rounding and floor for C = cancelled.
func (f *Fit) rounds(legs int, cancelled float64) {
	a := cancelled + f.size
	f.Rounding = 4 * float64(legs+16) * epsilon * a * a
	f.floor = 4 * float64(legs+16) * epsilon * math.Min(a*a, 16)
}

// solve finds the weights of the normalised components, and says their rank and condition.
func (f *Fit) solve(u gram, nonNegative bool) (x []float64, err error) {
	if !nonNegative {
		x, f.Rank, f.Condition, err = leastSquares(u.g, u.y)
		return x, err
	}
	if x, f.Rank, err = nonNegativeLeastSquares(u.g, u.y); err != nil {
		return nil, err
	}
	f.Condition, err = condition(u.g)
	return x, err
}

// gram is G with a unit diagonal and b with largest entry 1: G_ij = norm_i·norm_j·g_ij, b_i =
// norm_i·scale·y_i.
type gram struct {
	g     [][]float64
	y     []float64
	norm  []scaled.Number
	scale scaled.Number
}

// unitGram normalises the components of positive norm; keep lists them.
func unitGram(g [][]scaled.Number, b []scaled.Number) (gram, []int) {
	var u gram
	var keep []int
	for i := range b {
		if g[i][i].Sign() > 0 {
			keep = append(keep, i)
			u.norm = append(u.norm, g[i][i].Sqrt())
		}
	}

	u.scale = scaled.Number{}
	ratios := make([]scaled.Number, len(keep))
	for k, i := range keep {
		ratios[k] = b[i].Div(u.norm[k])
		if a := ratios[k].Abs(); a.Cmp(u.scale) > 0 {
			u.scale = a
		}
	}

	u.y = make([]float64, len(keep))
	u.g = make([][]float64, len(keep))
	for k, i := range keep {
		if !u.scale.IsZero() {
			u.y[k] = ratios[k].Div(u.scale).Float64()
		}
		u.g[k] = make([]float64, len(keep))
		for l, j := range keep[:k] {
			c := g[i][j].Div(u.norm[k]).Div(u.norm[l]).Float64()
			u.g[k][l], u.g[l][k] = c, c
		}
		u.g[k][k] = 1
	}

	return u, keep
}

// gramSlack bounds a cosine's excess over 1 by rounding; beyond it G is no Gram matrix.
const gramSlack = 1e-6

// check refuses numbers that cannot be scalar products.
func (u gram) check(keep []int) error {
	for k := range u.g {
		for l := range k {
			if !(math.Abs(u.g[k][l]) <= 1+gramSlack) {
				return fmt.Errorf("frobenius: not a Gram matrix: |G_ij| is %g times "+
					"√(G_ii·G_jj) for components %d and %d",
					math.Abs(u.g[k][l]), keep[k], keep[l])
			}
		}
	}
	return nil
}

// checkGram checks sizes, finiteness and the signs of the diagonal. A failure is a broken caller, or
// data beyond range.
func checkGram(g [][]scaled.Number, b []scaled.Number, norm2 scaled.Number) error {
	if len(g) != len(b) {
		return fmt.Errorf("frobenius: G has %d rows, b has %d entries", len(g), len(b))
	}
	if !norm2.IsFinite() || norm2.Sign() < 0 {
		return fmt.Errorf("%w: ‖B‖² is %v", ErrNotFinite, norm2.Mant)
	}

	for i := range g {
		if len(g[i]) != len(b) {
			return fmt.Errorf("frobenius: row %d of G has %d entries, b has %d", i, len(g[i]), len(b))
		}
		if !b[i].IsFinite() {
			return fmt.Errorf("%w: b of component %d", ErrNotFinite, i)
		}
		if g[i][i].Sign() < 0 {
			return fmt.Errorf("frobenius: not a Gram matrix: G of component %d with itself is negative", i)
		}
		for j := range g[i] {
			if !g[i][j].IsFinite() {
				return fmt.Errorf("%w: G of components %d and %d", ErrNotFinite, i, j)
			}
		}
	}

	return nil
}
