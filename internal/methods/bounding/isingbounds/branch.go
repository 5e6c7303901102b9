package isingbounds

// Slices of models of spins: the sum of their bounds is one.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/ising"
)

// sliceRounds is the number of rounds for a slice. It begins with the result for the slice that it is a half of. Measured on complete and
// bipartite models: 2 or 3 gain less than slices do at the same time.
const sliceRounds = 1

// slice is the sum over the states of a model in which some spins, the held ones, have fixed signs. The other spins are open. When the
// slice is divided, only heldLn, upperBound and halves remain.
type slice struct {
	heldLn     float64   // the part of ln of a term's weight that the held spins decide: their fields and the couplings among them
	upperBound float64   // of ln of the sum over the slice
	open       []int32   // spins that are not held
	fields     []float64 // by position in open: the field of the spin, with the couplings to held spins
	d, s       []float64 // of the best bound (UpperBound): d[k+1] and s[k] belong to open[k], and d[0] to the fields
	halves     [2]*slice // the slices with one more spin held at −1 and +1; nil: it was not divided
}

// lnTotal returns the best upper bound of ln of the sum over the slice: its own bound, or ln(e^a + e^b) of the bounds a and b of its halves
// if that is less.
func (c *slice) lnTotal() float64 {
	if c.halves[0] == nil { // not divided; a divided slice has two halves
		return c.upperBound
	}
	a, b := c.halves[0].lnTotal(), c.halves[1].lnTotal()
	top := max(a, b)
	if math.IsInf(top, 0) { // a − top would be NaN
		return min(c.upperBound, top)
	}
	return min(c.upperBound, top+math.Log(math.Exp(a-top)+math.Exp(b-top)))
}

// divideSlices divides the slice root, and then always the slice with the largest bound, until maxBounds bounds have been computed or all
// spins are held. A slice is the sum over the states in which some spins have fixed signs; dividing it holds one more spin at −1 and at +1.
// That is the spin with the largest d of its bound, which the other spins decide best. The error is that of the context.
func divideSlices(ctx context.Context, m *ising.Model, root *slice, maxBounds int) error {
	var divisible []*slice
	if m.N > 0 {
		divisible = append(divisible, root)
	}
	// Root has one bound already, and each division adds the bounds of two halves.
	for bounds := 1; bounds+2 <= maxBounds && len(divisible) > 0; bounds += 2 {
		largest := 0
		for k, c := range divisible {
			if c.upperBound > divisible[largest].upperBound {
				largest = k
			}
		}
		c := divisible[largest]
		divisible = slices.Delete(divisible, largest, largest+1)
		spin := c.mostDecidedSpin()
		for k, sign := range []float64{-1, 1} {
			c.halves[k] = c.holdSpin(ctx, m, spin, sign)
			if len(c.halves[k].open) > 0 {
				divisible = append(divisible, c.halves[k])
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.open, c.fields, c.d, c.s = nil, nil, nil, nil // not needed of a divided slice
	}
	return nil
}

// mostDecidedSpin returns the position in c.open of the spin with the largest d, which the other spins decide best. d of the spin at
// position k is c.d[k+1], since c.d[0] belongs to the fields.
func (c *slice) mostDecidedSpin() int {
	spin := 0
	for k := range c.open {
		if c.d[k+1] > c.d[spin+1] {
			spin = k
		}
	}
	return spin
}

// holdSpin returns one half of a slice. A slice is the states of the model in which some spins are held at fixed signs, and the others are
// open; in the half spin c.open[k] is held at the given sign, too. The half's bound is at most that of the slice.
//
// The couplings of spin i in the model are m.J[e], to spin m.To[e], for m.First[i] ≤ e < m.First[i+1]. The bound has a matrix of n+1 rows
// and columns for n open spins: row and column 0 are the fields, and row a+1 has the couplings of the a-th open spin. So d has n+1 numbers,
// one for each row, and s has n, one for each open spin.
func (c *slice) holdSpin(ctx context.Context, m *ising.Model, k int, sign float64) *slice {
	// The fields of the open spins: those of the slice, and the couplings to the spin.
	i := c.open[k]
	half := &slice{
		// heldLn is what the held spins add to ln of a weight. Fields include couplings to held spins.
		heldLn: c.heldLn + sign*c.fields[k], open: slices.Delete(slices.Clone(c.open), k, k+1),
		fields: slices.Delete(slices.Clone(c.fields), k, k+1),
	}
	n := len(half.open)
	row := make([]int, m.N) // by spin: its row in the matrix, 1 + its position in half.open; 0: it is held
	for a, j := range half.open {
		row[j] = a + 1
	}
	for e := m.First[i]; e < m.First[i+1]; e++ {
		if a := row[m.To[e]]; a > 0 {
			half.fields[a-1] += sign * m.J[e]
		}
	}

	// The bound, which begins at d and s of the slice.
	p := &determinant{
		n: n, matrix: make([]float64, (n+1)*(n+1)),
		d: slices.Delete(slices.Clone(c.d), k+1, k+2), s: slices.Delete(slices.Clone(c.s), k, k+1),
	}
	for a, j := range half.open {
		p.matrix[a+1], p.matrix[(a+1)*(n+1)] = half.fields[a], half.fields[a]
		for e := m.First[j]; e < m.First[j+1]; e++ {
			if b := row[m.To[e]]; b > 0 {
				p.matrix[(a+1)*(n+1)+b] = m.J[e]
			}
		}
	}
	p.setFieldDiagonal(half.fields) // d[0] for the new fields
	// improve changes d and s. 1e-11 covers the rounding of heldLn, a sum of fields.
	half.upperBound = min(c.upperBound, half.heldLn+p.improve(ctx, sliceRounds)+1e-11*math.Abs(half.heldLn))
	half.d, half.s = p.d, p.s
	return half
}

// setFieldDiagonal sets d_0 to the value that makes the upper bound smallest for the present d_1 … d_n and s: 1 + hᵀ(D − J)⁻¹h. Here h are
// the fields, J the matrix of couplings, and D the diagonal matrix of d_1 … d_n. It leaves d_0 as it is if D − J is not positive definite.
func (p *determinant) setFieldDiagonal(fields []float64) {
	if p.n == 0 {
		p.d[0] = 1
		return
	}
	inner := make([]float64, 0, p.n*p.n) // D − J: the matrix of the whole bound without row and column 0, those of the fields
	whole := p.difference(p.d)
	for a := 1; a <= p.n; a++ {
		inner = append(inner, whole[a*(p.n+1)+1:(a+1)*(p.n+1)]...)
	}
	c, err := linalg.NewCholesky(inner, p.n)
	if err != nil { // D − J is not positive definite: d_0 stays
		return
	}
	x, err := c.Solve(fields)
	if err != nil {
		return
	}
	p.d[0] = 1
	for a, h := range fields {
		p.d[0] += h * x[a]
	}
}
