package exact

// Marginals group by group, if a pass that keeps all indices costs too much: for each group all other indices are summed out.

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// JointPrice returns the flops and bytes of the marginals of all variables in one pass along the min-fill order. Groups of marginals are
// compared with it.
func (p *Prepared) JointPrice(ctx context.Context) (flops, bytes float64, err error) {
	return marginalPrice(ctx, p.Hypergraph())
}

// marginalPrice returns the flops and bytes of the marginals of a hypergraph along the min-fill order.
func marginalPrice(
	ctx context.Context, h contractionorder.Hypergraph,
) (flops, bytes float64, err error) {
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return 0, 0, err
	}
	plan, err := einsum.PlanMarginals(ctx, h, order)
	return plan.Flops, plan.Bytes, err
}

// simplifyFor returns the network simplified once more for the marginals of the indices in keep. All other indices may be summed out.
func (p *Prepared) simplifyFor(ctx context.Context, keep []int) (*Prepared, error) {
	simple, err := preprocess.Run(ctx, p.simple.Expression, preprocess.Options{
		Keep:      keep,
		Probes:    -1,                 // no search for values that are impossible together
		Roundings: p.simple.Roundings, // bounds of the errors of the tables so far
	})
	if err != nil {
		return nil, err
	}
	// Run begins with the roundings of the tables, but not with that of the scale.
	scaleRounding := p.simple.Rounding - sum(p.simple.Roundings)
	simple.Rounding += scaleRounding
	return &Prepared{net: p.net, given: p.given, simple: simple, marginals: true}, nil
}

// neededIndices reports for each index of the simplified network whether the marginal of a target depends on it. No targets stand for all
// variables. Index given.Variables[v] belongs to variable v, and Origin[i].Index is the index of the simplified network that decides index
// i, −1 if there is none.
func (p *Prepared) neededIndices(targets []int) []bool {
	isNeeded := make([]bool, len(p.simple.Expression.Dims))
	for v, i := range p.given.Variables {
		isTarget := len(targets) == 0 || slices.Contains(targets, v)
		if !isTarget {
			continue
		}
		if o := p.simple.Origin[i]; o.Index >= 0 && p.simple.Expression.Dims[o.Index] > 1 {
			isNeeded[o.Index] = true
		}
	}
	return isNeeded
}

// easyGroup is the flops of a group up to which the next group has twice as many indices. No group has more than mostGroup indices.
// Measured: a quarter of easyGroup takes 0.3 to 0.4 of the flops on two models and no less time; a
// quarter of mostGroup 0.04 to 0.7, four times nothing, decision 20.
const (
	easyGroup = 1e6
	mostGroup = 64
)

// PlanGroups plans the marginals of targets (nil: of all variables) group by group. A group keeps the last indices whose marginals are
// still missing. Simplification sums out most of the other indices, and one pass over the simplified network gives the marginals of all
// indices that are left. A group keeps one index, or twice as many as the group before if that took at most easyGroup flops. If a group of
// several indices takes more, it is replaced by one of one index.
//
// It returns the groups and the price of each. If no marginal is missing, or if all groups together take more than o.Flops along min-fill
// orders, it returns nil. The simplified network of a group depends on the entries of the network, not only on its shape.
//
// Errors: as Plan. Cost: a simplification per group, and Plan's.
func (p *Prepared) PlanGroups(
	ctx context.Context, o PlanOptions, targets []int,
) (*MarginalGroups, []query.Cost, error) {
	plan := &MarginalGroups{Shape: p.Shape()}
	groups, err := p.chooseGroups(ctx, plan, targets, o.Flops)
	if len(groups) == 0 || err != nil {
		return nil, nil, err
	}

	// A tree for each group.
	prices := make([]query.Cost, len(groups))
	for k, simplified := range groups {
		tree, price, err := simplified.Plan(ctx, o.Memory, o.Seed)
		if err != nil {
			return nil, nil, err
		}
		plan.Groups[k].Tree = *tree
		prices[k] = price
	}
	return plan, prices, nil
}

// chooseGroups adds groups to a plan until no marginal of the targets is missing. A group keeps some indices, and simplification sums out
// most of the others. It returns the simplified network of each group, or nil if all groups together take more than maxFlops along min-fill
// orders.
func (p *Prepared) chooseGroups(ctx context.Context, plan *MarginalGroups, targets []int, maxFlops float64) ([]*Prepared, error) {
	missing := p.neededIndices(targets)
	var groups []*Prepared
	total := 0.0
	limit := 1 // the number of indices that the next group keeps at most
	for keep := lastMissing(missing, limit); len(keep) > 0; keep = lastMissing(missing, limit) {
		simplified, err := p.simplifyFor(ctx, keep)
		if err != nil {
			return nil, err
		}
		flops, _, err := marginalPrice(ctx, simplified.Hypergraph())
		if err != nil {
			return nil, err
		}
		if simplified.simple.Expression.Scale.IsZero() { // Z is 0, and no index is left: one group answers all
			plan.Groups = []MarginalGroup{{Keep: keep}}
			return []*Prepared{simplified}, nil
		}

		isEasy := flops <= easyGroup // then the next group may keep twice as many indices
		if !isEasy && limit > 1 {    // try again with one index
			limit = 1
			continue
		}
		if isEasy {
			limit = min(2*limit, mostGroup)
		}
		if total += flops; total > maxFlops {
			return nil, nil
		}
		groups = append(groups, simplified)
		recovered := simplified.markRecovered(missing) // changes missing: these are no longer
		plan.Groups = append(plan.Groups, MarginalGroup{Keep: keep, Indices: recovered})
	}
	return groups, nil
}

// lastMissing lists the last missing indices, at most limit of them, in descending order.
func lastMissing(missing []bool, limit int) (indices []int) {
	for i := len(missing) - 1; i >= 0 && len(indices) < limit; i-- {
		if missing[i] {
			indices = append(indices, i)
		}
	}
	return indices
}

// markRecovered lists the missing indices whose marginals can be recovered from those of p, the simplified network of a group:
// p.simple.Origin says for each index how its value or its distribution follows from an index that is left. It marks the indices as no
// longer missing.
func (p *Prepared) markRecovered(missing []bool) (indices []int) {
	for i, isMissing := range missing {
		o := p.simple.Origin[i]
		isRecoverable := o.ValueOf != nil || o.Conditional != nil
		if isMissing && isRecoverable {
			missing[i] = false
			indices = append(indices, i)
		}
	}
	return indices
}

// AnswerGroups computes the marginals of the groups o.From ≤ g < o.To of PlanGroups. Marginals[v] of the answer are the probabilities of
// variable v times the Z of its group, or nil if no group among these determines them. Z of the answer is that of the network if the first
// group is among these, otherwise 0.
func (p *Prepared) AnswerGroups(
	ctx context.Context, c *MarginalGroups, o Options,
) (Answer, error) {
	a := Answer{Marginals: make([][]scaled.Number, len(p.net.Variables))}
	if err := p.fits(&Tree{Shape: c.Shape, Marginals: true}); err != nil {
		return a, err
	}
	if p.given.Scale.IsZero() || p.simple.Expression.Scale.IsZero() {
		return a, nil
	}

	for k := o.From; k < o.To; k++ {
		if k < 0 || k >= int64(len(c.Groups)) {
			return a, fmt.Errorf("%w: no group %d", ErrOtherNetwork, k)
		}
		part, err := p.answerGroup(ctx, &c.Groups[k], o, k == 0, a.Marginals)
		a.Flops += part.Flops
		if err != nil {
			return a, fmt.Errorf("group %d: %w", k, err)
		}
		if k == 0 {
			a.Z, a.Rounding = part.Z, part.Rounding
		}
		a.Digits = max(a.Digits, part.Digits)
		a.Doubt = cmp.Or(a.Doubt, part.Doubt)
	}
	return a, nil
}

// answerGroup contracts the network of a group, and sets rows[v] for the variables v that the group determines, to probabilities times Z.
// If isFirst, it also sets the rows of variables that depend on no index.
func (p *Prepared) answerGroup(
	ctx context.Context, group *MarginalGroup, o Options, isFirst bool, rows [][]scaled.Number,
) (Answer, error) {
	g, err := p.simplifyFor(ctx, group.Keep)
	if err != nil {
		return Answer{}, err
	}
	groupTree := &group.Tree
	if err := g.fits(groupTree); err != nil {
		return Answer{}, err
	}

	allSlices := Options{Memory: o.Memory, Threads: o.Threads} // From and To of o number groups, not slices
	r, stats, err := pairwise.Marginals(ctx, g.simple.Expression, tree(groupTree), options(groupTree, allSlices))
	a := Answer{Z: r.Z, Flops: stats.Flops}
	if err == nil {
		err = g.judge(ctx, groupTree, allSlices, stats, &a)
	}

	if err != nil || r.Z.IsZero() {
		return a, err
	}

	return a, p.groupRows(group, g, r, isFirst, rows)
}

// groupRows sets rows[v], the probabilities times Z, of the variables v that a group determines, from the result r of contracting its
// network g. If isFirst, it also sets those of variables that depend on no index. Origin[i].Index is the index of the simplified network
// that decides index i, −1 if there is none.
func (p *Prepared) groupRows(
	group *MarginalGroup, g *Prepared, r pairwise.Result, isFirst bool, rows [][]scaled.Number,
) (err error) {
	// The marginals of the indices of the group.
	marginals := make([][]float64, len(p.simple.Expression.Dims))
	for _, i := range group.Indices {
		if i < 0 || i >= len(marginals) {
			return fmt.Errorf("%w: no index %d", ErrOtherNetwork, i)
		}
		if marginals[i], err = g.simple.Recover(i, r.Marginals); err != nil {
			return err
		}
	}

	// The rows of the variables that depend on one of these indices or, in the first group, on none.
	dims := p.simple.Expression.Dims
	for v := range p.net.Variables {
		index := p.simple.Origin[p.given.Variables[v]].Index
		isIndependent := index < 0 || dims[index] == 1 // of all indices with several values
		isOfGroup := isIndependent && isFirst || !isIndependent && marginals[index] != nil
		if !isOfGroup {
			continue
		}
		row, err := p.recoverRow(v, marginals)
		if err != nil {
			return err
		}
		rows[v] = make([]scaled.Number, len(row))
		for x, q := range row {
			rows[v][x] = scaled.FromFloat(q).Mul(r.Z)
		}
	}
	return nil
}

// sum returns the sum of a list, added from the first number to the last.
func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}
