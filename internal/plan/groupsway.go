package plan

// Marginals group by group, where one pass for all of them is dear.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	engine "github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// groups assigns marginals group by group where one pass does not fit, or costs much and groups do not; nil
// where it does. What is left for a group depends on the entries, so that groups are remembered by the
// conditioned network and not by its shape.
func (a *assigner) groups(conditioned *btn.Network, p *engine.Prepared) (*btn.Assignment, error) {
	flops, bytes, err := p.JointPrice(a.ctx)
	if err != nil {
		return &btn.Assignment{}, err
	}
	if flops <= policy.GroupFlops && bytes <= float64(a.settings.Memory) {
		return nil, nil
	}
	var found *btn.Decomposition
	settings := fmt.Sprintf("groups seed=%d %x", a.settings.Seed, conditioned.Digest())
	if _, known := a.known[a.key(settings, contractionorder.Hypergraph{})]; !known {
		c, plans, err := p.PlanGroups(a.ctx, a.settings.Memory, a.settings.Seed, flops/policy.GroupGain)
		if err != nil {
			return &btn.Assignment{}, err
		}
		if c == nil {
			return nil, nil
		}
		found = groupDecomposition(c, plans)
		if a.settings.Method == btn.MethodAuto && found.Plan.Flops > AutoLimit(a.settings) {
			return nil, nil
		}
	}
	index, hit, err := a.remember(settings, contractionorder.Hypergraph{},
		func(context.Context) (*btn.Decomposition, error) {
			return found, nil
		})
	if err != nil {
		return &btn.Assignment{}, err
	}
	plan := a.job.Decompositions[index].Plan
	return &btn.Assignment{Decomposition: index, Cache: hit, LnLinks: math.Inf(-1), Plan: &plan}, nil
}

// groupDecomposition cuts groups into components of about sliceFlops.
func groupDecomposition(c *btn.Tree, plans []btn.Cost) *btn.Decomposition {
	d := baseDecomposition(nil, btn.Cost{Groups: float64(len(plans))})
	d.Contraction, d.Components, d.Alpha = c, nil, nil
	from, flops := 0, 0.0
	for k, plan := range plans {
		flops += plan.Flops
		d.Plan.Flops += plan.Flops
		d.Plan.Width = max(d.Plan.Width, plan.Width)
		d.Plan.Log2Table = max(d.Plan.Log2Table, plan.Log2Table)
		d.Plan.Bytes = max(d.Plan.Bytes, plan.Bytes)
		if flops < policy.SliceTaskFlops && k+1 < len(plans) {
			continue
		}
		d.Components = append(d.Components, btn.Component{Class: btn.ClassBase, From: int64(from), To: int64(k + 1)})
		d.Alpha = append(d.Alpha, scaled.One)
		from, flops = k+1, 0
	}
	return d
}
