package aggregate

// Phases of belief propagation that a family may have lost.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/query"
)

// besidePhases returns a verdict beside several phases of belief propagation. Contractions drop a phase that has no weight where they
// truncate, and chains never cross to some, both without a sign of it. So where the phases together are above an estimate, by as much as
// some of them weigh, that is uncertain by the distance, but at most by what the others add to the phase that is nearest to it, beside
// what it states itself, and truncated legs by leastOfPhases.
func (g *sequence) besidePhases(v verdict) verdict {
	p := g.bp
	if v.best < 0 || v.uncertainty == nil || p == nil || p.Together == nil || p.Impossible {
		return v
	}
	best := g.estimates[v.best]
	value := *best.LogZ
	if !best.isLogLinear() && !best.isPooled() {
		v.uncertainty = finite(max(*v.uncertainty, g.leastOfPhases()))
	}
	if !weigh(p, *p.Together-value) {
		return v
	}
	u, lost := *v.uncertainty, 0.0
	nearest := math.Inf(1)
	for _, z := range p.Phases {
		if far := math.Abs(z - value); far < nearest {
			nearest, lost = far, min(*p.Together-value, *p.Together-z+u)
		}
	}
	v.uncertainty = finite(max(u, lost))
	return v
}

// leastPhaseUncertainty is the least uncertainty of truncated legs beside several phases: the root of 1e-12, below which singular values
// are always dropped. Measured: 4e-9 was off where 2e-12 was stated.
const leastPhaseUncertainty = 1e-6

// leastOfPhases is the least uncertainty of truncated legs beside several phases, 0 beside one: they drop what is below rounding of one
// phase, also where they say that they drop nothing, and the root of that may be left for another.
func (g *sequence) leastOfPhases() float64 {
	if g.bp == nil || g.bp.Together == nil {
		return 0
	}
	return leastPhaseUncertainty
}

// mostPieces bounds the phases whose subsets are looked through.
const mostPieces = 12

// weigh reports whether the phases without some of them are lower by about so many nats: by half as much to twice as much. Else the
// distance is an error of their Bethe values, as all of them are shifted by it.
func weigh(p *query.Propagation, far float64) bool {
	if !(far > 0) {
		return false
	}
	rest := 1.0 // of phases that mirror those
	var pieces []float64
	for _, z := range p.Phases[:min(len(p.Phases), mostPieces)] {
		share := math.Exp(z - *p.Together)
		pieces = append(pieces, share)
		rest -= share
	}
	if rest > 1e-9 {
		pieces = append(pieces, rest)
	}
	for set := 1; set < 1<<len(pieces)-1; set++ {
		share := 0.0
		for k, x := range pieces {
			if set>>k&1 == 1 {
				share += x
			}
		}
		if lost := -math.Log1p(-min(share, 1)); far/2 <= lost && lost <= 2*far {
			return true
		}
	}
	return false
}
