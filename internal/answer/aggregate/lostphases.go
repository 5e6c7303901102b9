package aggregate

// Phases of belief propagation that a method may have lost.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// besidePhases changes a statement beside several phases of belief propagation. Contractions drop a phase that has no weight where they
// truncate, and chains never cross to some, both without a sign of it. So if the phases together are above an estimate, by as much as
// some of them weigh, that is uncertain by the distance, but at most by what the others add to the phase that is nearest to it, beside
// what it states itself.
func (g *sequence) besidePhases(s *judge.Statement) {
	p := g.Propagation
	if s.Uncertainty == nil || p == nil || p.Together == nil || p.Impossible {
		return
	}
	ln := *s.Best.LogZ
	if !weigh(p, *p.Together-ln) {
		return
	}
	lost, nearest := 0.0, math.Inf(1)
	for _, phase := range p.Phases {
		if distance := math.Abs(phase - ln); distance < nearest {
			nearest, lost = distance, min(*p.Together-ln, *p.Together-phase+*s.Uncertainty)
		}
	}
	s.Uncertainty = finite(max(*s.Uncertainty, lost))
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
