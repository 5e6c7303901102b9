package closed

// Leg weights: what a component puts on every leg, split by level, learned maps included.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weightsOfLeg returns the weights of a leg of dimension dim, by value x and level a:
//
//	W[x*levels+a] = Σ_{y: λ(y)=a} O[x*dim+y] v[y]
//
// v is the component's vector; nil stands for all ones. O is the learned map, rotation; nil stands for the identity. λ is levelOf; nil
// stands for one level. Cost O(dim²), or O(dim) without a map.
func weightsOfLeg(dim int, vector, rotation []float64, levelOf []uint8, levels int) tensor.LegWeights {
	w := make(tensor.LegWeights, dim*levels)
	for y := range dim {
		value := 1.0
		level := 0
		if vector != nil {
			value = vector[y]
		}
		if levelOf != nil {
			level = int(levelOf[y])
		}

		if rotation == nil {
			w[y*levels+level] = value
			continue
		}

		for x := range dim {
			w[x*levels+level] += float64(rotation[x*dim+y] * value)
		}
	}
	return w
}

// legWeights returns the weights of every leg, as weightsOfLeg does, for the vectors r by leg; nil is all ones. A level is a class of the
// values of a leg; the weights are by value and level. Legs without vector and map share their weights if they have the same dimension and
// levels.
func (j form) legWeights(r [][]float64, levels countspace.Levels) []tensor.LegWeights {
	plain := plainLegs{levels: levels.D, weights: map[legKind]tensor.LegWeights{}}
	weights := make([]tensor.LegWeights, len(j.Net.Dims))
	for leg, dim := range j.Net.Dims {
		var v, rotation []float64 // nil: all ones, the identity
		if len(r) > 0 {
			v = r[leg]
		}
		if len(j.rotations) > 0 {
			rotation = j.rotations[leg]
		}
		var levelOf []uint8
		if levels.D > 1 {
			levelOf = levels.Of[leg]
		}
		if v == nil && rotation == nil {
			weights[leg] = plain.weightsOf(dim, levelOf)
		} else {
			weights[leg] = weightsOfLeg(dim, v, rotation, levelOf, levels.D)
		}
	}
	return weights
}

// plainLegs remembers the weights of legs without vector and map, by kind.
type plainLegs struct {
	levels   int
	weights  map[legKind]tensor.LegWeights
	lastKind legKind // of the last call: most legs are alike, so that it saves a look at the map
	last     tensor.LegWeights
}

// legKind is the dimension of a leg, and the address of its list of levels, which equal legs share; nil for one level.
type legKind struct {
	dim         int
	firstOfList *uint8
}

// weightsOf returns the weights of a leg without vector and map. Legs of one kind share them. p.last has the weights of the last call, so
// that a sequence of legs of one kind takes one look-up.
func (p *plainLegs) weightsOf(dim int, levelOf []uint8) tensor.LegWeights {
	kind := legKind{dim: dim}
	if levelOf != nil {
		kind.firstOfList = &levelOf[0]
	}
	if p.last == nil || kind != p.lastKind {
		if p.weights[kind] == nil {
			p.weights[kind] = weightsOfLeg(dim, nil, nil, levelOf, p.levels) // nil: all ones, the identity
		}
		p.lastKind, p.last = kind, p.weights[kind]
	}
	return p.last
}

// pickWeights returns the weights of a link's legs, by mode, from those of all legs.
func pickWeights(legs []int, weights []tensor.LegWeights) []tensor.LegWeights {
	w := make([]tensor.LegWeights, len(legs))
	for k, l := range legs {
		w[k] = weights[l]
	}
	return w
}
