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

// Cost implements contraction.Priced: dense links by their entries, links in CP form by their terms. It takes O(legs + links).
func (p *RankOne) Cost(of *problem.Problem) query.Cost {
	net := of.Net
	return query.Cost{Flops: 2 * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced: as of RankOne, for every term.
func (p *CP) Cost(of *problem.Problem) query.Cost {
	terms, net := float64(len(p.Tensor.Weights)), of.Net
	return query.Cost{Flops: 2 * terms * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced: products in count space by their boxes.
func (p *SymmetryRankOne) Cost(of *problem.Problem) query.Cost {
	net := of.Net
	return query.Cost{Flops: 2*rotationCost(net, p.Frame) + CountFlops(net, p.Frame.Levels)}
}

// CountFlops predicts what a part over count space takes, of whatever S and R, before there is one.
func CountFlops(net *btn.Network, levels countspace.Levels) float64 {
	boxes := make([][]float64, len(net.Links))
	for j, link := range net.Links {
		boxes[j] = boxOf(link.Legs, levels)
	}
	products, whole := productCost(boxes, levels.D-1)
	return 2 * (linksCost(net, levels) + products + volume(whole))
}

// rotationCost is that of Σ_y O[x, y] v[y] on every leg that has a learned map.
func rotationCost(net *btn.Network, frame *btn.Frame) float64 {
	cost := 0.0
	for l, o := range frame.Rotations {
		if o != nil && l < len(net.Dims) {
			cost += float64(net.Dims[l]) * float64(net.Dims[l])
		}
	}
	return cost
}

// linksCost adds up the count polynomials of all links.
func linksCost(net *btn.Network, levels countspace.Levels) float64 {
	cost := 0.0
	for _, link := range net.Links {
		cost += linkCost(link, levels)
	}
	return cost
}

// linkCost is that of tensor.CountPoly of one link.
func linkCost(link btn.Link, levels countspace.Levels) float64 {
	whole := volume(boxOf(link.Legs, levels))
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

// denseCost contracts legs from the last to the first:
// with m legs left, Π_{l<m} d_l entries over the box of the others.
func denseCost(shape, legs []int, levels countspace.Levels) float64 {
	cost, left := 0.0, 1.0
	for k, d := range shape {
		left *= float64(d)
		cost += left * volume(boxOf(legs[k+1:], levels)) * float64(levels.D)
	}
	return cost
}

// symmetricCost is that of a product tree over the tensor's own levels,
// joined with the component's.
func symmetricCost(legs int, own countspace.Levels, whole float64) float64 {
	size := 1.0
	for _, s := range own.Shape() {
		size *= float64(s)
	}

	joint := math.Max(size, whole)
	if whole > 1 && whole != size {
		joint = size * whole // both kinds of counts are carried, unless one decides the other
	}
	return joint*joint/2 + float64(legs)
}

// pairCost is the multiply-adds of a product tree over a box: a pair of coefficients meets once.
func pairCost(size float64, levels countspace.Levels) float64 {
	if levels.D == 1 {
		return 0
	}
	return size * size / 2
}

// boxOf returns the box of counts of some legs.
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

// productCost is the multiply-adds of counts.Multiply, and the box of its result.
func productCost(boxes [][]float64, vars int) (cost float64, whole []float64) {
	whole = slices.Repeat([]float64{1}, vars)

	if vars > 1 {
		boxes = slices.Clone(boxes)
		slices.SortStableFunc(boxes,
			func(a, b []float64) int { return cmp.Compare(volume(b), volume(a)) })
	}

	// In one variable the order does not matter: Σ_{i<j} degree_i·degree_j, and lower terms.
	for _, box := range boxes {
		cost += volume(whole) * filled(box)
		for a := range whole {
			whole[a] += box[a] - 1
		}
	}

	return cost, whole
}

// filled is how many coefficients of a link's polynomial are not 0, roughly: in several variables a leg is at
// one level for every value.
func filled(box []float64) float64 {
	if len(box) < 2 {
		return volume(box)
	}
	n := 1.0
	for _, side := range box {
		n += side - 1
	}
	return n
}

// volume is the number of coefficients of a box.
func volume(shape []float64) float64 {
	v := 1.0
	for _, s := range shape {
		v *= s
	}
	return v
}
