package exact

// Proposals: contraction trees, in slices where a table would not fit the memory, and groups of marginals.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Propose is the proposal of a contraction tree over the network simplified under the query's evidence, or of marginals group by
// group where one pass is expensive. Trees are remembered by the shape that is left, on which alone they depend: evidence on the same
// variables finds the same tree. The error is over budget, with the price, where that is above proposal.Limit.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	p, err := Of(ctx, j.Problem(), ask.Marginals, ask.Joint)
	if err != nil {
		return nil, err
	}
	joint := len(ask.Joint) > 0
	if ask.Marginals && !joint {
		if found, err := groups(ctx, j, p, ask.Targets); found != nil || err != nil {
			return found, err
		}
	}

	settings := treeSettings(j, "tree", ask.Marginals)
	if joint {
		settings += " joint"
	}
	plan, hit, err := j.Remember(ctx, settings, p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		return treePlan(computing, p, j.Settings)
	})
	if err != nil {
		return nil, err
	}

	found := proposal.Priced(plan, hit)
	found.MayCancel = !joint && plan.Estimates[0].Cost.Flops > policy.WideFlops && p.Signed()
	if limit := proposal.Limit(j.Settings); found.Cost.Flops > limit {
		return nil, fault.New(fault.OverBudget,
			"plan: the exact way takes %.3g flops in %.0f slices, %s goes up to %.0g",
			found.Cost.Flops, math.Max(found.Cost.Slices, 1), j.Settings.Method, limit)
	}
	under, err := lower.Shape(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	own, err := j.Restricts(ctx, under)
	if err != nil {
		return nil, err
	}
	if own {
		found.Relearned = "contraction tree: for what the evidence leaves"
	}
	return found, nil
}

// ProposeTree is Propose for Z and marginals, without an order for what the evidence leaves.
func ProposeTree(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return Propose(ctx, j, proposal.Ask{Want: btn.Want{Marginals: ask.Marginals, Targets: ask.Targets}})
}

// treeSettings lists what a tree of some kind depends on beside the shape.
func treeSettings(j *proposal.Job, kind string, marginals bool) string {
	settings := fmt.Sprintf("%s seed=%d marginals=%t", kind, j.Settings.Seed, marginals)
	if moves := proposal.MoveLimit(j.Settings); moves < policy.MostMoves {
		settings += fmt.Sprintf(" moves=%d", moves)
	}
	return settings
}

// treePlan searches the tree and cuts its slices into parts: chunks of about SliceTaskFlops, α = 1 (Lemma 5).
func treePlan(ctx context.Context, p *Prepared, s query.Settings) (*btn.Plan, error) {
	tree, cost, err := p.PlanWithin(ctx, PlanOptions{
		Memory: s.Memory,
		Seed:   s.Seed,
		Moves:  proposal.MoveLimit(s),
		Flops:  proposal.Limit(s),
	})
	if err != nil {
		return nil, err
	}
	chunks, err := p.Chunks(tree, policy.SliceTaskFlops)
	if err != nil {
		return nil, err
	}
	parts := make([]btn.Part, chunks)
	for k := range chunks {
		parts[k] = &Slices{Tree: tree, From: proposal.ChunkStart(tree.Count, chunks, k), To: proposal.ChunkStart(tree.Count, chunks, k+1)}
	}
	return proposal.Exact(cost, parts...), nil
}

// groupFlops is the cost of one pass for all marginals, by a quick order, above which groups of
// marginals are looked at.
// Measured: a quarter and four times of it change nothing on 28 models, decision 20: memory
// decides first.
const groupFlops = 1e10

// groupGain is the factor by which the groups have to be cheaper together: searches make orders
// better, the larger ones more.
// Measured: a quarter and four times of it change nothing on 28 models, decision 20.
const groupGain = 100

// groups assigns marginals group by group where one pass does not fit, or costs much and groups do not; nil
// where it does. Groups are of the targets alone, if there are some. What is left for a group depends on the entries, so that groups are
// remembered by the j.Conditioned network and not by its shape.
func groups(ctx context.Context, j *proposal.Job, p *Prepared, targets []int) (*btn.Assignment, error) {
	flops, bytes, err := p.JointPrice(ctx)
	if err != nil {
		return nil, err
	}
	least, gain := groupFlops, float64(groupGain)
	if len(targets) > 0 {
		least, gain = policy.HeavyFlops, 1
	}
	if flops <= least && bytes <= float64(j.Settings.Memory) {
		return nil, nil
	}

	var found *btn.Plan
	settings := fmt.Sprintf("groups seed=%d %x", j.Settings.Seed, j.Conditioned.Digest())
	if len(targets) > 0 {
		settings += fmt.Sprintf(" targets=%v", targets)
	}
	if !j.IsKnown(j.Key(settings, contractionorder.Hypergraph{})) {
		groups, costs, err := p.PlanGroups(ctx, PlanOptions{Memory: j.Settings.Memory, Seed: j.Settings.Seed, Flops: flops / gain}, targets)
		if err != nil {
			return nil, err
		}
		if groups == nil {
			return nil, nil
		}
		found = groupsPlan(groups, costs)
		if j.Settings.Method == query.MethodAuto && found.Estimates[0].Cost.Flops > proposal.AutoLimit(j.Settings) {
			return nil, nil
		}
	}

	plan, hit, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return found, nil
	})
	if err != nil {
		return nil, err
	}
	return proposal.Priced(plan, hit), nil
}

// groupsPlan cuts groups into parts of about SliceTaskFlops.
func groupsPlan(groups *MarginalGroups, costs []query.Cost) *btn.Plan {
	total := query.Cost{Groups: float64(len(costs))}
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
		parts = append(parts, &Groups{Of: groups, From: int64(from), To: int64(k + 1)})
		from, flops = k+1, 0
	}
	return proposal.Exact(total, parts...)
}
