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
// v is the component's vector, nil for all ones, O the learned map, rotation, nil for the identity, and λ is levelOf, nil for one level.
// Cost O(dim²), or O(dim) without a map.
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

// legWeights returns the weights of every leg, as weightsOfLeg does, for the vectors r by leg; nil is all ones. Legs without vector and map
// share their weights if they have the same dimension and levels.
func (j form) legWeights(r [][]float64, levels countspace.Levels) []tensor.LegWeights {
	// Kinds of legs without vector and map: by dimension, and by the list of levels, which equal legs share.
	type kind struct {
		dim         int
		firstOfList *uint8
	}
	weightsOfKind := map[kind]tensor.LegWeights{}
	var previous kind // of the last leg without vector and map: most legs are alike
	var previousWeights tensor.LegWeights
	all := make([]tensor.LegWeights, len(j.Net.Dims))
	for leg, dim := range j.Net.Dims {
		var v, rotation []float64 // nil: all ones, the identity
		if len(r) > 0 {
			v = r[leg]
		}
		if len(j.rotations) > 0 {
			rotation = j.rotations[leg]
		}

		k := kind{dim: dim}
		var levelOf []uint8
		if levels.D > 1 {
			levelOf = levels.Of[leg]
			k.firstOfList = &levelOf[0]
		}

		if v == nil && rotation == nil {
			if previousWeights == nil || k != previous {
				if weightsOfKind[k] == nil {
					weightsOfKind[k] = weightsOfLeg(dim, nil, nil, levelOf, levels.D)
				}
				previous, previousWeights = k, weightsOfKind[k]
			}
			all[leg] = previousWeights
			continue
		}

		all[leg] = weightsOfLeg(dim, v, rotation, levelOf, levels.D)
	}
	return all
}

// pickWeights returns the weights of a link's legs, by mode, from those of all legs.
func pickWeights(legs []int, weights []tensor.LegWeights) []tensor.LegWeights {
	w := make([]tensor.LegWeights, len(legs))
	for k, l := range legs {
		w[k] = weights[l]
	}
	return w
}
