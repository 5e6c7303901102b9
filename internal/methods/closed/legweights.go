package closed

// Leg weights: what a component puts on every leg, split by level, learned maps included.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weightsOfLeg returns the weights of a leg of dimension dim, W[x, a] = Σ_{y: λ(y)=a} O[x, y] v[y], by value and level. A nil vector is all
// ones, a nil rotation O the identity. If levelOf, which is λ, is nil, there is one level. Cost O(dim²), or O(dim) without a rotation.
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

// legWeights returns the weights of every leg under vectors r; nil is all ones. Legs without vector and rotation share their weights if
// they have one dimension and one row of levels.
func (j form) legWeights(r [][]float64, levels countspace.Levels) []tensor.LegWeights {
	type kind struct {
		dim int
		of  *uint8
	}
	plain := map[kind]tensor.LegWeights{}
	var last kind // of the leg before, with its weights: most legs are alike
	var same tensor.LegWeights
	all := make([]tensor.LegWeights, len(j.Net.Dims))
	for l, dim := range j.Net.Dims {
		var v, o []float64
		if len(r) > 0 {
			v = r[l]
		}
		if len(j.rotations) > 0 {
			o = j.rotations[l]
		}

		k := kind{dim: dim}
		var of []uint8
		if levels.D > 1 {
			of = levels.Of[l]
			k.of = &of[0]
		}

		if v == nil && o == nil {
			if same == nil || k != last {
				if plain[k] == nil {
					plain[k] = weightsOfLeg(dim, nil, nil, of, levels.D)
				}
				last, same = k, plain[k]
			}
			all[l] = same
			continue
		}

		all[l] = weightsOfLeg(dim, v, o, of, levels.D)
	}
	return all
}

// pickWeights returns the weights of a link's legs.
func pickWeights(legs []int, all []tensor.LegWeights) []tensor.LegWeights {
	w := make([]tensor.LegWeights, len(legs))
	for k, l := range legs {
		w[k] = all[l]
	}
	return w
}
