package plan

// The exact way: C = B along an elimination order, in closed form, or along a contraction tree and in slices.

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contraction"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/families/counts"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// AutoLimit is the work above which method auto does not take the exact way: what the budget is worth, at
// most AutoFlops.
func AutoLimit(s btn.Settings) float64 {
	return min(policy.AutoFlops, policy.ExactRate*s.WithDefaults().Budget)
}

// exactLimit is the work above which the exact way is not taken.
func exactLimit(s btn.Settings) float64 {
	if s.Method == btn.MethodAuto {
		return AutoLimit(s)
	}
	return policy.ExactFlops
}

// searchMoves is how many moves the searches of one query may take together: planningShare of the budget, so
// that the plan is the same everywhere.
func searchMoves(s btn.Settings) int64 {
	return max(1, int64(min(policy.PlanningShare*s.WithDefaults().Budget/policy.MoveFlops, float64(policy.MostMoves))))
}

// exact assigns C = B. The first of these that applies:
//
//   - the form in count space, where a symmetric core would begin elimination with a long chain of counters:
//     see counted;
//   - the nodes of few linear statistics, where tables of two variables are many: see structured;
//   - the closed form, where no order fits the memory and the cores' own ranks are small, or where it is one
//     component and cheaper;
//   - the elimination order remembered for the network, compiled without evidence where it is a small one:
//     see compiled;
//   - that order, or one made for the query's evidence, where it costs little;
//   - a contraction tree over the network as it is, where it costs more: see whole;
//   - a circuit, where factors have zeros and one is soon compiled, or sooner than a tree is contracted: see heavy;
//   - a contraction tree over the simplified network, with slices where a table would not fit the memory.
func (a *assigner) exact(conditioned *btn.Network, marginals bool) (btn.Assignment, error) {
	inCounts, refused := a.inCounts(marginals)
	if inCounts != nil {
		return *inCounts, nil
	}
	if structured.Crowded(a.net) {
		if found, err := a.structured(); found != nil || err != nil {
			return unpacked(found, err)
		}
	}
	shape, err := a.facts.shapeOf(a.ctx, a.net)
	if err != nil && refused != nil {
		return btn.Assignment{}, refused
	}
	if err != nil {
		return a.closedForm(err)
	}
	if structured.Crowded(a.net) && a.evidence.IsEmpty() && !a.facts.logicalOf(a.net) { // a search for an order would take long
		if err := exact.WithinReach(a.ctx, shape, exactLimit(a.settings)); err != nil {
			return btn.Assignment{}, err
		}
	}
	if a.exactKey == "" {
		a.exactKey = a.key("exact", shape)
	}
	_, again := a.known[a.exactKey]
	plan, hit, err := a.recall(a.exactKey, func(ctx context.Context) (*btn.Plan, error) {
		return exactPlan(ctx, a.net, shape, a.settings.Memory)
	})
	if err != nil {
		return btn.Assignment{}, err
	}

	assignment := btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}
	base, ok := plan.Estimates[0].Parts[0].(*exact.Elimination)
	if !ok {
		return assignment, nil // closed form: no order to adapt, no tables to fit
	}
	if ok, err := a.compiled(&assignment, base, conditioned, marginals); ok || err != nil {
		return assignment, err
	}

	again = again || hit == btn.CacheHit || recurring(a.ctx)
	if again && base.Flops > policy.HeavyFlops {
		if known, err := a.knownCircuit(conditioned); known != nil || err != nil {
			return *known, err
		}
	}

	under, err := lower.Shape(a.ctx, conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}
	if decided(under) {
		if assignment.Warnings, err = a.whyZero(conditioned); err != nil {
			return btn.Assignment{}, err
		}
	}

	order := base.Order
	cost, err := contractionorder.EvaluateOrderWithin(a.ctx, under, order, policy.OutOfReach)
	if err != nil {
		return btn.Assignment{}, err
	}
	if cost.Flops > policy.ReplanFlops && !sameDims(under, shape) {
		own, c, err := minFill(a.ctx, under)
		if err != nil {
			return btn.Assignment{}, err
		}
		if c.Flops < cost.Flops {
			assignment.Relearned = fmt.Sprintf("elimination order: the model's takes %.2g flops, one for "+
				"what the evidence leaves %.2g",
				cost.Flops, c.Flops)
			cost, order = c, own
			assignment.Plan = eliminationPlan(order, cost)
		}
	}

	if cost.Flops > policy.HeavyFlops {
		if structured.Worth(a.net) {
			if found, err := a.structured(); found != nil && found.Cost.Flops < cost.Flops || err != nil {
				return unpacked(found, err)
			}
		}
		return a.heavy(conditioned, marginals, again, cost.Flops)
	}
	if marginals {
		if cost, err = einsum.PlanMarginals(a.ctx, under, order); err != nil {
			return btn.Assignment{}, err
		}
	}

	if cost.Flops > policy.WholeFlops {
		if err := a.whole(&assignment, cost, marginals); err != nil {
			return btn.Assignment{}, err
		}
		if assignment.Cost != nil {
			return assignment, nil
		}
	}

	if cost.Bytes > float64(a.settings.Memory) {
		return a.tree(conditioned, marginals, nil)
	}
	assignment.Cost = &cost
	return assignment, nil
}

// inCounts assigns the form in count space where there is one; the error is why there is one that cannot be taken.
func (a *assigner) inCounts(marginals bool) (*btn.Assignment, error) {
	form, err := a.facts.countsOf(a.ctx, a.net, a.settings.Memory)
	if form == nil || err != nil {
		return nil, err
	}
	cost, err := a.countCost(&form.Estimates[0], marginals)
	if err != nil {
		return nil, err
	}
	if limit := exactLimit(a.settings); cost.Flops > limit {
		return nil, fault.New(fault.OverBudget,
			"plan: the form in count space takes %.3g flops, %s goes up to %.0g", cost.Flops, a.settings.Method, limit)
	}
	plan, hit, err := a.remember("counts", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return form, nil
	})
	if err != nil {
		return nil, err
	}
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}, nil
}

// countCost is what an estimate in count space takes under the query's evidence, which may tell equal legs apart:
// looked at where the network is so large that this matters.
func (a *assigner) countCost(e *btn.Estimate, marginals bool) (btn.Cost, error) {
	part, ok := e.Parts[0].(*counts.Counts)
	if n := float64(len(a.net.Dims)); !ok || a.evidence.IsEmpty() && !marginals || n*n < policy.CountFlops {
		return e.Cost, nil
	}
	form, err := counts.Of(a.ctx, a.current(), part)
	if err != nil {
		return btn.Cost{}, err
	}
	cost, err := countCost(a.ctx, form, marginals)
	cost.Flops *= float64(len(e.Parts))
	return cost, err
}

// closedForm assigns a closed form of several components where the network cannot even be laid out for
// elimination, which is what the error says that is returned without one.
func (a *assigner) closedForm(why error) (btn.Assignment, error) {
	if fault.CodeOf(why) != fault.OverBudget {
		return btn.Assignment{}, why
	}
	closed, ok, err := ClosedForm(a.ctx, a.net, policy.MostClosedFormTerms)
	if err != nil {
		return btn.Assignment{}, err
	}
	if !ok {
		return btn.Assignment{}, why
	}
	plan, hit, err := a.remember("closed", contractionorder.Hypergraph{}, func(context.Context) (*btn.Plan, error) {
		return closed, nil
	})
	return btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}, err
}

// tree assigns a contraction tree over the network simplified under the query's evidence. Trees are remembered by the
// shape that is left, on which alone they depend: evidence on the same variables finds the same tree.
func (a *assigner) tree(conditioned *btn.Network, marginals bool, joint []int) (btn.Assignment, error) {
	p, err := exact.Of(a.ctx, a.current(), marginals, joint)
	if err != nil {
		return btn.Assignment{}, err
	}
	if marginals && len(joint) == 0 {
		if assignment, err := a.groups(conditioned, p); assignment != nil || err != nil {
			return *assignment, err
		}
	}

	settings := a.treeSettings("tree", marginals)
	if len(joint) > 0 {
		settings += " joint"
	}
	plan, hit, err := a.remember(settings, p.Hypergraph(), func(ctx context.Context) (*btn.Plan, error) {
		return treePlan(ctx, p, a.settings)
	})
	if err != nil {
		return btn.Assignment{}, err
	}

	cost := plan.Estimates[0].Cost
	if limit := exactLimit(a.settings); cost.Flops > limit {
		return btn.Assignment{}, fault.New(fault.OverBudget,
			"plan: the exact way takes %.3g flops in %.0f slices, %s goes up to %.0g",
			cost.Flops, math.Max(cost.Slices, 1), a.settings.Method, limit)
	}
	assignment := btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}
	under, err := lower.Shape(a.ctx, conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}

	own, err := a.restricts(under)
	if own {
		assignment.Relearned = "contraction tree: for what the evidence leaves"
	}
	return assignment, err
}

// treeSettings lists what a tree of some kind depends on beside the shape.
func (a *assigner) treeSettings(kind string, marginals bool) string {
	settings := fmt.Sprintf("%s seed=%d marginals=%t", kind, a.settings.Seed, marginals)
	if moves := searchMoves(a.settings); moves < policy.MostMoves {
		settings += fmt.Sprintf(" moves=%d", moves)
	}
	return settings
}

// restricts reports whether evidence takes values from the indices of the network.
func (a *assigner) restricts(under contractionorder.Hypergraph) (bool, error) {
	shape, err := a.facts.shapeOf(a.ctx, a.net)
	return err == nil && !sameDims(under, shape), err
}

// treePlan searches the tree and cuts its slices into parts: chunks of about SliceTaskFlops, α = 1 (Lemma 5).
func treePlan(ctx context.Context, p *exact.Prepared, s btn.Settings) (*btn.Plan, error) {
	tree, cost, err := p.PlanWithin(ctx, exact.PlanOptions{
		Memory: s.Memory,
		Seed:   s.Seed,
		Moves:  searchMoves(s),
		Flops:  exactLimit(s),
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
		parts[k] = &exact.Slices{Tree: tree, From: bound(tree.Count, chunks, k), To: bound(tree.Count, chunks, k+1)}
	}
	return exactOf(cost, parts...), nil
}

// bound returns k·count/chunks, rounded down, without overflow: chunks is below 2^11. Chunk k begins there.
func bound(count, chunks, k int64) int64 { return count/chunks*k + count%chunks*k/chunks }

// decided reports whether a shape has nothing to sum: all indices have one value. Networks known to be 0 look
// like that.
func decided(h contractionorder.Hypergraph) bool {
	for _, d := range h.Dims {
		if d > 1 {
			return false
		}
	}
	return true
}

// whyZero says in words why a network is 0, if its zeros alone show that it is.
func (a *assigner) whyZero(conditioned *btn.Network) ([]string, error) {
	why, err := exact.Why(a.ctx, conditioned)
	if err != nil || why == "" {
		return nil, err
	}
	return []string{"Z is 0: " + strings.TrimSuffix(why, ".")}, nil
}

// exactPlan is what exact learns once per network: an order for C = B, or a closed form. Elimination comes
// first where it fits, because it adds no terms of both signs; a closed form of one component has none to add
// either, and is taken when it is cheaper (a symmetric core over 200 variables: count polynomials against a
// chain of counters).
func exactPlan(
	ctx context.Context, net *btn.Network, shape contractionorder.Hypergraph, memory int64,
) (*btn.Plan, error) {
	order, cost, err := minFill(ctx, shape)
	if err != nil {
		return nil, err
	}
	if cost.Flops <= policy.HeavyFlops {
		if order, err = contractionorder.Best(ctx, shape); err != nil {
			return nil, err
		}
		if cost, err = contractionorder.EvaluateOrder(ctx, shape, order); err != nil {
			return nil, err
		}
	}

	most := 0
	switch {
	case cost.Bytes > float64(memory):
		most = policy.MostClosedFormTerms
	case cost.Flops > policy.ReplanFlops:
		most = 1
	}

	if most > 0 {
		closed, ok, err := ClosedForm(ctx, net, most)
		if err != nil {
			return nil, err
		}
		if ok && (most > 1 || contraction.Flops(net, &closed.Estimates[0], 0) < cost.Flops) {
			closed.Method = btn.MethodExact
			return closed, nil
		}
	}

	return eliminationPlan(order, cost), nil
}

// minFill returns the min-fill order of a shape and what it takes; where that is policy.OutOfReach, some
// order, and no less than that.
func minFill(ctx context.Context, shape contractionorder.Hypergraph) ([]int, btn.Cost, error) {
	log2Table := math.Log2(policy.OutOfReach)
	order, within, err := contractionorder.MinFillWithin(ctx, shape, log2Table, policy.MostFill)
	if err != nil {
		return nil, btn.Cost{}, err
	}
	if !within {
		return order, btn.Cost{
			Width:     int(log2Table),
			Log2Table: log2Table,
			Flops:     policy.OutOfReach,
			Bytes:     8 * policy.OutOfReach,
		}, nil
	}
	plan, err := contractionorder.EvaluateOrderWithin(ctx, shape, order, policy.OutOfReach)
	return order, plan, err
}

// eliminationPlan is B along an elimination order.
func eliminationPlan(order []int, cost btn.Cost) *btn.Plan {
	return exactOf(cost, &exact.Elimination{Order: order, Flops: cost.Flops})
}

// exactOf is the plan of an exact contraction, all α = 1.
func exactOf(cost btn.Cost, parts ...btn.Part) *btn.Plan {
	return &btn.Plan{Method: btn.MethodExact, Estimates: []btn.Estimate{{
		Rule:    btn.Linear,
		Slices:  1,
		Parts:   parts,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    cost,
	}}}
}
