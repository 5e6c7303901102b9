package aggregate

// The answer by several methods: their judges say one thing about ln Z together.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// decide chooses the answer so far and states its uncertainty.
//
//   - An estimate whose quality is known is the answer, and has none.
//   - A complete estimate (judge.Statement.IsComplete) is the answer.
//   - Else it is the best estimate of the method that states least. None is off by more than the farther bound (judge.Bounds.Reach). A
//     method that states nothing comes last without bounds, but for those whose statements bounds exclude.
//   - A method that misses weight is not the answer beside one that states more (isSurpassed).
//   - Phases of belief propagation that a method may have lost count (besidePhases).
//   - How far another method's best is away counts, less what that states of itself: one of both is further off than it says. It does not
//     count if bounds exclude all that the other states.
//   - What is known to hold has the last word (withinBounds).
func (g *sequence) decide() {
	g.best, g.answer, g.statements = nil, judge.Statement{}, nil
	g.outside, g.contradicted, g.proven = 0, 0, math.Inf(1)
	for _, r := range g.evaluated {
		if r.Plan.Quality != nil && r.err == nil {
			g.best, g.z = r, r.Z
			return
		}
	}

	statements := make([]*judge.Statement, 0, len(g.judges.All))
	for _, j := range g.judges.All {
		statement := j.State()
		if statement.IsComplete {
			g.take(statement)
			return
		}
		statements = append(statements, &statement)
	}
	for k, j := range g.judges.All {
		j.Reconsider(statements[k], slices.Concat(statements[:k], statements[k+1:]))
	}
	for _, statement := range statements {
		if statement.Best != nil {
			g.besidePhases(statement)
			g.statements = append(g.statements, *statement)
		}
	}

	isSound := slices.ContainsFunc(g.statements, func(s judge.Statement) bool { return s.Uncertainty != nil && !g.excludes(s) })
	var answer judge.Statement
	least := math.Inf(1)
	for _, s := range g.statements {
		if isSound && g.excludes(s) || g.isSurpassed(s) {
			continue
		}
		u := min(g.Bounds.Reach(*s.Best.LogZ), math.MaxFloat64)
		if s.Uncertainty != nil {
			u = min(u, *s.Uncertainty)
		}
		if u < least {
			least, answer = u, s
		}
	}
	if answer.Best == nil {
		return
	}
	g.take(answer)
	if g.answer.Uncertainty != nil {
		if g.contradicted = g.contradiction(answer); g.contradicted > 0 {
			g.answer.Uncertainty = finite(g.contradicted)
		}
	}
	g.withinBounds()
}

// take makes a statement the answer.
func (g *sequence) take(s judge.Statement) {
	g.answer, g.best, g.z = s, g.of[s.Best], s.Best.Z
}

// isSurpassed reports whether a method that misses weight is below what another method states, within bounds.
func (g *sequence) isSurpassed(s judge.Statement) bool {
	return s.MissesWeight && slices.ContainsFunc(g.statements, func(other judge.Statement) bool {
		return other.IsCredible && other.Uncertainty != nil && !g.excludes(other) && *other.Best.LogZ > *s.Best.LogZ
	})
}

// contradiction returns the uncertainty of an answer that another method contradicts, 0 if none does. Two methods
// contradict each other if their distance exceeds the sum of their uncertainties. One of both is wrong: the uncertainty is
// the distance minus the other method's uncertainty, and at least half of the distance.
func (g *sequence) contradiction(answer judge.Statement) (u float64) {
	for _, s := range g.statements {
		if s.Best == answer.Best || !s.IsCredible || s.Uncertainty == nil {
			continue
		}
		if g.excludes(s) && !g.excludes(answer) {
			continue // bounds show which of both is wrong
		}
		if distance := math.Abs(*s.Best.LogZ - *answer.Best.LogZ); distance > *s.Uncertainty+*answer.Uncertainty {
			u = max(u, distance-*s.Uncertainty, distance/2)
		}
	}
	return u
}

// excludes reports whether bounds exclude all that a method states.
func (g *sequence) excludes(s judge.Statement) bool {
	if s.Uncertainty == nil {
		return false
	}
	below, above, _ := g.Bounds.Between()
	ln := *s.Best.LogZ
	return ln+*s.Uncertainty < below.Ln || ln-*s.Uncertainty > above.Ln
}

// withinBounds moves an answer outside what is known to bound ln Z to the bound, and is uncertain by how far that was, at least. Inside
// it is uncertain by the distance of the farther bound at most (judge.Bounds.Reach), if there are both.
func (g *sequence) withinBounds() {
	below, above, _ := g.Bounds.Between()
	lower, upper := below.Ln, above.Ln
	ln, u := *g.best.LogZ, g.answer.Uncertainty
	inside := min(max(ln, lower), upper)
	if inside != ln {
		g.z = scaled.FromLog(inside)
		outside := math.Abs(inside - ln)
		if u == nil || outside > *u {
			g.outside = outside
		}
		if u != nil {
			u = finite(max(*u, outside))
		}
	}
	g.proven = max(upper-inside, inside-lower)
	if reach := g.Bounds.Reach(inside); isFinite(reach) && (u == nil || *u > reach) {
		u = finite(max(reach, judge.Floor(inside)))
	}
	g.answer.Uncertainty = u
}
