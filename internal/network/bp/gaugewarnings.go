package bp

// The gauge of belief propagation as it arrived: its distance from a fixed point, and the legs concerned.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// unbalanced is the size of entries with one excited leg, relative to that with none, above which
// messages have not converged.
const unbalanced = 1e-6

// gaugeWarnings reports the residues of belief propagation: entries with exactly one
// excited leg, which vanish at a fixed point, and legs that keep the identity. Either makes no
// answer wrong. Cost: an entry per value of every leg.
func gaugeWarnings(net *btn.Network) []string {
	gauged, worst := 0, 0.0
	for _, m := range net.Maps {
		if m.Kind == query.MapBP {
			gauged++
		}
	}
	if gauged == 0 {
		return nil
	}
	for _, c := range net.Cores {
		worst = max(worst, singleExcitation(net, c.Legs, c.T))
	}

	var warnings []string
	if worst > unbalanced {
		warnings = append(warnings,
			fmt.Sprintf("belief propagation did not converge: a factor in its gauge has %.1e of its entry "+
				"at 0…0 where one leg is excited",
				worst))
	}

	if rest := len(net.Maps) - gauged; rest > 0 && net.Choice != query.CoresAreVariables {
		warnings = append(warnings,
			fmt.Sprintf("%d of %d legs keep the identity map: their messages make no well-conditioned "+
				"one, or their factor is too large",
				rest, len(net.Maps)))
	}

	return warnings
}

// singleExcitation returns the largest entry with one leg excited, relative to that with none; 0 for
// a tensor with a leg that is not in the gauge.
func singleExcitation(net *btn.Network, legs []int, t tensor.Tensor) float64 {
	for _, l := range legs {
		if net.Maps[l].Kind != query.MapBP {
			return 0
		}
	}
	x := make([]int, len(legs))
	zero, worst := tensor.At(t, x).Abs(), 0.0
	for k, l := range legs {
		for x[k] = 1; x[k] < net.Dims[l]; x[k]++ {
			if e := tensor.At(t, x).Abs(); e.Sign() > 0 {
				worst = max(worst, min(e.Div(zero).Float64(), math.MaxFloat64))
			}
		}
		x[k] = 0
	}
	return worst
}
