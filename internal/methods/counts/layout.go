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

// slot is a symmetric core in count space: one term of it.
type slot struct {
	levels countspace.Levels
	first  int // its first count variable
	s      countspace.Poly
	r      [][]float64 // by mode; nil: all ones
}

// layout is a network with some of its cores in count space.
type layout struct {
	net   *btn.Network
	vars  int // count variables of all slots together
	slots []slot
	// By leg: its core, the mode there, and the slot of the core (−1: none).
	core, mode, slot []int32
	vector           [][]float64   // by leg: the vector of a rank-one core; nil: ones
	table            []bool        // by core: it is neither in count space nor of rank one
	scale            scaled.Number // of the rank-one cores
	link             []int         // by leg
}

// newLayout classifies the cores of a network. Cores without legs must not be among them.
func newLayout(ctx context.Context, net *btn.Network, part *Counts) (*layout, error) {
	n := len(net.Dims)
	l := &layout{
		net:    net,
		core:   make([]int32, n),
		mode:   make([]int32, n),
		slot:   make([]int32, n),
		vector: make([][]float64, n),
		table:  make([]bool, len(net.Cores)),
		scale:  scaled.One,
		link:   net.LegLink(),
	}
	kept := make([]int, len(net.Cores)) // 1 + the slot
	for k, c := range part.Cores {
		kept[c] = k + 1
		l.add(net.Cores[c].T, part.Terms[k])
	}

	p := pace.New(ctx)
	for c, core := range net.Cores {
		if p.Over(int64(len(core.Legs) + 1)) {
			return nil, p.Err()
		}
		for mode, leg := range core.Legs {
			l.core[leg] = int32(c)
			l.mode[leg] = int32(mode)
			l.slot[leg] = int32(kept[c] - 1)
		}
		if kept[c] > 0 {
			continue
		}
		weight, r, ok := RankOne(core.T)
		if !ok {
			l.table[c] = true
			continue
		}
		l.scale = l.scale.Mul(weight)
		for mode, leg := range core.Legs {
			l.vector[leg] = r[mode]
		}
	}
	return l, nil
}

// add gives the term of a symmetric core count variables of its own.
func (l *layout) add(t tensor.Tensor, term int) {
	form := Terms(t)
	shape := form.Levels.Shape()
	s := countspace.Poly{Shape: shape, Coef: form.Terms[term].S}
	l.slots = append(l.slots, slot{
		levels: form.Levels,
		first:  l.vars,
		s:      countspace.Crop(s, shape), // normalised
		r:      form.Terms[term].R,
	})
	l.vars += len(shape)
}

// weight returns the contribution of value y of a leg: a weight, and the level that it counts at,
// 0 for none.
func (l *layout) weight(leg, y int) (w float64, level int) {
	w = 1
	if v := l.vector[leg]; v != nil {
		w = v[y]
	}
	if l.slot[leg] < 0 {
		return w, 0
	}
	s := &l.slots[l.slot[leg]]
	mode := l.mode[leg]
	if s.r != nil && s.r[mode] != nil {
		w = s.r[mode][y]
	}
	if a := int(s.levels.Of[mode][y]); a > 0 {
		level = s.first + a
	}
	return w, level
}

// legWeights returns the weights of a leg that no table has, split by level.
func (l *layout) legWeights(leg int) tensor.LegWeights {
	dim, d := l.net.Dims[leg], l.vars+1
	w := make(tensor.LegWeights, dim*d)
	for y := range dim {
		x, level := l.weight(leg, y)
		w[y*d+level] = x
	}
	return w
}

// onTable reports whether a leg's core is a table.
func (l *layout) onTable(leg int) bool { return l.table[l.core[leg]] }

// Terms views a symmetric form as symmetry-CP; nil for other forms.
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

// RankOne writes a tensor as weight · ⊗ r, exactly up to the rounding of every single entry: zeros
// are zeros, and entries far below the largest count like all others. A nil vector is all ones. It is
// false for tensors of any other rank.
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

// denseRankOne compares t[x] · p^(n−1) with Π_k t[p at x_k], p being the largest entry and its place.
func denseRankOne(t *tensor.Dense) (weight scaled.Number, r [][]float64, ok bool) {
	n := len(t.Shape)
	if n == 0 {
		return scaled.FromFloat(t.Data[0]), nil, true
	}
	pivot := 0
	for i, x := range t.Data {
		if math.Abs(x) > math.Abs(t.Data[pivot]) {
			pivot = i
		}
	}
	p := scaled.FromFloat(t.Data[pivot])
	if p.IsZero() {
		return p, make([][]float64, n), true
	}

	weight = scaled.One
	for range n - 1 {
		weight = weight.Div(p)
	}
	r = make([][]float64, n)
	stride := len(t.Data)
	for k, d := range t.Shape {
		stride /= d
		at := pivot - pivot/stride%d*stride
		r[k] = make([]float64, d)
		for x := range d {
			r[k][x] = t.Data[at+x*stride]
		}
	}
	return weight, r, isProduct(t, weight, r)
}

// isProduct reports whether a table equals weight · ⊗ r, entry by entry.
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
