package aggregate

// Phases of belief propagation that a method may have lost.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// widenForLostPhases raises the uncertainty of a statement if its method has probably lost phases. A phase is a part of all assignments
// around one fixed point of belief propagation, and its weight is its share of Z. Contractions drop a phase that has no weight where they
// truncate, and Markov chains never cross to some phases, and nothing in their results shows that.
//
// p.Phases are ln of the weights of the phases by belief propagation, and *p.Together is ln of the sum of these weights, which may include
// phases that are not listed. The gap is *p.Together − ln Z of the estimate. If some of the phases together have about the weight that is
// missing (isWeightOfPhases), they are probably lost. Let nearest be the one of p.Phases that is nearest to ln Z of the estimate. The
// uncertainty u becomes
//
//	max(u, min(gap, *p.Together − nearest + u))
func (g *sequence) widenForLostPhases(s *judge.Statement) {
	p := g.Propagation
	hasPhases := p != nil && p.Together != nil && !p.Impossible
	if s.Uncertainty == nil || !hasPhases {
		return
	}
	ln := *s.Best.LogZ
	gap := *p.Together - ln
	if !isWeightOfPhases(p, gap) {
		return
	}
	needed, nearest := 0.0, math.Inf(1) // the uncertainty that the nearest phase asks for, and the distance of that phase from ln
	for _, phase := range p.Phases {
		if distance := math.Abs(phase - ln); distance < nearest {
			nearest, needed = distance, min(gap, *p.Together-phase+*s.Uncertainty)
		}
	}
	s.Uncertainty = finite(max(*s.Uncertainty, needed))
}

// mostPhases is the largest number of phases of which all subsets are tried.
const mostPhases = 12

// isWeightOfPhases reports whether an estimate of ln Z that is gap nats below *p.Together has probably lost phases. A phase is a part of
// all assignments around one fixed point of belief propagation, and its weight is its share of Z. *p.Together is ln of the weight of all
// phases together, and p.Phases are ln of the weights of single ones.
//
// The result is true if there is a set of phases without which *p.Together would fall by gap/2 to 2·gap nats. If no set fits, the gap is
// rather an error of the values of belief propagation (Bethe values), which shifts all phases together. *p.Together may include phases that
// are not listed: one more phase stands for all of these.
func isWeightOfPhases(p *query.Propagation, gap float64) bool {
	if !(gap > 0) {
		return false
	}
	remaining := 1.0 // the share of the phases that are not listed in the weight of all together
	var shares []float64
	for _, ln := range p.Phases[:min(len(p.Phases), mostPhases)] {
		share := math.Exp(ln - *p.Together)
		shares = append(shares, share)
		remaining -= share
	}
	if remaining > 1e-9 { // more than rounding
		shares = append(shares, remaining)
	}
	allLost := 1<<len(shares) - 1        // the set of all phases; there are at most 2^(mostPhases + 1) sets
	for set := 1; set < allLost; set++ { // bit k of set: phase k is lost
		lostShare := 0.0
		for k, share := range shares {
			if set>>k&1 == 1 {
				lostShare += share
			}
		}
		if fall := -math.Log1p(-min(lostShare, 1)); gap/2 <= fall && fall <= 2*gap {
			return true
		}
	}
	return false
}
