package learned

// The weights of fixed components: α ≥ 0 minimising ‖B‖² + αᵀGα − 2αᵀb, and the explained fraction. S has either sign, so that α ≥ 0
// excludes nothing. The active-set method of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23), in Gram form.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrNotFinite reports an entry that is NaN or ±Inf where a real number is needed.
var ErrNotFinite = errors.New("learned: not a finite number")

// epsilon is the unit roundoff of float64, 2^−53.
const epsilon = 0x1p-53

// fit is the outcome of fitting weights.
type fit struct {
	Alpha []scaled.Number // weights of the components as given, not of their normalised versions
	// Explained is (2αᵀb − αᵀGα)/‖B‖², at the optimum αᵀb/‖B‖². It is 1−ρ, held as a scaled number
	// and never computed as a difference from 1.
	Explained scaled.Number
	Residual  float64 // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]
	// Rounding bounds the rounding error of ρ: 4(n+16)·2^−53·(C+A)² for n legs, by Cauchy–Schwarz on
	// absolute values, with A = Σ|α_i|‖Q^(i)‖/‖B‖ and C = ‖B′‖/‖B‖, where B′ has all numbers of B's cores
	// made positive so that no terms cancel (C = 1 in fitWeights). Certificates must add it to ρ.
	Rounding float64
	size     float64 // A of Rounding
	// Rounding for A ≤ 3: ρ below it is not distinguished from 0, however large the weights are
	floor float64
	// condition number of G scaled to a unit diagonal; 2^53 means singular to working precision
	Condition float64
}

// LnExplained returns ln(1−ρ) in nats. It is −Inf if nothing is explained.
func (f fit) LnExplained() float64 { return math.Min(0, f.Explained.LogAbs()) }

// hasVanished reports whether ρ is no larger than the rounding of its computation.
func (f fit) hasVanished() bool { return f.Residual <= f.floor }

// fitWeights minimises norm2 + αᵀGα − 2αᵀb over α ≥ 0.
//
// G is scaled to a unit diagonal and solved on every active set by its eigendecomposition, with
// eigenvalues below r·2^−45 of the largest left out. A component of norm zero gets weight zero.
// legs is the number of legs behind G and b; it enters Rounding only.
// norm2 is ‖B‖²; when it is 0, all weights are 0 and ρ is 0. Time O(r³). It returns ErrNotFinite for
// NaN or infinite entries, and an error when the shapes disagree.
// Source: Hamid and Braun, equation of the Gram objective.
func fitWeights(g [][]scaled.Number, b []scaled.Number, norm2 scaled.Number, legs int) (fit, error) {
	if err := checkGram(g, b, norm2); err != nil {
		return fit{}, err
	}
	r := len(b)
	f := fit{Alpha: make([]scaled.Number, r), Residual: 1, Condition: 1}
	if norm2.IsZero() {
		f.Residual, f.Explained = 0, scaled.One
		return f, nil
	}

	unit, keep := unitGram(g, b)
	if err := unit.check(keep); err != nil {
		return f, err
	}
	if len(keep) == 0 {
		return f, nil
	}

	x, err := nonNegativeLeastSquares(unit.g, unit.y)
	if err == nil {
		f.Condition, err = condition(unit.g)
	}
	if err != nil {
		return f, fmt.Errorf("learned: weights of %d components: %w", len(keep), err)
	}
	size := scaled.Number{}
	norm := norm2.Sqrt()
	for k, i := range keep {
		f.Alpha[i] = scaled.FromFloat(x[k]).Mul(unit.scale).Div(unit.norm[k])
		size = size.Add(scaled.FromFloat(math.Abs(x[k])).Mul(unit.scale).Div(norm))
	}

	gain := gramGain(unit.g, unit.y, x)
	if gain > 0 {
		f.Explained = scaled.FromFloat(gain).Mul(unit.scale).Mul(unit.scale).Div(norm2)
	}
	f.Residual = math.Min(1, math.Max(0, 1-f.Explained.Float64()))
	f.size = size.Float64()
	f.setRounding(legs, 1)
	return f, nil
}

// setRounding sets Rounding and floor for C = cancelled.
func (f *fit) setRounding(legs int, cancelled float64) {
	a := cancelled + f.size
	f.Rounding = 4 * float64(legs+16) * epsilon * a * a
	f.floor = 4 * float64(legs+16) * epsilon * math.Min(a*a, 16)
}

// gram is G with a unit diagonal and b with largest entry 1: G_ij = norm_i·norm_j·g_ij, b_i =
// norm_i·scale·y_i.
type gram struct {
	g     [][]float64
	y     []float64
	norm  []scaled.Number
	scale scaled.Number
}

// unitGram normalises the components of positive norm, whose numbers it returns as keep.
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

// check returns an error if a normalised scalar product exceeds 1 by more than rounding. keep has the numbers of the components.
func (u gram) check(keep []int) error {
	for k := range u.g {
		for l := range k {
			if !(math.Abs(u.g[k][l]) <= 1+gramSlack) {
				return fmt.Errorf("learned: not a Gram matrix: |G_ij| is %g times "+
					"√(G_ii·G_jj) for components %d and %d",
					math.Abs(u.g[k][l]), keep[k], keep[l])
			}
		}
	}
	return nil
}

// checkGram returns an error if sizes differ, a number is not finite, or an entry of the diagonal is negative. A failure means a broken
// caller, or numbers beyond the range.
func checkGram(g [][]scaled.Number, b []scaled.Number, norm2 scaled.Number) error {
	if len(g) != len(b) {
		return fmt.Errorf("learned: G has %d rows, b has %d entries", len(g), len(b))
	}
	if !norm2.IsFinite() || norm2.Sign() < 0 {
		return fmt.Errorf("%w: ‖B‖² is %v", ErrNotFinite, norm2.Mant)
	}

	for i := range g {
		if len(g[i]) != len(b) {
			return fmt.Errorf("learned: row %d of G has %d entries, b has %d", i, len(g[i]), len(b))
		}
		if !b[i].IsFinite() {
			return fmt.Errorf("%w: b of component %d", ErrNotFinite, i)
		}
		if g[i][i].Sign() < 0 {
			return fmt.Errorf("learned: not a Gram matrix: G of component %d with itself is negative", i)
		}
		for j := range g[i] {
			if !g[i][j].IsFinite() {
				return fmt.Errorf("%w: G of components %d and %d", ErrNotFinite, i, j)
			}
		}
	}

	return nil
}

// nonNegativeLeastSquares minimises xᵀgx − 2xᵀy over x ≥ 0.
//
// Every pass over the outer loop lowers the objective strictly, so no passive set comes twice; the
// count of passes is bounded all the same, because rounding on a singular g could break that.
func nonNegativeLeastSquares(g [][]float64, y []float64) ([]float64, error) {
	r := len(y)
	x := make([]float64, r)
	passive := make([]bool, r)
	blocked := make([]bool, r) // entered and came out at once: rounding, not descent
	tolerance := 16 * float64(r) * epsilon
	for pass := 0; pass < 10*r+10; pass++ {
		enter, most := -1, tolerance
		for i := range x {
			if passive[i] || blocked[i] {
				continue
			}
			if w := slope(g, y, x, i); w > most {
				enter, most = i, w
			}
		}

		if enter < 0 {
			break
		}
		passive[enter] = true
		before := gramGain(g, y, x)
		next, err := descend(g, y, x, passive)
		if err != nil {
			return nil, err
		}
		if gramGain(g, y, next) <= before {
			passive[enter] = false
			for i := range passive {
				passive[i] = x[i] > 0
			}
			blocked[enter] = true
			continue
		}

		x = next
		clear(blocked)
	}

	return x, nil
}

// slope returns entry i of y − g x, half the negative gradient.
func slope(g [][]float64, y, x []float64, i int) float64 {
	var sum compensated
	sum.add(y[i])
	for j := range x {
		sum.addProduct(-g[i][j], x[j])
	}
	return sum.value()
}

// descend moves x towards the least-squares solution on the passive set. It goes up to where the first entry would turn negative, removes
// that entry from the set and solves again, until no entry is negative. Every pass removes at least one, so that it ends.
func descend(g [][]float64, y, x []float64, passive []bool) ([]float64, error) {
	x = append([]float64(nil), x...)
	for {
		set := indicesOf(passive)
		if len(set) == 0 {
			return x, nil
		}
		sub, rhs := restrict(g, y, set)
		solution, err := leastSquares(sub, rhs)
		if err != nil {
			return nil, err
		}

		step, leaving := 1.0, -1
		for k, i := range set {
			if solution[k] <= 0 && x[i]-solution[k] > 0 {
				if t := x[i] / (x[i] - solution[k]); t < step || leaving < 0 {
					step, leaving = t, i
				}
			} else if solution[k] <= 0 {
				step, leaving = 0, i
			}
		}

		for k, i := range set {
			x[i] += step * (solution[k] - x[i])
			if leaving < 0 {
				x[i] = solution[k]
			}
		}

		if leaving < 0 {
			return x, nil
		}
		for _, i := range set {
			if i == leaving || x[i] <= 0 {
				x[i], passive[i] = 0, false
			}
		}
	}
}

// indicesOf returns the indices of a set, in ascending order.
func indicesOf(set []bool) []int {
	var out []int
	for i, in := range set {
		if in {
			out = append(out, i)
		}
	}
	return out
}

// restrict returns the rows and columns of a linear system that belong to a set.
func restrict(g [][]float64, y []float64, set []int) ([][]float64, []float64) {
	sub, rhs := make([][]float64, len(set)), make([]float64, len(set))
	for k, i := range set {
		rhs[k] = y[i]
		sub[k] = make([]float64, len(set))
		for l, j := range set {
			sub[k][l] = g[i][j]
		}
	}
	return sub, rhs
}

// rankCut, times the number of components, is the fraction of the largest eigenvalue below which a
// direction is rounding.
const rankCut = 0x1p-45

// leastSquares returns the x of least norm that minimises xᵀgx − 2xᵀy.
// Errors: linalg.ErrNotFinite, linalg.ErrConvergence, linalg.ErrRange.
func leastSquares(g [][]float64, y []float64) ([]float64, error) {
	r := len(y)
	values, vectors, err := linalg.SymmetricEigen(concatenateRows(g), r)
	if err != nil {
		return nil, err
	}

	x := make([]float64, r)
	cut := float64(r) * rankCut * values[r-1]
	for k := r - 1; k >= 0 && values[k] > cut; k-- {
		var dot compensated
		for i := range y {
			dot.addProduct(vectors[i*r+k], y[i])
		}
		c := dot.value() / values[k]
		for i := range x {
			x[i] += c * vectors[i*r+k]
		}
	}

	return x, nil
}

// condition returns the condition number of a unit-diagonal Gram matrix: the ratio of the extreme eigenvalues, at most 2^53, beyond which
// they are rounding.
func condition(g [][]float64) (float64, error) {
	values, _, err := linalg.SymmetricEigen(concatenateRows(g), len(g))
	if err != nil {
		return 0, err
	}
	smallest, largest := values[0], values[len(values)-1]
	return largest / max(smallest, largest*epsilon), nil
}

// concatenateRows returns g row after row.
func concatenateRows(g [][]float64) []float64 {
	return slices.Concat(g...)
}

// gramGain returns 2xᵀy − xᵀgx, compensated: an error of x enters it only to second order.
func gramGain(g [][]float64, y, x []float64) float64 {
	var sum compensated
	for i := range x {
		sum.addProduct(2*x[i], y[i])
		for j := range x {
			p := x[i] * x[j]
			sum.addProduct(-p, g[i][j])
			sum.add(-math.FMA(x[i], x[j], -p) * g[i][j])
		}
	}
	return sum.value()
}

// compensated is a running sum with its rounding error (Ogita, Rump and Oishi, Accurate sum and dot
// product, 2005).
type compensated struct{ sum, err float64 }

// add adds x, and notes the rounding error.
func (c *compensated) add(x float64) {
	s := c.sum + x
	t := s - c.sum
	c.err += (c.sum - (s - t)) + (x - t)
	c.sum = s
}

// addProduct adds x·y without the rounding of the product.
func (c *compensated) addProduct(x, y float64) {
	p := x * y
	c.add(p)
	c.err += math.FMA(x, y, -p)
}

// value returns the sum with its rounding error added.
func (c *compensated) value() float64 { return c.sum + c.err }
