package contract

// Small networks: C = B by the program of the network before it was conditioned.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// compiled is the value where the network has a program that serves the query; its total of 0 needs
// no confirmation. Whether it has depends on the network, the order, the evidence and the memory
// only, never on what is remembered.
func (j contraction) compiled(q *btn.Elimination) (btn.Value, bool) {
	if j.problem.Base == nil || q.Flops > policy.ProgramFlops {
		return btn.Value{}, false
	}

	p, ok := j.problem.Programs().Of(j.problem.Base, q.Order)
	if !ok {
		return btn.Value{}, false
	}

	plan := p.Plan(j.m != nil)
	if plan.Bytes > float64(j.memory) {
		return btn.Value{}, false
	}

	if j.m == nil {
		z, ok := p.Z(j.net)
		return btn.Value{Z: z, Flops: plan.Flops}, ok
	}

	z, ok := p.Marginals(j.net, j.m.at)
	if !ok {
		return btn.Value{}, false
	}
	return btn.Value{Z: z, Flops: plan.Flops, Marginals: j.m.result(scaled.One)}, true
}
