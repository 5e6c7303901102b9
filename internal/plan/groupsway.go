package plan

// Marginals group by group, where one pass for all of them is expensive.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/policy"
)

// groups assigns marginals group by group where one pass does not fit, or costs much and groups do not; nil
// where it does. What is left for a group depends on the entries, so that groups are remembered by the
// conditioned network and not by its shape.
func (a *assigner) groups(conditioned *btn.Network, p *exact.Prepared) (*btn.Assignment, error) {
	flops, bytes, err := p.JointPrice(a.ctx)
	if err != nil {
		return &btn.Assignment{}, err
	}
	if flops <= policy.GroupFlops && bytes <= float64(a.settings.Memory) {
		return nil, nil
	}

	var found *btn.Plan
	settings := fmt.Sprintf("groups seed=%d %x", a.settings.Seed, conditioned.Digest())
	if _, known := a.known[a.key(settings, contractionorder.Hypergraph{})]; !known {
		groups, costs, err := p.PlanGroups(a.ctx, a.settings.Memory, a.settings.Seed, flops/policy.GroupGain)
		if err != nil {
			return &btn.Assignment{}, err
		}
		if groups == nil {
			return nil, nil
		}
		found = groupsPlan(groups, costs)
		if a.settings.Method == btn.MethodAuto && found.Estimates[0].Cost.Flops > AutoLimit(a.settings) {
			return nil, nil
		}
	}

	plan, hit, err := a.remember(settings, contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return found, nil
	})
	if err != nil {
		return &btn.Assignment{}, err
	}
	cost := plan.Estimates[0].Cost
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}, nil
}

// groupsPlan cuts groups into parts of about SliceTaskFlops.
func groupsPlan(groups *exact.MarginalGroups, costs []btn.Cost) *btn.Plan {
	total := btn.Cost{Groups: float64(len(costs))}
	var parts []btn.Part
	from, flops := 0, 0.0
	for k, cost := range costs {
		flops += cost.Flops
		total.Flops += cost.Flops
		total.Width = max(total.Width, cost.Width)
		total.Log2Table = max(total.Log2Table, cost.Log2Table)
		total.Bytes = max(total.Bytes, cost.Bytes)
		if flops < policy.SliceTaskFlops && k+1 < len(costs) {
			continue
		}
		parts = append(parts, &exact.Groups{Of: groups, From: int64(from), To: int64(k + 1)})
		from, flops = k+1, 0
	}
	return exactOf(total, parts...)
}
