package exact

// Small networks: C = B by the program of the network before it was conditioned.

import (
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// compiled is the value where the network has a program that serves the query; its total of 0 needs
// no confirmation. Whether it has depends on the network, the order, the evidence and the memory
// only, never on what is remembered.
func (j run) compiled(q *Elimination) (btn.Value, bool) {
	if j.Problem.Base == nil || q.Flops > policy.ProgramFlops {
		return btn.Value{}, false
	}

	p, ok := problem.Lasting[einsum.Programs](j.Problem).Of(j.Problem.Base, q.Order)
	if !ok {
		return btn.Value{}, false
	}

	plan := p.Plan(j.M != nil)
	if plan.Bytes > float64(j.Memory) {
		return btn.Value{}, false
	}

	if j.M == nil {
		z, ok := p.Z(j.Net)
		return btn.Value{Z: z, Flops: plan.Flops}, ok
	}

	z, ok := p.Marginals(j.Net, j.M.At)
	if !ok {
		return btn.Value{}, false
	}
	return btn.Value{Z: z, Flops: plan.Flops, Marginals: j.M.Result(scaled.One)}, true
}
