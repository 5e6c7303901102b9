package aggregate

// Phases of belief propagation that a method may have lost.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// widenForLostPhases raises the uncertainty of a statement if its method has probably lost phases. Contractions drop a phase that has no
// weight where they truncate, and chains never cross to some phases, both without a sign of it.
//
// Let the gap be the distance from the estimate up to the sum of all phases. If the gap is about the weight of some of the phases, these
// are probably lost. The uncertainty is then at least the gap, but no more is needed than what the other phases add to the phase whose
// value is nearest to the estimate, plus the uncertainty before.
func (g *sequence) widenForLostPhases(s *judge.Statement) {
	p := g.Propagation
	if s.Uncertainty == nil || p == nil || p.Together == nil || p.Impossible {
		return
	}
	ln := *s.Best.LogZ
	gap := *p.Together - ln
	if !isWeightOfPhases(p, gap) {
		return
	}
	needed, nearest := 0.0, math.Inf(1)
	for _, phase := range p.Phases {
		if distance := math.Abs(phase - ln); distance < nearest {
			nearest, needed = distance, min(gap, *p.Together-phase+*s.Uncertainty)
		}
	}
	s.Uncertainty = finite(max(*s.Uncertainty, needed))
}

// mostPieces is the largest number of phases of which all subsets are tried.
const mostPieces = 12

// isWeightOfPhases reports whether ln Z would fall by about gap nats, between half and twice as many, without some subset of the phases. If
// no subset fits, the gap is rather an error of the Bethe values, which shifts all phases together.
func isWeightOfPhases(p *query.Propagation, gap float64) bool {
	if !(gap > 0) {
		return false
	}
	remaining := 1.0 // the share of Z of phases that are not listed, which mirror those that are
	var shares []float64
	for _, ln := range p.Phases[:min(len(p.Phases), mostPieces)] {
		share := math.Exp(ln - *p.Together)
		shares = append(shares, share)
		remaining -= share
	}
	if remaining > 1e-9 {
		shares = append(shares, remaining)
	}
	for set := 1; set < 1<<len(shares)-1; set++ { // bit k of set: phase k is lost
		lost := 0.0
		for k, share := range shares {
			if set>>k&1 == 1 {
				lost += share
			}
		}
		if fall := -math.Log1p(-min(lost, 1)); gap/2 <= fall && fall <= 2*gap {
			return true
		}
	}
	return false
}
