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

// newHeuristic returns a heuristic for components of a splitter. The clauses are those of two literals and more.
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

// reward adds an occurrence of each of some literals, in a clause or in a conflict.
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

// decide returns the decision for a component of these variables: of the open ones with a clause, or of all open ones if there is none, the
// one with the highest score, and of its values the one that was in more conflicts. A variable of many values has the mean score of its
// open values by half the number of them, so that few values are tried first, and is decided to have the one with the highest.
// Source: F. Boussemart et al., Boosting systematic search by weighting constraints (ECAI 2004).
func (h *heuristic) decide(vars []int32) lit {
	h.stats.Decisions++
	if h.stats.Decisions%activityDecay == 0 {
		for l := range h.activity {
			h.activity[l] /= 2
		}
	}
	h.sumValues(vars)
	best, highest, logical := int32(-1), 0.0, false
	for _, v := range vars {
		if h.value[2*v] != 0 {
			continue
		}
		if h.clauses[v] > 0 && !logical {
			best, logical = -1, true
		}
		if h.clauses[v] == 0 && logical {
			continue
		}
		score, owner := h.guide[h.problem.owner[v]], h.problem.owner[v]
		if h.problem.many[v] {
			score += h.sums[owner] / (h.halves[owner] * h.halves[owner])
		} else {
			score += h.score(v)
		}
		if best < 0 || score > highest || owner == h.problem.owner[best] && h.score(v) > h.score(best) {
			best, highest = v, score
		}
	}
	if h.problem.many[best] || h.activity[2*best] > h.activity[2*best+1] {
		return lit(2 * best)
	}
	return lit(2*best + 1)
}

// score returns the score of a Boolean variable, without its guide.
func (h *heuristic) score(v int32) float64 {
	return float64(h.clauses[v]+h.tables[v]) + activityWeight*(h.activity[2*v]+h.activity[2*v+1])
}

// sumValues counts the open values of the variables of many values, and sums their scores.
func (h *heuristic) sumValues(vars []int32) {
	for _, v := range vars {
		if owner := h.problem.owner[v]; h.problem.many[v] {
			h.halves[owner], h.sums[owner] = 0, 0
		}
	}
	for _, v := range vars {
		if owner := h.problem.owner[v]; h.problem.many[v] && h.value[2*v] == 0 {
			h.halves[owner] += 0.5
			h.sums[owner] += h.score(v)
		}
	}
}
