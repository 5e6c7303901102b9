package closed

// Costs before the work: what decides how components are grouped into tasks.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Cost implements contraction.Priced. It counts dense links by their entries and links in CP form by their terms, in O(legs + links).
func (p *RankOne) Cost(of *problem.Problem) query.Cost {
	net := of.Net
	return query.Cost{Flops: 2 * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced: that of RankOne for every term.
func (p *CP) Cost(of *problem.Problem) query.Cost {
	terms, net := float64(len(p.Tensor.Weights)), of.Net
	return query.Cost{Flops: 2 * terms * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced. It counts products in count space by their boxes.
func (p *SymmetryRankOne) Cost(of *problem.Problem) query.Cost {
	net := of.Net
	return query.Cost{Flops: 2*rotationCost(net, p.Frame) + CountFlops(net, p.Frame.Levels)}
}

// CountFlops predicts the flops of a part over count space with given levels, whatever its S and R, before there is a part.
func CountFlops(net *btn.Network, levels countspace.Levels) float64 {
	boxes := make([][]float64, len(net.Links))
	for j, link := range net.Links {
		boxes[j] = boxOf(link.Legs, levels)
	}
	products, whole := productCost(boxes, levels.D-1)
	return 2 * (linksCost(net, levels) + products + boxVolume(whole))
}

// rotationCost returns the multiply-adds of Σ_y O[x, y] v[y] on every leg that has a learned map O.
func rotationCost(net *btn.Network, frame *btn.Frame) float64 {
	cost := 0.0
	for l, o := range frame.Rotations {
		if o != nil && l < len(net.Dims) {
			cost += float64(net.Dims[l]) * float64(net.Dims[l])
		}
	}
	return cost
}

// linksCost returns the multiply-adds of the count polynomials of all links.
func linksCost(net *btn.Network, levels countspace.Levels) float64 {
	cost := 0.0
	for _, link := range net.Links {
		cost += linkCost(link, levels)
	}
	return cost
}

// linkCost returns the multiply-adds of tensor.CountPoly for one link.
func linkCost(link btn.Link, levels countspace.Levels) float64 {
	whole := boxVolume(boxOf(link.Legs, levels))
	switch t := link.T.(type) {
	case *tensor.Dense:
		return denseCost(t.Shape, link.Legs, levels)
	case *tensor.CP:
		dims := 0.0
		for l, d := range t.Shape {
			if t.Vectors[l] != nil {
				dims += float64(d * levels.D)
			}
			dims++
		}
		return float64(len(t.Weights)) * (dims + pairCost(whole, levels))
	case *tensor.Symmetric:
		return symmetricCost(len(t.Shape), t.Levels, whole)
	case *tensor.SymmetryCP:
		return float64(len(t.Terms)) * symmetricCost(len(t.Shape), t.Levels, whole)
	}
	return 0
}

// denseCost returns the multiply-adds for a dense link, whose legs are contracted from the last to the first: with m legs left there are
// Π_{l<m} d_l entries over the box of the others.
func denseCost(shape, legs []int, levels countspace.Levels) float64 {
	cost, entries := 0.0, 1.0
	for k, d := range shape {
		entries *= float64(d)
		cost += entries * boxVolume(boxOf(legs[k+1:], levels)) * float64(levels.D)
	}
	return cost
}

// symmetricCost returns the multiply-adds of a product tree over the levels of a symmetric link of so many legs, joined with the
// component's, whose box over the link has whole coefficients.
func symmetricCost(legs int, levels countspace.Levels, whole float64) float64 {
	size := 1.0
	for _, s := range levels.Shape() {
		size *= float64(s)
	}

	joint := math.Max(size, whole)
	if whole > 1 && whole != size {
		joint = size * whole // both kinds of counts are carried, unless one decides the other
	}
	return joint*joint/2 + float64(legs)
}

// pairCost returns the multiply-adds of a product tree over a box of so many coefficients, in which each pair meets once.
func pairCost(size float64, levels countspace.Levels) float64 {
	if levels.D == 1 {
		return 0
	}
	return size * size / 2
}

// boxOf returns the box of counts of some legs: by level, one more than the number of legs that may count there.
func boxOf(legs []int, levels countspace.Levels) []float64 {
	shape := slices.Repeat([]float64{1}, levels.D-1)
	for _, l := range legs {
		for a := 1; a < levels.D; a++ {
			for _, level := range levels.Of[l] {
				if int(level) == a {
					shape[a-1]++
					break
				}
			}
		}
	}
	return shape
}

// productCost returns the multiply-adds of counts.Multiply for polynomials over some boxes, and the box of the result.
func productCost(boxes [][]float64, vars int) (cost float64, whole []float64) {
	whole = slices.Repeat([]float64{1}, vars)

	if vars > 1 {
		boxes = slices.Clone(boxes)
		slices.SortStableFunc(boxes,
			func(a, b []float64) int { return cmp.Compare(boxVolume(b), boxVolume(a)) })
	}

	// In one variable the order does not matter: Σ_{i<j} degree_i·degree_j, and lower terms.
	for _, box := range boxes {
		cost += boxVolume(whole) * filledEntries(box)
		for a := range whole {
			whole[a] += box[a] - 1
		}
	}

	return cost, whole
}

// filledEntries estimates how many coefficients of a link's polynomial are not 0: in several variables a leg is at one level for every
// value.
func filledEntries(box []float64) float64 {
	if len(box) < 2 {
		return boxVolume(box)
	}
	n := 1.0
	for _, side := range box {
		n += side - 1
	}
	return n
}

// boxVolume returns the number of coefficients of a box.
func boxVolume(shape []float64) float64 {
	v := 1.0
	for _, s := range shape {
		v *= s
	}
	return v
}
