package plan

// Joint marginals: along a contraction tree, or in count space.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// joint assigns the form in count space where exact would, else a contraction tree with an index over the
// cells of the joint marginal. There is no other way to one: method symmetry-cp is unsupported, and method
// auto does not fall back to it.
func (a *assigner) joint(conditioned *btn.Network, q query.Query) (btn.Assignment, error) {
	domains := make([]int, len(a.net.Variables))
	for v := range domains {
		domains[v] = a.net.Variables[v].Domain
	}
	if err := query.CheckJoint(domains, q.Joint); err != nil {
		return btn.Assignment{}, err
	}

	switch a.settings.Method {
	case btn.MethodSymmetryCP:
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: joint marginals are computed exactly only, not by method %s", btn.MethodSymmetryCP)
	case btn.MethodCircuit:
		assignment, err := a.byCircuit(conditioned)
		return a.jointly(assignment, q, err)
	case btn.MethodExact, btn.MethodAuto:
	default:
		return btn.Assignment{}, fault.New(fault.BadInput, "plan: unknown method %q", a.settings.Method)
	}

	inCounts, refused := a.inCounts(false)
	if inCounts != nil {
		inCounts.Joint = q.Joint
		return *inCounts, nil
	}

	if structured.Crowded(a.net) {
		found, err := a.structured()
		if err != nil {
			return btn.Assignment{}, err
		}
		if found != nil {
			cells := 1.0
			for _, v := range q.Joint {
				cells *= float64(domains[v])
			}
			found.Cost.Flops *= 1 + cells
			found.Joint = q.Joint
			return *found, nil
		}
	}
	under, err := lower.Shape(a.ctx, conditioned)
	if err != nil && refused != nil {
		return btn.Assignment{}, refused
	}
	if err != nil {
		return btn.Assignment{}, err
	}

	var warnings []string
	if decided(under) {
		if warnings, err = a.whyZero(conditioned); err != nil {
			return btn.Assignment{}, err
		}
	}

	assignment, err := a.tree(conditioned, q.Marginals, q.Joint)
	if fault.CodeOf(err) == fault.OverBudget && err != nil && a.facts.logicalOf(a.net) {
		if circuit, e := a.byCircuit(conditioned); e == nil {
			assignment, err = a.jointly(circuit, q, nil)
		}
	}
	if err != nil {
		return btn.Assignment{}, err
	}
	assignment.Joint, assignment.Warnings = q.Joint, warnings
	return assignment, nil
}
