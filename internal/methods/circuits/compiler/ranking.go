package compiler

// The score of a decision, without the guide: occurrences and conflicts.

// ranking has the numbers that a score consists of.
type ranking struct {
	frequency []int32   // by variable: the number of its clauses in its component
	tabled    []int32   // by variable: the number of its tables
	conflicts []float64 // by literal: the solver's activity

	// By variable of the formula with many values: half the number of its open values in the component, and the sum of their ranks.
	halves, sums []float64
}

func newRanking(p *problem, activity []float64) ranking {
	n, m := p.booleans(), len(p.f.Domains)
	return ranking{make([]int32, n), make([]int32, n), activity, make([]float64, m), make([]float64, m)}
}

// rank is the score of a Boolean variable.
func (r *ranking) rank(v int32) float64 {
	return float64(r.frequency[v]+r.tabled[v]) + activityWeight*(r.conflicts[2*v]+r.conflicts[2*v+1])
}

// ofValues counts the open values of a component's variables with many values, and sums their ranks.
func (r *ranking) ofValues(p *problem, value []int8, vars []int32) {
	for _, v := range vars {
		if of := p.owner[v]; p.many[v] {
			r.halves[of], r.sums[of] = 0, 0
		}
	}
	for _, v := range vars {
		if of := p.owner[v]; p.many[v] && value[2*v] == 0 {
			r.halves[of] += 0.5
			r.sums[of] += r.rank(v)
		}
	}
}
