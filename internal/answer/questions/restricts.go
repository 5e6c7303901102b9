package questions

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// restricts reports whether evidence is the given one and more of it, so that no term of Z can grow: all
// observations of given, all its weights unchanged, and further weights of at most 1.
func restricts(e, given factorgraph.Evidence) bool {
	for _, o := range given.Hard {
		if !slices.Contains(e.Hard, o) {
			return false
		}
	}
	kept := 0
	for _, s := range e.Soft {
		at := slices.IndexFunc(given.Soft, func(g factorgraph.Likelihood) bool { return g.Var == s.Var })
		switch {
		case at >= 0 && slices.Equal(given.Soft[at].Weights, s.Weights):
			kept++
		case at >= 0 || slices.Max(s.Weights) > 1:
			return false
		}
	}
	return kept == len(given.Soft)
}
