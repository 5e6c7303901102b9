package contract

// Small networks: C = B by the program of the network before it was conditioned.

import (
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// compiled is base where the network has a program that serves the query; its total of 0 needs no confirmation. Whether it
// has depends on the network, the order, the evidence and the memory only, never on what is remembered.
func (j job) compiled() (btn.Value, bool) {
	if j.options.Base == nil || j.dec.Plan.Flops > policy.ProgramFlops {
		return btn.Value{}, false
	}
	p, ok := j.options.Shared.Programs().Of(j.options.Base, j.q.Order)
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
