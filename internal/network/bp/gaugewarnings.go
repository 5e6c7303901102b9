package bp

// Warnings about a gauge of belief propagation: how far it is from a fixed point, and which legs have none.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// unbalanced is the size of an entry with one excited leg, relative to the entry with none, above which the messages have not converged.
const unbalanced = 1e-6

// gaugeWarnings returns warnings about a network in the gauge of belief propagation: that entries with exactly one excited leg (a value
// other than 0) are not 0, as they are at a fixed point; and that legs keep the identity. Neither makes an answer wrong. It returns nil if
// no leg is in the gauge. Cost: an entry per value of every leg.
func gaugeWarnings(net *btn.Network) []string {
	gauged, largest := 0, 0.0
	for _, m := range net.Maps {
		if m.Kind == query.MapBP {
			gauged++
		}
	}
	if gauged == 0 {
		return nil
	}
	for _, c := range net.Cores {
		largest = max(largest, singleExcitation(net, c.Legs, c.T))
	}

	var warnings []string
	if largest > unbalanced {
		warnings = append(warnings,
			fmt.Sprintf("belief propagation did not converge: a factor in its gauge has %.1e of its entry "+
				"at 0…0 where one leg is excited",
				largest))
	}

	if identities := len(net.Maps) - gauged; identities > 0 && net.Choice != query.CoresAreVariables {
		warnings = append(warnings,
			fmt.Sprintf("%d of %d legs keep the identity map: their messages make no well-conditioned "+
				"one, or their factor is too large",
				identities, len(net.Maps)))
	}

	return warnings
}

// singleExcitation returns the largest entry of t with one leg excited, divided by the entry with none, in absolute values. It returns 0 if
// a leg is not in the gauge.
func singleExcitation(net *btn.Network, legs []int, t tensor.Tensor) float64 {
	for _, l := range legs {
		if net.Maps[l].Kind != query.MapBP {
			return 0
		}
	}
	x := make([]int, len(legs))
	ground, largest := tensor.At(t, x).Abs(), 0.0
	for k, l := range legs {
		for x[k] = 1; x[k] < net.Dims[l]; x[k]++ {
			if excited := tensor.At(t, x).Abs(); excited.Sign() > 0 {
				largest = max(largest, min(excited.Div(ground).Float64(), math.MaxFloat64))
			}
		}
		x[k] = 0
	}
	return largest
}
