package closed

// Leg weights: what a component puts on every leg, split by level, learned maps included.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weightsOf returns the weights of one leg: W[x, a] = Σ_{y: λ(y)=a} O[x, y] v[y], a dim × D matrix.
// v nil means all ones, o nil the identity, of nil that there is one level. Cost O(dim²), O(dim)
// without a learned map.
func weightsOf(dim int, v, o []float64, of []uint8, levels int) tensor.LegWeights {
	w := make(tensor.LegWeights, dim*levels)
	for y := range dim {
		value := 1.0
		level := 0
		if v != nil {
			value = v[y]
		}
		if of != nil {
			level = int(of[y])
		}

		if o == nil {
			w[y*levels+level] = value
			continue
		}

		for x := range dim {
			w[x*levels+level] += float64(o[x*dim+y] * value)
		}
	}
	return w
}

// legWeights returns the weights of every leg under vectors r (nil: all ones). Equal ones are
// shared where that is free to know: legs without vector and learned map, and of one dimension and
// one row of levels.
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
					plain[k] = weightsOf(dim, nil, nil, of, levels.D)
				}
				last, same = k, plain[k]
			}
			all[l] = same
			continue
		}

		all[l] = weightsOf(dim, v, o, of, levels.D)
	}
	return all
}

// on picks the weights of a link's legs.
func on(legs []int, all []tensor.LegWeights) []tensor.LegWeights {
	w := make([]tensor.LegWeights, len(legs))
	for k, l := range legs {
		w[k] = all[l]
	}
	return w
}
