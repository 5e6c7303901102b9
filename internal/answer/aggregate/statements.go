package aggregate

// The answer by several methods: their judges say one thing about ln Z together.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// decide chooses the answer so far and states its uncertainty. It sets best (the estimate of the answer), answerZ (its value) and answer
// (its statement). A statement is what all estimates of one method state together about ln Z: the best of them, and its uncertainty.
//
//   - An estimate whose quality is known is the answer, and has no statement.
//   - A complete estimate (judge.Statement.IsComplete) is the answer.
//   - Otherwise the answer is the best estimate of the method that states the smallest uncertainty (leastUncertain).
//   - If another method contradicts that, the uncertainty becomes larger (contradiction).
//   - In the end bounds limit value and uncertainty (moveIntoBounds).
func (g *sequence) decide() {
	g.best, g.answer, g.statements = nil, judge.Statement{}, nil
	g.outside, g.contradicted, g.proven = 0, 0, math.Inf(1) // of the answer before
	for _, r := range g.evaluated {
		if r.Plan.Quality != nil && r.err == nil {
			g.best, g.answerZ = r, r.Z
			return
		}
	}

	statements, complete := g.collectStatements()
	if complete != nil {
		g.choose(*complete)
		return
	}
	g.statements = statements
	answer, ok := g.leastUncertain()
	if !ok {
		return
	}
	g.choose(answer)
	if g.answer.Uncertainty != nil {
		g.contradicted = g.contradiction(answer)
		if g.contradicted > 0 {
			g.answer.Uncertainty = finite(g.contradicted)
		}
	}
	g.moveIntoBounds()
}

// collectStatements returns the statements of all judges that have a value. A judge knows the estimates of one method, and states how far
// they may be off. Each judge makes its statement, and then reconsiders it beside those of the others. If a method has probably lost a
// phase, the part of Z around one fixed point of belief propagation, its uncertainty is raised. If the best estimate of a judge is
// complete, which means that it dropped nothing, only the statement of that judge is returned, as complete.
func (g *sequence) collectStatements() (list []judge.Statement, complete *judge.Statement) {
	statements := make([]*judge.Statement, 0, len(g.judges.All))
	for _, j := range g.judges.All {
		statement := j.MakeStatement()
		if statement.IsComplete {
			return nil, &statement
		}
		statements = append(statements, &statement)
	}
	for k, j := range g.judges.All {
		j.Reconsider(statements[k], slices.Concat(statements[:k], statements[k+1:]))
	}
	for _, statement := range statements {
		if statement.Best != nil {
			g.widenForLostPhases(statement)
			list = append(list, *statement)
		}
	}
	return list, nil
}

// leastUncertain returns the statement with the smallest uncertainty, the first one of equals. ok is false if no statement counts.
//
//   - An uncertainty counts as at most the distance from the statement's ln Z to the farther of the two bounds (FartherDistance). If a
//     method states no uncertainty, that distance counts as its uncertainty. If one of the bounds is missing, the statement comes last.
//   - A statement of a method that misses weight does not count if another method surpasses it (isSurpassed).
//   - A statement that the bounds exclude, since its whole interval is outside of them, does not count if another statement has an
//     uncertainty and is not excluded.
func (g *sequence) leastUncertain() (answer judge.Statement, ok bool) {
	isSound := func(s judge.Statement) bool { return s.Uncertainty != nil && !g.excludes(s) }
	isAnySound := slices.ContainsFunc(g.statements, isSound)
	smallest := math.Inf(1)
	for _, s := range g.statements {
		isRuledOut := isAnySound && g.excludes(s)
		if isRuledOut || g.isSurpassed(s) {
			continue
		}
		u := min(g.Bounds.FartherDistance(*s.Best.LogZ), math.MaxFloat64)
		if s.Uncertainty != nil {
			u = min(u, *s.Uncertainty)
		}
		if u < smallest {
			smallest, answer = u, s
		}
	}
	return answer, answer.Best != nil
}

// choose makes the best estimate of a statement the answer.
func (g *sequence) choose(s judge.Statement) {
	g.answer, g.best, g.answerZ = s, g.byJudged[s.Best], s.Best.Z
}

// isSurpassed reports whether a method misses weight, and a credible method, which bounds do not exclude, states a higher ln Z.
func (g *sequence) isSurpassed(s judge.Statement) bool {
	return s.MissesWeight && slices.ContainsFunc(g.statements, func(other judge.Statement) bool {
		return other.IsCredible && other.Uncertainty != nil && !g.excludes(other) && *other.Best.LogZ > *s.Best.LogZ
	})
}

// contradiction returns the uncertainty of an answer that another method contradicts, 0 if none does. Two methods contradict each other if
// the distance of their values of ln Z exceeds the sum of their uncertainties: their intervals do not meet, and one of the two is wrong.
//
//   - If the answer is wrong and the other method right, ln Z is in the other method's interval. Its nearer end is as far from the answer
//     as the distance minus the other method's uncertainty. So the uncertainty is at least that.
//   - Nobody knows which of the two is wrong. So it is also at least half of the distance, which reaches the middle between the two values.
//
// The largest uncertainty by any method counts. A statement that bounds exclude is no contradiction, unless they exclude the answer's
// statement, too.
func (g *sequence) contradiction(answer judge.Statement) (u float64) {
	for _, s := range g.statements {
		isOther := s.Best != answer.Best
		if !isOther || !s.IsCredible || s.Uncertainty == nil {
			continue
		}
		if g.excludes(s) && !g.excludes(answer) {
			continue // bounds show which of the two is wrong
		}
		if distance := math.Abs(*s.Best.LogZ - *answer.Best.LogZ); distance > *s.Uncertainty+*answer.Uncertainty {
			u = max(u, distance-*s.Uncertainty, distance/2)
		}
	}
	return u
}

// excludes reports whether the whole interval that a method states for ln Z is outside of the bounds. It is false if the method states no
// uncertainty.
func (g *sequence) excludes(s judge.Statement) bool {
	if s.Uncertainty == nil {
		return false
	}
	lower, upper, _ := g.Bounds.Tightest()
	ln := *s.Best.LogZ
	return ln+*s.Uncertainty < lower.Ln || ln-*s.Uncertainty > upper.Ln
}

// moveIntoBounds moves the answer to the nearer bound on ln Z if it is outside of the bounds. Its uncertainty is then at least the length
// of the move. If there are bounds on both sides, the uncertainty is at most the distance from the farther one (FartherDistance). It
// sets outside to the length of a move that is above the uncertainty stated before, and proven to the distance from the farther bound.
func (g *sequence) moveIntoBounds() {
	lower, upper, _ := g.Bounds.Tightest()      // the level, how surely they hold, does not matter here
	ln, u := *g.best.LogZ, g.answer.Uncertainty // u is nil if the method states none
	inside := min(max(ln, lower.Ln), upper.Ln)
	if inside != ln {
		g.answerZ = scaled.FromLog(inside)
		move := math.Abs(inside - ln)
		if u == nil || move > *u {
			g.outside = move
		}
		if u != nil {
			u = finite(max(*u, move))
		}
	}
	g.proven = max(upper.Ln-inside, inside-lower.Ln)
	if reach := g.Bounds.FartherDistance(inside); isFinite(reach) && (u == nil || *u > reach) {
		u = finite(max(reach, judge.LeastError(inside)))
	}
	g.answer.Uncertainty = u
}
