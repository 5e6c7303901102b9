// Package counts contracts networks in count space (Lemmas 3 and 4): symmetric cores of any size
// stay functions of their counts, and the subnetworks on their legs are polynomials in these,
//
//	Z = Σ_c S_c [z^c] Π_t p_t(z)
//
// with a piece t for every connected part of the network without these cores. Equal pieces are one
// polynomial raised to a power in closed form; a piece with tables of its own, a tree say, is
// eliminated with polynomials as entries. A leg may be in one symmetric core only, a variable in any
// number of them: every core has count variables of its own.
// Source: Hamid and Braun, Lemmas 3 and 4.
package counts

// The layout: the counting legs of every core, and the kinds of the other cores.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// slot is one term of a symmetric core in count space.
type slot struct {
	levels        countspace.Levels
	firstVariable int             // its first count variable
	poly          countspace.Poly // S of the term
	vectors       [][]float64     // R of the term, by mode; nil: all ones
}

// layout is a network with some of its cores in count space. The other cores are of rank one, and belong to the links, or tables.
type layout struct {
	net                    *btn.Network
	countVariables         int // of all slots together
	slots                  []slot
	coreOf, modeOf, slotOf []int32       // by leg: its core, the axis of the core, and the core's slot (−1: none)
	vectorOf               [][]float64   // by leg: the vector of a rank-one core; nil: ones
	isTable                []bool        // by core: it is neither in count space nor of rank one
	scale                  scaled.Number // of the rank-one cores
	linkOf                 []int         // by leg: its link
}

// newLayout classifies the cores of a network. A core of the part is in count space: one of its terms, as the part says, gets a slot, a
// polynomial S in count variables of its own. Any other core of rank one becomes vectors on its legs, and the rest are tables. Every core
// needs a leg.
func newLayout(ctx context.Context, net *btn.Network, part *Counts) (*layout, error) {
	n := len(net.Dims)
	l := &layout{
		net:      net,
		coreOf:   make([]int32, n),
		modeOf:   make([]int32, n),
		slotOf:   make([]int32, n),
		vectorOf: make([][]float64, n),
		isTable:  make([]bool, len(net.Cores)),
		scale:    scaled.One,
		linkOf:   net.LinkOfLeg(),
	}

	slotNumber := make([]int, len(net.Cores)) // by core: 1 + the number of its slot, or 0 if it has none
	for k, c := range part.Cores {
		slotNumber[c] = k + 1
		l.addSlot(net.Cores[c].T, part.Terms[k])
	}

	look := pace.New(ctx) // counts operations, and is over once the context has ended
	for c, core := range net.Cores {
		if look.Over(int64(len(core.Legs) + 1)) {
			return nil, look.Err()
		}
		for mode, leg := range core.Legs {
			l.coreOf[leg] = int32(c)
			l.modeOf[leg] = int32(mode)
			l.slotOf[leg] = int32(slotNumber[c] - 1) // −1: the core is not in count space
		}
		if isInCountSpace := slotNumber[c] > 0; !isInCountSpace {
			l.addRankOneOrTable(c, core)
		}
	}
	return l, nil
}

// addRankOneOrTable makes vectors on the legs of core c if it is of rank one, and otherwise marks it as a table.
func (l *layout) addRankOneOrTable(c int, core btn.Core) {
	weight, vectors, ok := RankOne(core.T)
	if !ok {
		l.isTable[c] = true
		return
	}
	l.scale = l.scale.Mul(weight)
	for mode, leg := range core.Legs {
		l.vectorOf[leg] = vectors[mode]
	}
}

// addSlot adds a slot for one term of a symmetric core. The term's entry depends only on how many legs have a value of each level. So it is
// a polynomial S in count variables of the slot, one for each level above 0, which come after those of the slots before.
func (l *layout) addSlot(t tensor.Tensor, term int) {
	form := AsSymmetricTerms(t)
	shape := form.Levels.Shape()
	s := countspace.Poly{Shape: shape, Coef: form.Terms[term].S}
	l.slots = append(l.slots, slot{
		levels:        form.Levels,
		firstVariable: l.countVariables,
		poly:          countspace.Crop(s, shape), // numbers are normalised by that
		vectors:       form.Terms[term].R,
	})
	l.countVariables += len(shape)
}

// contribution returns what value y of a leg contributes to the polynomial of its piece: a weight w, and the count variable that it counts
// at, numbered from 1 on. level is 0 if the value does not count. The leg's core is of rank one, with a vector on the leg, or in count
// space, in a slot, with a level for each value and perhaps a vector.
func (l *layout) contribution(leg, y int) (w float64, level int) {
	w = 1
	if v := l.vectorOf[leg]; v != nil {
		w = v[y]
	}
	if l.slotOf[leg] < 0 {
		return w, 0
	}
	s := &l.slots[l.slotOf[leg]]
	mode := l.modeOf[leg]
	if s.vectors != nil && s.vectors[mode] != nil {
		w = s.vectors[mode][y]
	}
	if a := int(s.levels.Of[mode][y]); a > 0 {
		level = s.firstVariable + a // a is at least 1
	}
	return w, level
}

// legWeights returns the contributions of all values of a leg as a matrix, row by row. Row y has the weight of value y in the column of the
// count variable that it counts at, and zeros elsewhere. Column 0 is for values that do not count.
func (l *layout) legWeights(leg int) tensor.LegWeights {
	dim, columns := l.net.Dims[leg], l.countVariables+1
	matrix := make(tensor.LegWeights, dim*columns)
	for y := range dim {
		weight, level := l.contribution(leg, y)
		matrix[y*columns+level] = weight
	}
	return matrix
}

// onTable reports whether the core of a leg is a table.
func (l *layout) onTable(leg int) bool { return l.isTable[l.coreOf[leg]] }

// AsSymmetricTerms returns a symmetric tensor as a sum of terms, each a symmetric tensor times a rank-one tensor. It returns nil for
// other tensors.
func AsSymmetricTerms(t tensor.Tensor) *tensor.SymmetryCP {
	switch t := t.(type) {
	case *tensor.Symmetric:
		one := tensor.SymmetryRankOne{Alpha: 1, S: t.Values}
		return &tensor.SymmetryCP{Shape: t.Shape, Levels: t.Levels, Terms: []tensor.SymmetryRankOne{one}}
	case *tensor.SymmetryCP:
		return t
	}
	return nil
}

// strictTolerance is the relative difference of an entry from the product of its vectors that is put
// down to rounding.
const strictTolerance = 1e-15

// RankOne writes a tensor of rank one as weight · ⊗_k vectors[k], exactly up to the rounding of every single entry: zeros stay zeros, and
// small entries are as exact as large ones. A nil vector is all ones. ok is false if the tensor has another rank or form.
func RankOne(t tensor.Tensor) (weight scaled.Number, vectors [][]float64, ok bool) {
	switch t := t.(type) {
	case *tensor.CP:
		if len(t.Weights) != 1 {
			return weight, nil, false
		}
		// A nil vector stands for the identity as the factor matrix. With one term the matrix is 1×1, so its only entry is 1.
		return scaled.FromFloat(t.Weights[0]), t.Vectors, true
	case *tensor.Dense:
		return denseRankOne(t)
	}
	return weight, nil, false
}

// denseRankOne is RankOne for a table t of n axes. The vectors are the rows along each axis through the largest entry p, and the weight is
// 1/p^(n−1).
func denseRankOne(t *tensor.Dense) (weight scaled.Number, vectors [][]float64, ok bool) {
	order := len(t.Shape)
	if order == 0 {
		return scaled.FromFloat(t.Data[0]), nil, true
	}
	pivot := 0
	for i, x := range t.Data {
		if math.Abs(x) > math.Abs(t.Data[pivot]) {
			pivot = i
		}
	}
	pivotEntry := scaled.FromFloat(t.Data[pivot])
	if pivotEntry.IsZero() {
		return pivotEntry, make([][]float64, order), true
	}

	weight = scaled.One
	for range order - 1 {
		weight = weight.Div(pivotEntry)
	}
	vectors = make([][]float64, order)
	stride := len(t.Data) // between entries that are neighbours along axis k
	for k, d := range t.Shape {
		stride /= d
		firstOfRow := pivot - pivot/stride%d*stride // the row along axis k through the pivot, at index 0
		vectors[k] = make([]float64, d)
		for x := range d {
			vectors[k][x] = t.Data[firstOfRow+x*stride]
		}
	}
	return weight, vectors, isProduct(t, weight, vectors)
}

// isProduct reports whether each entry of a table equals weight · Π_k vectors[k], up to a relative difference of strictTolerance for each
// axis.
func isProduct(t *tensor.Dense, weight scaled.Number, vectors [][]float64) bool {
	tolerance := scaled.FromFloat(strictTolerance * float64(len(t.Shape)))
	for i, entry := range t.Data {
		product := weight
		stride := len(t.Data)
		for k, d := range t.Shape {
			stride /= d
			product = product.Mul(scaled.FromFloat(vectors[k][i/stride%d]))
		}
		expected := scaled.FromFloat(entry)
		if product.Sub(expected).Abs().Cmp(expected.Abs().Mul(tolerance)) > 0 {
			return false
		}
	}
	return true
}
