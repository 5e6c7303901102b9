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
	// Explained is 1−ρ = (2αᵀb − αᵀGα)/‖B‖², at the optimum αᵀb/‖B‖². It is never computed as a difference from 1.
	Explained scaled.Number
	Residual  float64 // ρ = ‖B−B̃‖²/‖B‖², in [0, 1]
	// Rounding bounds the rounding error of ρ: 4(n+16)·2^−53·(C+A)² for n legs, by Cauchy–Schwarz on
	// absolute values, with A = Σ|α_i|‖Q^(i)‖/‖B‖ and C = ‖B′‖/‖B‖, where B′ has all numbers of B's cores
	// made positive so that no terms cancel (C = 1 in fitWeights). Certificates must add it to ρ.
	Rounding  float64
	size      float64 // A of Rounding
	floor     float64 // Rounding for A ≤ 3: ρ below it is not distinguished from 0, however large the weights are
	Condition float64 // condition number of G scaled to a unit diagonal; 2^53 means singular to working precision
}

// LnExplained returns ln(1−ρ) in nats. It is −Inf if nothing is explained.
func (f fit) LnExplained() float64 { return math.Min(0, f.Explained.LogAbs()) }

// hasVanished reports whether ρ is at most the rounding of its computation.
func (f fit) hasVanished() bool { return f.Residual <= f.floor }

// fitWeights finds the weights α ≥ 0 that minimise ‖B − Σ_i α_i Q_i‖² = norm2 + αᵀGα − 2αᵀb, for G_ij = ⟨Q_i, Q_j⟩, b_i = ⟨B, Q_i⟩ and
// norm2 = ‖B‖². A component of norm 0 gets weight 0. If norm2 is 0, all weights and ρ are 0. legs is the number of legs behind G and b; it
// enters Rounding only.
//
// G is scaled to a unit diagonal. On every active set, the components whose weight is not 0 at present, it is solved by its
// eigendecomposition. Eigenvalues below r·2^−45 of the largest are left out. Time O(r³) for r components. It returns ErrNotFinite for NaN
// or infinite entries, and an error if the shapes disagree. Source: Hamid and Braun, equation of the Gram objective.
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

	// Solve in units in which the components have norm 1.
	unit, components := unitGram(g, b)
	if err := unit.check(components); err != nil {
		return f, err
	}
	if len(components) == 0 {
		return f, nil
	}

	solution, err := nonNegativeLeastSquares(unit.g, unit.y)
	if err == nil {
		f.Condition, err = condition(unit.g)
	}
	if err != nil {
		return f, fmt.Errorf("learned: weights of %d components: %w", len(components), err)
	}

	// The weights of the components as given, and Σ|α_i|‖Q_i‖/‖B‖.
	size := scaled.Number{}
	norm := norm2.Sqrt()
	for k, i := range components {
		f.Alpha[i] = scaled.FromFloat(solution[k]).Mul(unit.scale).Div(unit.norm[k])
		size = size.Add(scaled.FromFloat(math.Abs(solution[k])).Mul(unit.scale).Div(norm))
	}

	gain := gramGain(unit.g, unit.y, solution) // 2αᵀb − αᵀGα in units of scale²
	if gain > 0 {
		f.Explained = scaled.FromFloat(gain).Mul(unit.scale).Mul(unit.scale).Div(norm2)
	}
	f.Residual = math.Min(1, math.Max(0, 1-f.Explained.Float64()))
	f.size = size.Float64()
	const withoutCancellation = 1 // ‖B′‖/‖B‖: nothing is known of B's cores here
	f.setRounding(legs, withoutCancellation)
	return f, nil
}

// setRounding sets Rounding and floor. cancelled is C = ‖B′‖/‖B‖, where B′ has all numbers of B's cores made positive.
func (f *fit) setRounding(legs int, cancelled float64) {
	a := cancelled + f.size
	f.Rounding = 4 * float64(legs+16) * epsilon * a * a
	f.floor = 4 * float64(legs+16) * epsilon * math.Min(a*a, 16)
}

// gram is G with a unit diagonal, g, and b with largest entry 1, y: G_ij = norm_i·norm_j·g_ij, b_i = norm_i·scale·y_i.
type gram struct {
	g     [][]float64
	y     []float64
	norm  []scaled.Number
	scale scaled.Number
}

// unitGram returns G and b in units in which every component has norm 1, and the numbers of the components. Entry k of its y is
// b_i/(norm_k·scale) for component i = components[k]; the scale makes the largest |y| 1. It leaves out components of norm 0.
func unitGram(g [][]scaled.Number, b []scaled.Number) (gram, []int) {
	// The norms, of all components but those of norm 0.
	var unit gram
	var components []int
	for i := range b {
		if g[i][i].Sign() > 0 {
			components = append(components, i)
			unit.norm = append(unit.norm, g[i][i].Sqrt())
		}
	}

	// The ratios b_i/norm_i, and the largest as the unit of y.
	unit.scale = scaled.Number{}
	ratios := make([]scaled.Number, len(components))
	for k, i := range components {
		ratios[k] = b[i].Div(unit.norm[k])
		if a := ratios[k].Abs(); a.Cmp(unit.scale) > 0 {
			unit.scale = a
		}
	}

	// As float64: y, and G with 1 on its diagonal.
	unit.y = make([]float64, len(components))
	unit.g = make([][]float64, len(components))
	for k, i := range components {
		if !unit.scale.IsZero() {
			unit.y[k] = ratios[k].Div(unit.scale).Float64()
		}
		unit.g[k] = make([]float64, len(components))
		for l, j := range components[:k] {
			c := g[i][j].Div(unit.norm[k]).Div(unit.norm[l]).Float64()
			unit.g[k][l], unit.g[l][k] = c, c
		}
		unit.g[k][k] = 1
	}

	return unit, components
}

// gramSlack bounds a cosine's excess over 1 by rounding; beyond it G is no Gram matrix.
const gramSlack = 1e-6

// check returns an error if the scalar product of two components of norm 1 is above 1 by more than rounding. components has their numbers.
func (u gram) check(components []int) error {
	for k := range u.g {
		for l := range k {
			if !(math.Abs(u.g[k][l]) <= 1+gramSlack) {
				return fmt.Errorf("learned: not a Gram matrix: |G_ij| is %g times "+
					"√(G_ii·G_jj) for components %d and %d",
					math.Abs(u.g[k][l]), components[k], components[l])
			}
		}
	}
	return nil
}

// checkGram returns an error if sizes differ, if a number is not finite, or if ‖B‖² or an entry of G's diagonal is negative. Then a caller
// is broken, or numbers are beyond the range.
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

// nonNegativeLeastSquares returns the x ≥ 0 that minimises xᵀgx − 2xᵀy, by the active-set method of Lawson and Hanson: entries that are not
// passive are 0. Every pass makes the entry with the steepest descent passive, and solves for the passive ones.
//
// Every pass lowers the objective strictly, so no set of passive entries comes twice. The number of passes is bounded all the same, since
// rounding on a singular g could break that.
func nonNegativeLeastSquares(g [][]float64, y []float64) ([]float64, error) {
	r := len(y)
	x := make([]float64, r)
	isPassive := make([]bool, r)
	isBlocked := make([]bool, r) // it became passive without a gain: its descent is rounding
	for pass := 0; pass < 10*r+10; pass++ {
		entering := steepestDescent(g, y, x, func(i int) bool { return !isPassive[i] && !isBlocked[i] })
		if entering < 0 { // x is the minimum
			break
		}
		isPassive[entering] = true
		gainBefore := gramGain(g, y, x)
		next, err := descend(g, y, x, isPassive) // changes isPassive
		if err != nil {
			return nil, err
		}
		if gramGain(g, y, next) <= gainBefore { // go back to x
			isPassive[entering] = false
			for i := range isPassive {
				isPassive[i] = x[i] > 0
			}
			isBlocked[entering] = true
			continue
		}

		x = next
		clear(isBlocked)
	}

	return x, nil
}

// steepestDescent returns the entry with the largest slope of those that may enter, or −1 if all slopes are rounding: at most 16r
// units of roundoff, for r terms and entries of y of at most 1.
func steepestDescent(g [][]float64, y, x []float64, mayEnter func(i int) bool) (entering int) {
	entering, steepest := -1, 16*float64(len(x))*epsilon
	for i := range x {
		if !mayEnter(i) {
			continue
		}
		if w := slope(g, y, x, i); w > steepest {
			entering, steepest = i, w
		}
	}
	return entering
}

// slope returns entry i of y − g x, which is half the negative gradient of xᵀgx − 2xᵀy.
func slope(g [][]float64, y, x []float64, i int) float64 {
	var sum compensated
	sum.add(y[i])
	for j := range x {
		sum.addProduct(-g[i][j], x[j])
	}
	return sum.value()
}

// descend moves x to the least-squares solution on the passive entries; all other entries are 0. If entries of the solution are negative,
// it goes only as far as the first of them becomes 0, makes that entry no longer passive, and solves again. Every pass removes at least one
// entry, so it ends. It changes isPassive and returns the new x.
func descend(g [][]float64, y, x []float64, isPassive []bool) ([]float64, error) {
	x = append([]float64(nil), x...)
	for {
		passive := indicesOf(isPassive)
		if len(passive) == 0 {
			return x, nil
		}
		passiveG, passiveY := restrict(g, y, passive)
		solution, err := leastSquares(passiveG, passiveY)
		if err != nil {
			return nil, err
		}

		step, leaving := wayToZero(x, solution, passive)
		for k, i := range passive {
			x[i] += step * (solution[k] - x[i])
			if leaving < 0 { // the whole way: exactly the solution, without rounding
				x[i] = solution[k]
			}
		}

		if leaving < 0 {
			return x, nil
		}
		for _, i := range passive {
			if i == leaving || x[i] <= 0 {
				x[i], isPassive[i] = 0, false
			}
		}
	}
}

// wayToZero returns the share of the way from x to the solution at which the first passive entry becomes 0, and that entry. If none does,
// the share is 1 and leaving is −1. solution[k] is that of entry passive[k].
func wayToZero(x, solution []float64, passive []int) (step float64, leaving int) {
	step, leaving = 1.0, -1
	for k, i := range passive {
		if solution[k] <= 0 && x[i]-solution[k] > 0 {
			if share := x[i] / (x[i] - solution[k]); share < step || leaving < 0 {
				step, leaving = share, i
			}
		} else if solution[k] <= 0 { // x[i] is 0 and the solution, too: it leaves at once
			step, leaving = 0, i
		}
	}
	return step, leaving
}

// indicesOf returns the members of a set, in ascending order. set[i] says whether i is a member.
func indicesOf(set []bool) []int {
	var out []int
	for i, isMember := range set {
		if isMember {
			out = append(out, i)
		}
	}
	return out
}

// restrict returns the rows and columns of g, and the entries of y, that belong to a set of indices.
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

// leastSquares returns the x of least norm that minimises xᵀgx − 2xᵀy, by the eigenvectors of g: x = Σ_k v_k (v_k·y)/λ_k. The sum leaves
// out eigenvalues that may be rounding: those up to len(y)·rankCut times the largest. Errors: linalg.ErrNotFinite, linalg.ErrConvergence,
// linalg.ErrRange.
func leastSquares(g [][]float64, y []float64) ([]float64, error) {
	r := len(y)
	values, vectors, err := linalg.SymmetricEigen(concatenateRows(g), r)
	if err != nil {
		return nil, err
	}

	x := make([]float64, r)
	cut := float64(r) * rankCut * values[r-1]
	for k := r - 1; k >= 0 && values[k] > cut; k-- { // eigenvalues ascend; entry i of eigenvector k is vectors[i*r+k]
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

// condition returns the condition number of a Gram matrix with a unit diagonal: its largest eigenvalue over the smallest, at most 2^53,
// beyond which eigenvalues are rounding.
func condition(g [][]float64) (float64, error) {
	values, _, err := linalg.SymmetricEigen(concatenateRows(g), len(g)) // ascending; the vectors are not read
	if err != nil {
		return 0, err
	}
	smallest, largest := values[0], values[len(values)-1]
	return largest / max(smallest, largest*epsilon), nil
}

// concatenateRows returns the rows of g one after the other.
func concatenateRows(g [][]float64) []float64 {
	return slices.Concat(g...)
}

// gramGain returns 2xᵀy − xᵀgx without the rounding of its products and sums: products are taken with their roundings, and the sums are
// compensated. At the optimal x, an error of x enters the result only to second order.
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

// compensated is a running sum with its rounding error, err (Ogita, Rump and Oishi, Accurate sum and dot product, 2005).
type compensated struct{ sum, err float64 }

// add adds x to the sum, and the rounding error of that to err.
func (c *compensated) add(x float64) {
	s := c.sum + x
	t := s - c.sum
	c.err += (c.sum - (s - t)) + (x - t)
	c.sum = s
}

// addProduct adds x·y to the sum, and the rounding errors of the product and of the sum to err.
func (c *compensated) addProduct(x, y float64) {
	p := x * y
	c.add(p)
	c.err += math.FMA(x, y, -p)
}

// value returns the sum with its rounding error added.
func (c *compensated) value() float64 { return c.sum + c.err }
