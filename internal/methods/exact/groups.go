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

// JointPrice returns the flops and bytes of all marginals in one pass along a quick order, with which groups are compared.
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

// simplifyFor returns the network simplified once more, with only the indices keep to be kept.
func (p *Prepared) simplifyFor(ctx context.Context, keep []int) (*Prepared, error) {
	simple, err := preprocess.Run(ctx, p.simple.Expression, preprocess.Options{
		Keep:      keep,
		Probes:    -1,
		Roundings: p.simple.Roundings,
	})
	if err != nil {
		return nil, err
	}
	simple.Rounding += p.simple.Rounding - sum(p.simple.Roundings) // of the scale
	return &Prepared{net: p.net, given: p.given, simple: simple, marginals: true}, nil
}

// neededIndices reports by remaining index whether the marginal of a target depends on it. No targets stand for all variables.
func (p *Prepared) neededIndices(targets []int) []bool {
	isNeeded := make([]bool, len(p.simple.Expression.Dims))
	for v, i := range p.given.Variables {
		if len(targets) > 0 && !slices.Contains(targets, v) {
			continue
		}
		if o := p.simple.Origin[i]; o.Index >= 0 && p.simple.Expression.Dims[o.Index] > 1 {
			isNeeded[o.Index] = true
		}
	}
	return isNeeded
}

// easyGroup is the flops of a group up to which the next one has twice as many indices, at most mostGroup.
// Measured: a quarter of easyGroup takes 0.3 to 0.4 of the flops on two models and no less time; a
// quarter of mostGroup 0.04 to 0.7, four times nothing, decision 20.
const (
	easyGroup = 1e6
	mostGroup = 64
)

// PlanGroups plans the marginals of targets (nil: of all variables) group by group. For each group it keeps the last index whose marginal
// is still missing, or several of them as long as that is cheap, and sums out all other indices that need not stay, most of which are
// barren. One pass then gives the marginals of all indices that remain. It returns the groups and the price of each, or nil if all groups
// together take more than o.Flops by quick orders. The simplified network of a group depends on the entries of the network, not only on
// its shape.
//
// Errors: as Plan. Cost: a simplification per group, and Plan's.
func (p *Prepared) PlanGroups(
	ctx context.Context, o PlanOptions, targets []int,
) (*MarginalGroups, []query.Cost, error) {
	missing := p.neededIndices(targets)
	var groups []*Prepared
	c := &MarginalGroups{Shape: p.Shape()}
	total := 0.0
	batch := 1

	for keep := lastMissing(missing, batch); len(keep) > 0; keep = lastMissing(missing, batch) {
		simplified, err := p.simplifyFor(ctx, keep)
		if err != nil {
			return nil, nil, err
		}

		flops, _, err := marginalPrice(ctx, simplified.Hypergraph())
		if err != nil {
			return nil, nil, err
		}

		if simplified.simple.Expression.Scale.IsZero() { // so is Z, and no index is left
			groups, c.Groups = []*Prepared{simplified}, []MarginalGroup{{Keep: keep}}
			break
		}

		// A batch that is not cheap is made again with one index;
		// after a cheap one the next is twice as large.
		if flops > easyGroup && batch > 1 {
			batch = 1
			continue
		}
		if flops <= easyGroup {
			batch = min(2*batch, mostGroup)
		}

		if total += flops; total > o.Flops {
			return nil, nil, nil
		}

		groups = append(groups, simplified)
		c.Groups = append(c.Groups, MarginalGroup{Keep: keep, Indices: simplified.takeMissing(missing)})
	}

	if len(groups) == 0 {
		return nil, nil, nil
	}

	prices := make([]query.Cost, len(groups))
	for k, simplified := range groups {
		tree, price, err := simplified.Plan(ctx, o.Memory, o.Seed)
		if err != nil {
			return nil, nil, err
		}
		c.Groups[k].Tree = *tree
		prices[k] = price
	}
	return c, prices, nil
}

// lastMissing lists at most limit missing indices from the last one down.
func lastMissing(missing []bool, limit int) (indices []int) {
	for i := len(missing) - 1; i >= 0 && len(indices) < limit; i-- {
		if missing[i] {
			indices = append(indices, i)
		}
	}
	return indices
}

// takeMissing lists the missing indices whose marginals a group recovers, and marks them as no longer missing.
func (p *Prepared) takeMissing(missing []bool) (indices []int) {
	for i, isMissing := range missing {
		if o := p.simple.Origin[i]; isMissing && (o.From != nil || o.Given != nil) {
			missing[i] = false
			indices = append(indices, i)
		}
	}
	return indices
}

// AnswerGroups computes the groups From ≤ g < To of PlanGroups. Z is that of the network if the first group is among them, else 0.
// Marginals has the rows of the variables that these groups determine, as probabilities times the Z of their group, and nil for all
// others.
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

// answerGroup computes a group and sets the rows of its variables. The first group also sets the rows of variables that depend on no
// index.
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

	all := Options{Memory: o.Memory, Threads: o.Threads}
	r, stats, err := pairwise.Marginals(ctx, g.simple.Expression, tree(groupTree), options(groupTree, all))
	a := Answer{Z: r.Z, Flops: stats.Flops}
	if err == nil {
		err = g.judge(ctx, groupTree, all, stats, &a)
	}

	if err != nil || r.Z.IsZero() {
		return a, err
	}

	return a, p.groupRows(group, g, r, isFirst, rows)
}

// groupRows sets the rows of the variables that a group determines, from the result r of contracting its network g.
func (p *Prepared) groupRows(
	group *MarginalGroup, g *Prepared, r pairwise.Result, isFirst bool, rows [][]scaled.Number,
) (err error) {
	marginals := make([][]float64, len(p.simple.Expression.Dims))
	for _, i := range group.Indices {
		if i < 0 || i >= len(marginals) {
			return fmt.Errorf("%w: no index %d", ErrOtherNetwork, i)
		}
		if marginals[i], err = g.simple.Recover(i, r.Marginals); err != nil {
			return err
		}
	}

	// A row is known where the group has the index that decides it,
	// or, in the first group, where none does.
	dims := p.simple.Expression.Dims
	for v := range p.net.Variables {
		index := p.simple.Origin[p.given.Variables[v]].Index
		decided := index < 0 || dims[index] == 1
		if decided && !isFirst || !decided && marginals[index] == nil {
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
