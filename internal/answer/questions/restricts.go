package questions

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// restricts reports whether no term of Z is larger under the evidence e than under the evidence given. That is so if e has all observations
// and all likelihoods of given, unchanged, and its further likelihoods have weights of at most 1.
func restricts(e, given factorgraph.Evidence) bool {
	for _, o := range given.Hard {
		if !slices.Contains(e.Hard, o) {
			return false
		}
	}
	unchanged := 0 // the number of likelihoods of given that e contains
	for _, s := range e.Soft {
		i := slices.IndexFunc(given.Soft, func(g factorgraph.Likelihood) bool { return g.Var == s.Var })
		isGiven := i >= 0
		switch {
		case isGiven && slices.Equal(given.Soft[i].Weights, s.Weights):
			unchanged++
		case isGiven, slices.Max(s.Weights) > 1: // given with other weights, or a further one that may make terms larger
			return false
		}
	}
	return unchanged == len(given.Soft)
}
