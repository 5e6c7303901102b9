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

// Propose proposes a contraction tree over the network simplified under the evidence of the query, or marginals group by group if one pass
// is expensive. Trees are remembered by the shape of the simplified network, on which alone they depend, so that evidence on the same
// variables finds the same tree. The error is over budget, with the price, if that exceeds proposal.ExactFlopLimit.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	p, err := PreparedOf(ctx, j.Problem(), ask.Marginals, ask.Joint)
	if err != nil {
		return nil, err
	}
	isJoint := len(ask.Joint) > 0
	if ask.Marginals && !isJoint {
		if assignment, err := proposeGroups(ctx, j, p, ask.Targets); assignment != nil || err != nil {
			return assignment, err
		}
	}

	// A tree and its price.
	settings := treeSettings(j, "tree", ask.Marginals) // a key of remembered plans, together with the shape
	if isJoint {
		settings += " joint"
	}
	plan, cacheState, err := j.Remember(ctx, settings, p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		return treePlan(computing, p, j.Settings)
	})
	if err != nil {
		return nil, err
	}

	assignment := proposal.NewPricedAssignment(plan, cacheState)
	assignment.MayCancel = !isJoint && plan.Estimates[0].Cost.Flops > policy.WideFlops && p.HasNegativeEntries()
	if limit := proposal.ExactFlopLimit(j.Settings); assignment.Cost.Flops > limit {
		return nil, fault.New(fault.OverBudget,
			"plan: the exact way takes %.3g flops in %.0f slices, %s goes up to %.0g",
			assignment.Cost.Flops, math.Max(assignment.Cost.Slices, 1), j.Settings.Method, limit)
	}
	if err := noteRestriction(ctx, j, assignment); err != nil {
		return nil, err
	}
	return assignment, nil
}

// noteRestriction notes in an assignment if the evidence has restricted the network that the tree is for.
func noteRestriction(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) error {
	conditioned, err := lower.Shape(ctx, j.Conditioned)
	if err != nil {
		return err
	}
	isRestricted, err := j.Restricts(ctx, conditioned)
	if isRestricted && err == nil {
		assignment.Relearned = "contraction tree: for what the evidence leaves"
	}
	return err
}

// ProposeTree proposes a contraction tree, or groups of marginals, as Propose does, for Z and marginals only: it leaves out a joint
// marginal.
func ProposeTree(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return Propose(ctx, j, proposal.Ask{Want: btn.Want{Marginals: ask.Marginals, Targets: ask.Targets}})
}

// treeSettings returns settings for Job.Remember that list what a tree depends on in addition to the shape: its kind, the seed, marginals,
// and the moves of the search if they are limited.
func treeSettings(j *proposal.Job, kind string, marginals bool) string {
	settings := fmt.Sprintf("%s seed=%d marginals=%t", kind, j.Settings.Seed, marginals)
	if moves := proposal.MoveLimit(j.Settings); moves < policy.MostMoves {
		settings += fmt.Sprintf(" moves=%d", moves)
	}
	return settings
}

// treePlan searches a tree and returns the plan of its slices, in parts of about policy.SliceTaskFlops. Z is the sum of the parts, each
// with the weight α = 1 (Lemma 5).
func treePlan(ctx context.Context, p *Prepared, s query.Settings) (*btn.Plan, error) {
	tree, cost, err := p.PlanWithin(ctx, PlanOptions{
		Memory: s.Memory,
		Seed:   s.Seed,
		Moves:  proposal.MoveLimit(s),
		Flops:  proposal.ExactFlopLimit(s),
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
	return proposal.ExactPlan(cost, parts...), nil
}

// groupFlops is the flops of one pass for all marginals, by a quick order, above which groups of marginals are planned.
// Measured: a quarter and four times of it change nothing on 28 models, decision 20: memory
// decides first.
const groupFlops = 1e10

// groupGain is the factor by which all groups together have to be cheaper than one pass, both along min-fill orders. It is above 1 since a
// search improves the order of the larger pass more.
// Measured: a quarter and four times of it change nothing on 28 models, decision 20.
const groupGain = 100

// proposeGroups proposes marginals group by group: of targets, or of all variables if there are none. It returns nil if one pass for all
// marginals is cheap and fits the memory, or if the groups take too much. For all variables, one pass is cheap up to groupFlops, and groups
// must take less than a part of its flops (groupGain). For targets, one pass is cheap up to policy.HeavyFlops, and groups must take no
// more. The simplified network of a group depends on entries, so groups are remembered by the digest of the conditioned network and not by
// its shape.
func proposeGroups(ctx context.Context, j *proposal.Job, p *Prepared, targets []int) (*btn.Assignment, error) {
	flops, bytes, err := p.JointPrice(ctx)
	if err != nil {
		return nil, err
	}

	// Whether one pass is cheap enough.
	cheapFlops, gain := groupFlops, float64(groupGain)
	if len(targets) > 0 {
		cheapFlops, gain = policy.HeavyFlops, 1
	}
	if flops <= cheapFlops && bytes <= float64(j.Settings.Memory) {
		return nil, nil
	}

	// A plan of groups, unless the job knows it.
	var computed *btn.Plan // nil if the job knows the plan
	settings := fmt.Sprintf("groups seed=%d %x", j.Settings.Seed, j.Conditioned.Digest())
	if len(targets) > 0 {
		settings += fmt.Sprintf(" targets=%v", targets)
	}
	if !j.IsKnown(j.Key(settings, contractionorder.Hypergraph{})) {
		if computed, err = planGroupsWithin(ctx, j, p, targets, flops/gain); computed == nil || err != nil {
			return nil, err
		}
	}

	// The settings have the digest, in place of a shape.
	plan, cacheState, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return computed, nil
	})
	if err != nil {
		return nil, err
	}
	return proposal.NewPricedAssignment(plan, cacheState), nil
}

// planGroupsWithin returns the plan of the marginals of targets group by group. A group is some indices whose marginals come from one pass
// over a network that is simplified for them. It returns nil if that takes more than maxFlops, or, by the method auto, more than an exact
// plan may take.
func planGroupsWithin(ctx context.Context, j *proposal.Job, p *Prepared, targets []int, maxFlops float64) (*btn.Plan, error) {
	groups, costs, err := p.PlanGroups(ctx, PlanOptions{Memory: j.Settings.Memory, Seed: j.Settings.Seed, Flops: maxFlops}, targets)
	if groups == nil || err != nil {
		return nil, err
	}
	plan := groupsPlan(groups, costs)
	if j.Settings.Method == query.MethodAuto && plan.Estimates[0].Cost.Flops > proposal.AutoFlopLimit(j.Settings) {
		return nil, nil
	}
	return plan, nil
}

// groupsPlan returns the plan of groups, in parts of at least policy.SliceTaskFlops each, except the last one. costs[k] is the price of
// group k.
func groupsPlan(groups *MarginalGroups, costs []query.Cost) *btn.Plan {
	total := query.Cost{Groups: float64(len(costs))}
	var parts []btn.Part
	from, flops := 0, 0.0 // the first group of the next part, and the flops of its groups so far
	for k, cost := range costs {
		flops += cost.Flops
		total.Flops += cost.Flops
		total.Width = max(total.Width, cost.Width)
		total.Log2Table = max(total.Log2Table, cost.Log2Table)
		total.Bytes = max(total.Bytes, cost.Bytes)
		isLast := k+1 == len(costs)
		if flops < policy.SliceTaskFlops && !isLast {
			continue
		}
		parts = append(parts, &Groups{Of: groups, From: int64(from), To: int64(k + 1)})
		from, flops = k+1, 0
	}
	return proposal.ExactPlan(total, parts...)
}
