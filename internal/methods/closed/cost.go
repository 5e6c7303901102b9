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
func (p *RankOne) Cost(problem *problem.Problem) query.Cost {
	net := problem.Net
	return query.Cost{Flops: 2 * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced: it is that of a component of rank one for every term.
func (p *CP) Cost(problem *problem.Problem) query.Cost {
	terms, net := float64(len(p.Tensor.Weights)), problem.Net
	return query.Cost{Flops: 2 * terms * (rotationCost(net, p.Frame) + linksCost(net, oneLevel))}
}

// Cost implements contraction.Priced. It counts products in count space by their boxes.
func (p *SymmetryRankOne) Cost(problem *problem.Problem) query.Cost {
	net := problem.Net
	return query.Cost{Flops: 2*rotationCost(net, p.Frame) + CountFlops(net, p.Frame.Levels)}
}

// CountFlops predicts the flops of contracting a component S∘R with given levels, for any S and R.
func CountFlops(net *btn.Network, levels countspace.Levels) float64 {
	boxes := make([][]float64, len(net.Links))
	for j, link := range net.Links {
		boxes[j] = boxOf(link.Legs, levels)
	}
	products, productBox := productCost(boxes, levels.D-1)
	return 2 * (linksCost(net, levels) + products + boxVolume(productBox))
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

// linkCost returns the multiply-adds of tensor.CountPoly for one link, a tensor and its legs. Its count polynomial has a variable for each
// level of values that a component counts. Its box is the range of the exponents, which has a coefficient for each combination of counts.
func linkCost(link btn.Link, levels countspace.Levels) float64 {
	boxSize := boxVolume(boxOf(link.Legs, levels))
	switch t := link.T.(type) {
	case *tensor.Dense:
		return denseCost(t.Shape, link.Legs, levels)
	case *tensor.CP:
		legFactors := 0.0 // multiply-adds of the factors of all legs in one term
		for mode, d := range t.Shape {
			if t.Vectors[mode] != nil {
				legFactors += float64(d * levels.D)
			}
			legFactors++ // and one for the product with the factors before it
		}
		return float64(len(t.Weights)) * (legFactors + pairCost(boxSize, levels))
	case *tensor.Symmetric:
		return symmetricCost(len(t.Shape), t.Levels, boxSize)
	case *tensor.SymmetryCP:
		return float64(len(t.Terms)) * symmetricCost(len(t.Shape), t.Levels, boxSize)
	}
	return 0
}

// denseCost returns the multiply-adds of the count polynomial of a dense link. Its legs are contracted from the last to the first: while m
// legs are left, there are Π_{l<m} d_l entries, each over the box of the other legs.
func denseCost(shape, legs []int, levels countspace.Levels) float64 {
	cost, entries := 0.0, 1.0
	for k, d := range shape {
		entries *= float64(d)
		cost += entries * boxVolume(boxOf(legs[k+1:], levels)) * float64(levels.D)
	}
	return cost
}

// symmetricCost returns the multiply-adds of the count polynomial of a symmetric link with the given number of legs. A link counts its legs
// by their levels, a component of the network by levels of its own. The polynomial is a product over the legs, made pair by pair (a product
// tree), with a variable for each level of the link and for each of the component. levels are the link's. componentSize is the number of
// combinations of the component's counts of these legs.
func symmetricCost(legs int, levels countspace.Levels, componentSize float64) float64 {
	linkSize := 1.0
	for _, s := range levels.Shape() {
		linkSize *= float64(s)
	}

	// The polynomials carry the counts of the link and those of the component, unless one of them decides the other.
	coefficients := math.Max(linkSize, componentSize)
	if componentSize > 1 && componentSize != linkSize {
		coefficients = linkSize * componentSize
	}
	return coefficients*coefficients/2 + float64(legs) // each pair of coefficients meets once
}

// pairCost returns the multiply-adds of a product tree whose result has size coefficients: each pair of them meets once. With one level
// there is no product.
func pairCost(size float64, levels countspace.Levels) float64 {
	if levels.D == 1 {
		return 0
	}
	return size * size / 2
}

// boxOf returns the box of the counts of some legs. The count of a level is the number of legs whose value is at that level. The box has
// for each level but 0 the number of values of its count: one more than the number of legs that have a value at that level.
func boxOf(legs []int, levels countspace.Levels) []float64 {
	box := slices.Repeat([]float64{1}, levels.D-1)
	for _, leg := range legs {
		for level := 1; level < levels.D; level++ {
			if slices.Contains(levels.Of[leg], uint8(level)) {
				box[level-1]++
			}
		}
	}
	return box
}

// productCost returns the multiply-adds of counts.MultiplyPolys for polynomials in countVariables variables, and the box of their product.
// A box is the range of the exponents: for each variable the largest exponent plus 1. boxes has the box of each polynomial. In several
// variables the largest is multiplied first, as counts.MultiplyPolys does. In one variable the sequence does not change the cost: it is
// Σ_{i<j} degree_i·degree_j and lower terms.
func productCost(boxes [][]float64, countVariables int) (cost float64, product []float64) {
	product = slices.Repeat([]float64{1}, countVariables)

	if countVariables > 1 {
		boxes = slices.Clone(boxes)
		slices.SortStableFunc(boxes,
			func(a, b []float64) int { return cmp.Compare(boxVolume(b), boxVolume(a)) })
	}

	for _, box := range boxes {
		cost += boxVolume(product) * filledEntries(box)
		for a := range product {
			product[a] += box[a] - 1
		}
	}

	return cost, product
}

// filledEntries estimates the number of coefficients of a link's polynomial that are not 0. box has for each variable, one of the
// component's levels, the largest exponent plus 1. In one variable it counts the whole box. In several variables it counts the constant,
// and a coefficient for each leg and level at which the leg can count.
func filledEntries(box []float64) float64 {
	if len(box) < 2 {
		return boxVolume(box)
	}
	count := 1.0
	for _, side := range box {
		count += side - 1
	}
	return count
}

// boxVolume returns the number of coefficients of a box: the product of its sides.
func boxVolume(box []float64) float64 {
	volume := 1.0
	for _, side := range box {
		volume *= side
	}
	return volume
}
