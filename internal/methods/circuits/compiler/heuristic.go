package compiler

// The decision heuristic: which variable is decided next, and to which value.

// heuristic scores the open variables of a component.
type heuristic struct {
	problem  *problem
	value    []int8    // by literal: the solver's
	clauses  []int32   // by variable: the number of its clauses in its component
	tables   []int32   // by variable: the number of its tables
	guide    []float64 // by variable of the formula: the weight of its place in the tree decomposition
	activity []float64 // by literal: occurrences and conflicts, the older ones for less

	// By variable of the formula with many values: half the number of its open values in the component, and the sum of their scores.
	halves, sums []float64

	stats *Stats // it counts the decisions
}

// newHeuristic returns the heuristic that chooses decisions in the components of splitter s. guide has, for each variable of the formula,
// what the tree decomposition adds to its score. The clauses, those of two literals and more, give the literals their first activities, as
// conflicts do later.
func newHeuristic(s *splitter, clauses [][]lit, guide []float64, stats *Stats) *heuristic {
	p := s.residual.problem
	h := &heuristic{
		problem: p, value: s.residual.value, clauses: s.clauses, tables: s.tables, guide: guide, activity: make([]float64, 2*p.booleans()),
		halves: make([]float64, len(guide)), sums: make([]float64, len(guide)), stats: stats,
	}
	for _, c := range clauses {
		h.reward(c)
	}
	return h
}

// reward counts an occurrence of each of the literals, in a clause or in a conflict.
func (h *heuristic) reward(literals []lit) {
	for _, l := range literals {
		h.activity[l]++
	}
}

// activityDecay is the number of decisions that halve the activity of literals, activityWeight the
// weight of a conflict against an occurrence.
const (
	activityDecay  = 128
	activityWeight = 10
)

// decide returns the literal to decide on in a component with the Boolean variables vars. It is about the open variable of the highest
// score; if some variables have clauses, only these count. Of a variable of two values, the literal is the one with the higher activity,
// which conflicts raise. A variable of the formula with more values has a Boolean variable for each value, and one score for all: the sum
// of the scores of its n open values divided by (n/2)², so that variables of few values come first. The decision is to take its value of
// the highest score. h.guide is what the tree decomposition adds to scores.
// Source: F. Boussemart et al., Boosting systematic search by weighting constraints (ECAI 2004).
func (h *heuristic) decide(vars []int32) lit {
	h.countDecision()
	h.sumValues(vars) // the sums of scores, and halves of the numbers of values, n/2
	best, highest, onlyWithClauses := int32(-1), 0.0, false
	for _, v := range vars {
		if isOpen := h.value[positive(v)] == 0; !isOpen {
			continue
		}
		if h.clauses[v] > 0 && !onlyWithClauses {
			best, onlyWithClauses = -1, true // forget the variables without clauses
		}
		if h.clauses[v] == 0 && onlyWithClauses {
			continue
		}
		owner := h.problem.formulaVariable[v]
		score := h.guide[owner]
		if h.problem.isOneOfMany[v] {
			score += h.sums[owner] / (h.halves[owner] * h.halves[owner])
		} else {
			score += h.score(v)
		}
		// Another value of the best variable so far may have a higher score of its own.
		isBetterValue := best >= 0 && owner == h.problem.formulaVariable[best] && h.score(v) > h.score(best)
		if best < 0 || score > highest || isBetterValue {
			best, highest = v, score
		}
	}

	trueLiteral, falseLiteral := positive(best), negative(best)
	if h.problem.isOneOfMany[best] || h.activity[trueLiteral] > h.activity[falseLiteral] {
		return trueLiteral
	}
	return falseLiteral
}

// countDecision counts a decision. Once in activityDecay decisions it halves the activity of all literals, so that older occurrences count
// less.
func (h *heuristic) countDecision() {
	h.stats.Decisions++
	if h.stats.Decisions%activityDecay == 0 {
		for l := range h.activity {
			h.activity[l] /= 2
		}
	}
}

// score returns the score of a Boolean variable by its clauses, tables and conflicts, without the weight of its place in the tree
// decomposition.
func (h *heuristic) score(v int32) float64 {
	return float64(h.clauses[v]+h.tables[v]) + activityWeight*(h.activity[2*v]+h.activity[2*v+1])
}

// sumValues computes, for each variable of the formula that has more than two values, two numbers over its open values among the Boolean
// variables vars: half of their number (halves), and the sum of their scores (sums). decide divides the sum by the square of the half.
func (h *heuristic) sumValues(vars []int32) {
	for _, v := range vars {
		if owner := h.problem.formulaVariable[v]; h.problem.isOneOfMany[v] {
			h.halves[owner], h.sums[owner] = 0, 0
		}
	}
	for _, v := range vars {
		if owner := h.problem.formulaVariable[v]; h.problem.isOneOfMany[v] && h.value[positive(v)] == 0 {
			h.halves[owner] += 0.5
			h.sums[owner] += h.score(v)
		}
	}
}
