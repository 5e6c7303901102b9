package questions

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// restricts reports whether evidence e contains all of the evidence given and only adds to it what cannot make a term of Z larger: all
// observations of given, all its weights unchanged, and further weights of at most 1.
func restricts(e, given factorgraph.Evidence) bool {
	for _, o := range given.Hard {
		if !slices.Contains(e.Hard, o) {
			return false
		}
	}
	unchanged := 0 // the number of likelihoods of given that e contains
	for _, s := range e.Soft {
		i := slices.IndexFunc(given.Soft, func(g factorgraph.Likelihood) bool { return g.Var == s.Var })
		switch {
		case i >= 0 && slices.Equal(given.Soft[i].Weights, s.Weights):
			unchanged++
		case i >= 0 || slices.Max(s.Weights) > 1:
			return false
		}
	}
	return unchanged == len(given.Soft)
}
