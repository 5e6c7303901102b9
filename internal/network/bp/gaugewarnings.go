package bp

// Warnings about a gauge of belief propagation: how far it is from a fixed point, and which legs have none.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxSingleExcitation is a limit of the entries with one excited leg, relative to the entry with none. Above it the messages have not
// converged.
const maxSingleExcitation = 1e-6

// gaugeWarnings returns warnings about a network in the gauge of belief propagation, which maps every leg by the messages on it. There are
// two warnings, and neither tells that an answer is wrong. The first is that belief propagation has not converged: at its fixed point every
// entry with exactly one excited leg (a leg at a value other than 0) is 0. The second is that some legs keep the identity as their map.
// gaugeWarnings returns nil if no leg is in the gauge. Cost: an entry per value of every leg.
func gaugeWarnings(net *btn.Network) []string {
	gaugedLegs := 0
	for _, m := range net.Maps {
		if m.Kind == query.MapBP {
			gaugedLegs++
		}
	}
	if gaugedLegs == 0 {
		return nil
	}
	largest := 0.0
	for _, c := range net.Cores {
		largest = max(largest, singleExcitation(net, c.Legs, c.T))
	}

	var warnings []string
	if largest > maxSingleExcitation {
		warnings = append(warnings,
			fmt.Sprintf("belief propagation did not converge: a factor in its gauge has %.1e of its entry "+
				"at 0…0 where one leg is excited",
				largest))
	}

	if identities := len(net.Maps) - gaugedLegs; identities > 0 && net.Choice != query.CoresAreVariables {
		warnings = append(warnings,
			fmt.Sprintf("%d of %d legs keep the identity map: their messages make no well-conditioned "+
				"one, or their factor is too large",
				identities, len(net.Maps)))
	}

	return warnings
}

// singleExcitation returns the largest entry of t with exactly one leg excited (at a value other than 0), divided by the entry with all
// legs at 0, in absolute values. If that entry is 0 and an excited one is not, it returns the largest float64. It returns 0 if a leg is
// not in the gauge of belief propagation.
func singleExcitation(net *btn.Network, legs []int, t tensor.Tensor) float64 {
	for _, l := range legs {
		if net.Maps[l].Kind != query.MapBP {
			return 0
		}
	}
	values := make([]int, len(legs)) // by leg
	groundEntry, largest := tensor.At(t, values).Abs(), 0.0
	for k, l := range legs {
		for values[k] = 1; values[k] < net.Dims[l]; values[k]++ {
			excitedEntry := tensor.At(t, values).Abs()
			if excitedEntry.Sign() > 0 {
				largest = max(largest, min(excitedEntry.Div(groundEntry).Float64(), math.MaxFloat64))
			}
		}
		values[k] = 0
	}
	return largest
}
