package query

import (
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Read returns the queries with the evidence that is text parsed, after Check. It leaves asked as it is.
// Errors are those of Check, and those of uai.ReadEvidence with the query's position.
func Read(domains []int, asked []Query) ([]Query, error) {
	queries := make([]Query, len(asked))
	for i, q := range asked {
		if q.Evid != "" {
			var err error
			if q.Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), domains); err != nil {
				return nil, fault.New(fault.CodeOf(err), "query %d: %w", i, err)
			}
			q.Evid = ""
		}
		queries[i] = q
	}
	return queries, Check(domains, queries)
}

// Check validates every query's evidence against the model's domains, the variables of its joint marginal, and which query it is asked
// over. Errors have the code bad_input and name the query by its position. Time linear in the queries' size.
func Check(domains []int, queries []Query) error {
	if len(queries) == 0 {
		return fault.New(fault.BadInput, "a request needs at least one query")
	}
	for q := range queries {
		if err := queries[q].Evidence.Validate(&factorgraph.Model{Domains: domains}); err != nil {
			return fault.New(fault.BadInput, "query %d: %w", q, err)
		}
		if err := CheckJoint(domains, queries[q].Joint); err != nil {
			return fault.New(fault.BadInput, "query %d: %w", q, err)
		}
		switch over := queries[q].Over; {
		case over < 0 || over > len(queries):
			return fault.New(fault.BadInput, "query %d is asked over query %d, there are %d", q, over-1, len(queries))
		case over == q+1:
			return fault.New(fault.BadInput, "query %d is asked over itself", q)
		}
	}
	return nil
}

// CheckJoint checks the variables of a joint marginal against the domains of a model: in range, each once, at most MaxJointCells cells.
// Errors have the code bad_input and name the variable. Linear time.
func CheckJoint(domains, set []int) error {
	seen := make(map[int]bool, len(set))
	cells := 1
	for _, v := range set {
		switch {
		case v < 0 || v >= len(domains):
			return fault.New(fault.BadInput, "joint marginal: variable %d, the model has %d", v, len(domains))
		case seen[v]:
			return fault.New(fault.BadInput, "joint marginal: variable %d twice", v)
		case domains[v] > MaxJointCells/cells:
			return fault.New(fault.BadInput, "joint marginal: more than %d cells with variable %d", MaxJointCells, v)
		}
		seen[v] = true
		cells *= domains[v]
	}
	return nil
}
