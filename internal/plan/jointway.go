package plan

// Joint marginals: along a contraction tree, or in count space.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// joint assigns the form in count space where exact would, else the first proposal of families.Heavily, as a rule a contraction
// tree with an index over the cells of the joint marginal. There is no other way to one: methods that are not exact are refused, and
// method auto does not fall back to them.
func (a *assigner) joint(q query.Query) (*btn.Assignment, error) {
	domains := make([]int, len(a.Net.Variables))
	for v := range domains {
		domains[v] = a.Net.Variables[v].Domain
	}
	if err := query.CheckJoint(domains, q.Joint); err != nil {
		return nil, err
	}

	switch m := a.method; {
	case m != nil && !m.Exact():
		code := fault.Unsupported
		if m.Grows {
			code = fault.BadInput
		}
		return nil, fault.New(code, "plan: joint marginals are computed exactly only, not by method %s", m.Name)
	case m != nil:
		return m.Propose(a.Job, proposal.Ask{Joint: q.Joint})
	}

	found, refused := a.first(proposal.Ask{Joint: q.Joint})
	if found != nil {
		return found, nil
	}

	under, err := lower.Shape(a.Ctx, a.Conditioned)
	if err != nil && refused != nil {
		return nil, refused
	}
	if err != nil {
		return nil, err
	}

	var warnings []string
	if exact.Decided(under) {
		if warnings, err = exact.WhyZero(a.Job); err != nil {
			return nil, err
		}
	}

	assignment, err := proposal.First(a.Job, proposal.Ask{Marginals: q.Marginals, Joint: q.Joint}, families.Heavily...)
	if err != nil {
		return nil, err
	}
	assignment.Joint, assignment.Warnings = q.Joint, warnings
	return assignment, nil
}
