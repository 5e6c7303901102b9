package plan

// Derivatives by the numbers of a model: an elimination of their own, exactly.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// gradients assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (a *assigner) gradients(q query.Query) (btn.Assignment, error) {
	switch a.Settings.Method {
	case btn.MethodExact, btn.MethodAuto, btn.MethodCircuit:
	case btn.MethodSymmetryCP, btn.MethodTruncated, btn.MethodRegions, btn.MethodSampled:
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: gradients are computed exactly only, not by method %s", a.Settings.Method)
	default:
		return btn.Assignment{}, fault.New(fault.BadInput, "plan: unknown method %q", a.Settings.Method)
	}
	if len(q.Joint) > 0 {
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: gradients and a joint marginal are two queries of a job")
	}

	assignment, err := a.differentiated(q)
	if err != nil {
		return btn.Assignment{}, err
	}
	if q.Sensitivity != nil {
		assignment.Sensitivity = &btn.Sensitivity{Target: *q.Sensitivity, Alone: !q.Gradients, Cores: lower.Numbers(a.Net)}
	}
	return assignment, nil
}

// differentiated assigns what Z and its derivatives are computed by.
func (a *assigner) differentiated(q query.Query) (btn.Assignment, error) {
	if a.Settings.Method == btn.MethodCircuit {
		return unpacked(circuits.ProposeParametric(a.Job))
	}
	return unpacked(gradients.Propose(a.Job, q.Marginals))
}
