package message

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// assignmentsBlob is the output of learning: the plans of a job, each written once, and per query
// the plan that answers it.
type assignmentsBlob struct {
	Plans       []planBlob   `msgpack:"plans"`
	Assignments []assignment `msgpack:"assignments"`
	Owner       string       `msgpack:"owner,omitempty"`
}

// assignment is a btn.Assignment with its plan by position.
type assignment struct {
	Plan int `msgpack:"plan"` // −1 where there is an error
	btn.Assignment
}

// EncodeAssignments returns the bytes of a job's assignments with their plans. They are stored
// under the digest of these bytes.
func EncodeAssignments(assignments []btn.Assignment) ([]byte, error) {
	return EncodeAssignmentsOf("", assignments)
}

// EncodeAssignmentsOf is EncodeAssignments for an owner, so that the same assignments of others have another digest.
// DecodeAssignments reads both.
func EncodeAssignmentsOf(owner string, assignments []btn.Assignment) ([]byte, error) {
	blob := assignmentsBlob{Owner: owner}
	planIndices := map[*btn.Plan]int{}
	for i, a := range assignments {
		planIndex := -1 // no plan: the assignment is an error
		if a.Error == nil {
			var isKnown bool
			if planIndex, isKnown = planIndices[a.Plan]; !isKnown {
				plan, err := newPlanBlob(a.Plan)
				if err != nil {
					return nil, under(
						fmt.Sprintf("%s.assignments[%d].plan", nameAssignments, i), err,
					)
				}
				planIndex = len(blob.Plans)
				planIndices[a.Plan] = planIndex
				blob.Plans = append(blob.Plans, plan)
			}
		}

		blob.Assignments = append(blob.Assignments, assignment{Plan: planIndex, Assignment: a})
	}

	return encodeBlob(nameAssignments, &blob)
}

// DecodeAssignments decodes what EncodeAssignments wrote. Every assignment has a plan or an error.
// Its errors are those of codec.Unmarshal.
func DecodeAssignments(b []byte) ([]btn.Assignment, error) {
	var blob assignmentsBlob
	if err := unmarshal(nameAssignments, b, MaxBlob, &blob); err != nil {
		return nil, blame(nameAssignments, err)
	}
	assignments, err := blob.decode()
	return assignments, blame(nameAssignments, err)
}

// decode returns the assignments. Each has the index of its plan in w.Plans, or −1 and an error. Assignments with the same
// index share the decoded plan.
func (w *assignmentsBlob) decode() ([]btn.Assignment, error) {
	plans := make([]*btn.Plan, len(w.Plans))
	for i := range w.Plans {
		var err error
		if plans[i], err = w.Plans[i].decode(); err != nil {
			return nil, under(fmt.Sprintf("plans[%d]", i), err)
		}
	}

	assignments := make([]btn.Assignment, len(w.Assignments))
	for i, a := range w.Assignments {
		place := fmt.Sprintf("assignments[%d]", i)
		switch {
		case a.Error == nil && (a.Plan < 0 || a.Plan >= len(plans)):
			return nil, invalid(place, "plan %d of %d", a.Plan, len(plans))
		case a.Error != nil && a.Plan != -1:
			return nil, invalid(place, "plan %d and an error", a.Plan)
		}

		if err := checkNumbers(a.Numbers); err != nil {
			return nil, under(place+".numbers", err)
		}
		if err := checkErrorInfo(a.Error); err != nil {
			return nil, under(place+".error", err)
		}

		assignments[i] = a.Assignment
		if a.Error == nil {
			assignments[i].Plan = plans[a.Plan]
		}
	}
	return assignments, checkAsked(assignments)
}

// checkAsked checks the queries of assignments. The first assignments have the queries that are answered, with names
// resolved. After them come exactly as many other demands as these queries need.
func checkAsked(assignments []btn.Assignment) error {
	queries, extra := asked(assignments)
	for i := len(queries); i < len(assignments); i++ {
		if extra >= 0 && assignments[i].Asked != nil {
			return invalid(fmt.Sprintf("assignments[%d].asked", i), "a query after a demand that serves another")
		}
	}
	switch {
	case extra < 0:
		return invalid(fmt.Sprintf("assignments[%d].asked.extra", len(queries)), "it is below 0")
	case len(queries) == 0: // of a job that asks for nothing
		return nil
	case extra != len(assignments)-len(queries):
		return invalid("assignments", "%d follow the queries, %d serve them", len(assignments)-len(queries), extra)
	}
	return under("asked", checkQueries(queries))
}

// asked returns the queries of the first assignments, up to one that has no query. extra is the number of further demands
// that these queries need, each stated in its Extra. It is capped at len(assignments)+1, so that it cannot overflow. If a
// query states a negative number, extra is −1, and the queries end before that query.
func asked(assignments []btn.Assignment) (queries []query.Query, extra int) {
	for i := range assignments {
		if assignments[i].Asked == nil {
			break
		}
		for _, e := range assignments[i].Asked.Extra {
			if e.Demands < 0 {
				return queries, -1
			}
			extra = min(extra+min(e.Demands, len(assignments)+1), len(assignments)+1)
		}
		queries = append(queries, assignments[i].Asked.Query)
	}
	return queries, extra
}

// checkNumbers checks the numbers (parameters) of each core. A table has a number for each entry of its shape. Row is 0, or
// 1 + the mode along which the table's rows sum to 1. If there are Groups, they divide all numbers into consecutive
// groups: Groups[t] has the sizes of the groups of the core's term t.
func checkNumbers(cores []btn.CoreNumbers) error {
	for c, core := range cores {
		place := fmt.Sprintf("[%d]", c)
		if core.Row < 0 || core.Row > len(core.Shape) || len(core.Scope) != len(core.Shape) {
			return invalid(place, "rows over mode %d of %d, %d variables", core.Row-1, len(core.Shape), len(core.Scope))
		}
		if n, ok := product(core.Shape); core.Shape != nil && (!ok || n != len(core.Numbers)) {
			return invalid(place, "%d numbers of a table of %v", len(core.Numbers), core.Shape)
		}
		remaining := len(core.Numbers)
		for t, sizes := range core.Groups {
			for _, n := range sizes {
				if n < 0 || n > remaining {
					return invalid(fmt.Sprintf("%s.g[%d]", place, t), "%v, and %d numbers are left", sizes, remaining)
				}
				remaining -= n
			}
			if len(sizes) == 0 {
				return invalid(fmt.Sprintf("%s.g[%d]", place, t), "a term of no numbers")
			}
		}
		if remaining > 0 && core.Groups != nil {
			return invalid(place+".g", "%d of %d numbers are in none", remaining, len(core.Numbers))
		}
		for k, x := range core.Numbers {
			if math.IsNaN(x) { // a count's value may be beyond float64
				return invalid(fmt.Sprintf("%s.n[%d]", place, k), "%v", x)
			}
		}
	}
	return nil
}
