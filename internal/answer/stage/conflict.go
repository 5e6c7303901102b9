package stage

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Which observations of impossible evidence contradict each other.

// The largest number of sets of observations that a search for a conflict tests, each by a value of Z, and the largest number of operations
// of all tests together.
const (
	conflictTests = 512
	conflictFlops = 2e9
)

// conflictSearch looks for a subset of impossible evidence that is impossible by itself. It tests subsets by exact values of Z under them.
// A set of observations is a []bool with an entry for each observation.
type conflictSearch struct {
	ctx          context.Context
	net          *btn.Network
	options      ContractOptions
	known        plan.NetworkMemory
	switches     []query.Switch
	fixed        factorgraph.Evidence // on switches: it holds in every test, since the query sets variables in any case
	observations []observation        // those that may take part in a conflict
	testsLeft    int
	possible     [][]bool // sets that were found to be possible; all their subsets are, too
}

// observation is a part of evidence that may take part in a conflict: an observed value, or a likelihood with a weight of 0. The other
// field is nil.
type observation struct {
	hard *factorgraph.Observation
	soft *factorgraph.Likelihood
}

// find returns a minimal conflict: a subset of the evidence e under which Z is 0, and is not 0 under any subset of it. a is the assignment
// of the demand with this evidence, whose cost limits the number of tests. It returns nil if a value of Z under a subset takes too much
// work or is not exact.
//
// First a minimal conflict is found by deletion (deleteOneByOne). Then all smaller subsets of the evidence are tested, the smallest first.
// If one of them is a conflict, the first one is the result, and is a smallest conflict. If the tests run out before that, the result is
// the conflict by deletion, which may not be a smallest one.
func (s *conflictSearch) find(a *btn.Assignment, e factorgraph.Evidence) *query.Conflict {
	s.testsLeft = conflictTests
	if a.Cost != nil && a.Cost.Flops*conflictTests > conflictFlops { // each test takes about the flops of the demand
		s.testsLeft = int(conflictFlops / a.Cost.Flops)
	}
	s.setObservations(e)
	if len(s.observations) >= s.testsLeft {
		return nil
	}

	// The empty set: the model, with what the query sets, may be impossible without any evidence.
	set := make([]bool, len(s.observations))
	isImpossible, ok := s.test(set)
	switch {
	case !ok:
		return nil
	case isImpossible:
		return s.describe(set, isSmallest)
	}

	// A minimal conflict by deletion, and then all smaller sets.
	size, ok := s.deleteOneByOne(set) // set becomes the conflict
	if !ok {
		return nil
	}
	for smallerSize := 1; smallerSize < size; smallerSize++ {
		smaller, isComplete := s.firstConflict(make([]bool, len(set)), 0, smallerSize)
		if smaller != nil {
			return s.describe(smaller, isSmallest)
		}
		if !isComplete { // no tests are left, or one has no exact answer
			return s.describe(set, !isSmallest)
		}
	}
	return s.describe(set, isSmallest)
}

// isSmallest tells describe that no smaller set of observations conflicts.
const isSmallest = true

// setObservations divides evidence into observations that may take part in a conflict, and the fixed evidence on switches. A likelihood
// without a 0 cannot make Z 0 and is left out.
func (s *conflictSearch) setObservations(e factorgraph.Evidence) {
	for i, o := range e.Hard {
		if s.isSwitch(o.Var) {
			s.fixed.Hard = append(s.fixed.Hard, o)
			continue
		}
		s.observations = append(s.observations, observation{hard: &e.Hard[i]})
	}
	for i, l := range e.Soft {
		if s.isSwitch(l.Var) {
			s.fixed.Soft = append(s.fixed.Soft, l)
		} else if slices.Contains(l.Weights, 0) {
			s.observations = append(s.observations, observation{soft: &e.Soft[i]})
		}
	}
}

// isSwitch reports whether a variable is a switch, by which the query sets another variable.
func (s *conflictSearch) isSwitch(variable int) bool {
	return slices.ContainsFunc(s.switches, func(w query.Switch) bool { return w.Var == variable })
}

// deleteOneByOne makes set a minimal conflict and returns its size. It starts with all observations and removes one after the other, from
// the last to the first, if the set stays impossible without it. ok is false if a test has no result.
func (s *conflictSearch) deleteOneByOne(set []bool) (size int, ok bool) {
	for i := range set {
		set[i] = true
	}
	size = len(set)
	for i := len(set) - 1; i >= 0; i-- {
		set[i] = false
		isImpossible, ok := s.test(set)
		if !ok {
			return 0, false
		}
		if isImpossible {
			size--
		} else {
			set[i] = true
		}
	}
	return size, true
}

// firstConflict adds to set each combination of count observations with numbers from start on, in lexicographic order, and tests the union.
// It returns the first union that is impossible, nil if there is none. isComplete is false if a test had no result, which ends the search.
// set is changed meanwhile, and is the same in the end.
func (s *conflictSearch) firstConflict(set []bool, start, count int) (conflict []bool, isComplete bool) {
	if count == 0 {
		isImpossible, ok := s.test(set)
		if isImpossible {
			conflict = slices.Clone(set)
		}
		return conflict, ok
	}
	for i := start; i+count <= len(set); i++ {
		set[i] = true
		conflict, isComplete := s.firstConflict(set, i+1, count-1)
		set[i] = false
		if conflict != nil || !isComplete {
			return conflict, isComplete
		}
	}
	return nil, true
}

// test reports whether Z is exactly 0 under the observations of a set. ok is false if that was not found out: no tests are left, the
// context is done, the plan is too large, or the value is not exact. If Z is not 0 under a set, it is not 0 under a subset either, which
// needs no test.
func (s *conflictSearch) test(set []bool) (isImpossible, ok bool) {
	for _, possible := range s.possible {
		if isSubset(set, possible) {
			return false, true
		}
	}
	if s.testsLeft == 0 || s.ctx.Err() != nil {
		return false, false
	}
	s.testsLeft--
	isZero, ok := s.isZeroUnder(s.evidenceOf(set))
	if ok && !isZero {
		s.possible = append(s.possible, slices.Clone(set))
	}
	return isZero, ok
}

// evidenceOf returns evidence with the observations of a set, and after them the fixed evidence on switches, which are the last variables.
func (s *conflictSearch) evidenceOf(set []bool) (e factorgraph.Evidence) {
	for i, o := range s.observations {
		switch {
		case !set[i]:
		case o.hard != nil:
			e.Hard = append(e.Hard, *o.hard)
		default:
			e.Soft = append(e.Soft, *o.soft)
		}
	}
	e.Hard, e.Soft = append(e.Hard, s.fixed.Hard...), append(e.Soft, s.fixed.Soft...)
	return e
}

// isZeroUnder answers a query for Z under evidence by the exact methods, and reports whether Z is 0. It goes through the stages of an
// answer: it learns a plan, cuts it into chunks of parts, contracts them and aggregates their values. ok is false if there is no exact
// answer, or if the plan has more than conflictTests parts.
func (s *conflictSearch) isZeroUnder(e factorgraph.Evidence) (isZero, ok bool) {
	queries := []query.Query{{Evidence: e}}
	settings := query.Settings{Method: query.MethodExact, Memory: s.options.Memory}
	assignments, err := Learn(s.ctx, s.net, queries, settings, nil, &s.known) // nil: no memo of plans
	// A plan of so many parts would cost as much as all tests together may.
	if err != nil || assignments[0].Error != nil || assignments[0].Plan.PartCount() > conflictTests {
		return false, false
	}
	demands := Demands(s.net, queries)
	chunks, _ := Chunks(s.net, assignments) // all chunks are contracted, so where to stop early does not matter
	values, err := Contract(s.ctx, s.net, assignments, demands, slices.Concat(chunks...),
		ContractOptions{Memory: s.options.Memory, Threads: s.options.Threads})
	if err != nil {
		return false, false
	}
	r := Aggregate("", assignments, values)[0]
	if r.Status != query.StatusOK || !r.Exact {
		return false, false
	}
	return r.Zero, true
}

// isSubset reports whether every member of set a is one of b.
func isSubset(a, b []bool) bool {
	for i := range a {
		if a[i] && !b[i] {
			return false
		}
	}
	return true
}

// describe returns the observations of a set as a conflict. smallest states whether no smaller set conflicts.
func (s *conflictSearch) describe(set []bool, smallest bool) *query.Conflict {
	conflict := &query.Conflict{Observations: []query.Observed{}, Smallest: smallest}
	for i, o := range s.observations {
		switch {
		case !set[i]:
		case o.hard != nil:
			conflict.Observations = append(conflict.Observations, query.Observed{Variable: o.hard.Var, Value: &o.hard.Value})
		default:
			conflict.Observations = append(conflict.Observations, query.Observed{Variable: o.soft.Var})
		}
	}
	return conflict
}
