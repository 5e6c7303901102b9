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
	coreOf, modeOf, slotOf []int32       // by leg: its core, the mode of the core, and the core's slot (−1: none)
	vectorOf               [][]float64   // by leg: the vector of a rank-one core; nil: ones
	isTable                []bool        // by core: it is neither in count space nor of rank one
	scale                  scaled.Number // of the rank-one cores
	linkOf                 []int         // by leg
}

// newLayout classifies the cores of a network: those of the part, those of rank one, and tables. Every core needs a leg.
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
		linkOf:   net.LegLink(),
	}
	slotNumber := make([]int, len(net.Cores)) // 1 + the slot
	for k, c := range part.Cores {
		slotNumber[c] = k + 1
		l.addSlot(net.Cores[c].T, part.Terms[k])
	}

	p := pace.New(ctx)
	for c, core := range net.Cores {
		if p.Over(int64(len(core.Legs) + 1)) {
			return nil, p.Err()
		}
		for mode, leg := range core.Legs {
			l.coreOf[leg] = int32(c)
			l.modeOf[leg] = int32(mode)
			l.slotOf[leg] = int32(slotNumber[c] - 1)
		}
		if slotNumber[c] > 0 {
			continue
		}
		weight, r, ok := RankOne(core.T)
		if !ok {
			l.isTable[c] = true
			continue
		}
		l.scale = l.scale.Mul(weight)
		for mode, leg := range core.Legs {
			l.vectorOf[leg] = r[mode]
		}
	}
	return l, nil
}

// addSlot gives a term of a symmetric core count variables of its own.
func (l *layout) addSlot(t tensor.Tensor, term int) {
	form := Terms(t)
	shape := form.Levels.Shape()
	s := countspace.Poly{Shape: shape, Coef: form.Terms[term].S}
	l.slots = append(l.slots, slot{
		levels:        form.Levels,
		firstVariable: l.countVariables,
		poly:          countspace.Crop(s, shape), // normalised
		vectors:       form.Terms[term].R,
	})
	l.countVariables += len(shape)
}

// contribution returns what value y of a leg contributes: a weight w, and the count variable that it counts at, from 1 on. It returns 0 for
// a value that does not count.
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
		level = s.firstVariable + a
	}
	return w, level
}

// legWeights returns the contributions of the values of a leg that no table has, as a matrix: row y has the weight of value y in the column
// of the count variable that it counts at, and zeros in all others. Column 0 is that of values that do not count.
func (l *layout) legWeights(leg int) tensor.LegWeights {
	dim, d := l.net.Dims[leg], l.countVariables+1
	w := make(tensor.LegWeights, dim*d)
	for y := range dim {
		x, level := l.contribution(leg, y)
		w[y*d+level] = x
	}
	return w
}

// onTable reports whether a leg's core is a table.
func (l *layout) onTable(leg int) bool { return l.isTable[l.coreOf[leg]] }

// Terms returns a symmetric tensor as a sum of symmetric terms times rank-one tensors. It returns nil for other tensors.
func Terms(t tensor.Tensor) *tensor.SymmetryCP {
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

// RankOne writes a tensor as weight · ⊗ r, exactly up to the rounding of every single entry: zeros are zeros, and entries far below the
// largest count like all others. A nil vector is all ones. ok is false for a tensor of another rank or form.
func RankOne(t tensor.Tensor) (weight scaled.Number, r [][]float64, ok bool) {
	switch t := t.(type) {
	case *tensor.CP:
		if len(t.Weights) != 1 {
			return weight, nil, false
		}
		return scaled.FromFloat(t.Weights[0]), t.Vectors, true // one term over one value is all ones
	case *tensor.Dense:
		return denseRankOne(t)
	}
	return weight, nil, false
}

// denseRankOne is RankOne for a table t. Its vectors are the rows through the largest entry p, and its weight is 1/p^(n−1) for n axes.
func denseRankOne(t *tensor.Dense) (weight scaled.Number, r [][]float64, ok bool) {
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
	r = make([][]float64, order)
	stride := len(t.Data)
	for k, d := range t.Shape {
		stride /= d
		firstOfRow := pivot - pivot/stride%d*stride
		r[k] = make([]float64, d)
		for x := range d {
			r[k][x] = t.Data[firstOfRow+x*stride]
		}
	}
	return weight, r, isProduct(t, weight, r)
}

// isProduct reports whether each entry of a table equals that of weight · ⊗ r, up to strictTolerance for each axis.
func isProduct(t *tensor.Dense, weight scaled.Number, r [][]float64) bool {
	tolerance := scaled.FromFloat(strictTolerance * float64(len(t.Shape)))
	for i, want := range t.Data {
		got := weight
		stride := len(t.Data)
		for k, d := range t.Shape {
			stride /= d
			got = got.Mul(scaled.FromFloat(r[k][i/stride%d]))
		}
		w := scaled.FromFloat(want)
		if got.Sub(w).Abs().Cmp(w.Abs().Mul(tolerance)) > 0 {
			return false
		}
	}
	return true
}
