package plan

// Derivatives by the numbers of a model: an elimination of their own, exactly.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// gradients assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (a *assigner) gradients(q query.Query) (*btn.Assignment, error) {
	m := a.method
	if m != nil && !m.Exact() {
		return nil, fault.New(fault.Unsupported, "plan: gradients are computed exactly only, not by method %s", m.Name)
	}
	if len(q.Joint) > 0 {
		return nil, fault.New(fault.Unsupported,
			"plan: gradients and a joint marginal are two queries of a job")
	}

	propose := gradients.Propose
	if m != nil {
		propose = m.Parametric
	}
	assignment, err := propose(a.Job, proposal.Ask{Marginals: q.Marginals})
	if err != nil {
		return nil, err
	}
	if q.Sensitivity != nil {
		assignment.Sensitivity = &btn.Sensitivity{Target: *q.Sensitivity, Alone: !q.Gradients, Cores: lower.Numbers(a.Net)}
	}
	return assignment, nil
}
