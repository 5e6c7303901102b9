package exact

// Marginals group by group: the indices outside one group are summed out for it, where
// keeping all of them costs too much.

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

// JointPrice returns the flops and bytes of all marginals from one pass along a quick order:
// the reference for groups.
func (p *Prepared) JointPrice(ctx context.Context) (flops, bytes float64, err error) {
	return marginalPrice(ctx, p.Hypergraph())
}

// marginalPrice is the price of a hypergraph's marginals, along the min-fill order.
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

// group is the network simplified once more, for a few indices.
func (p *Prepared) group(ctx context.Context, keep []int) (*Prepared, error) {
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

// needed lists the remaining indices whose marginals decide those of some variables; nil: of all.
func (p *Prepared) needed(targets []int) []bool {
	need := make([]bool, len(p.simple.Expression.Dims))
	for v, i := range p.given.Variables {
		if len(targets) > 0 && !slices.Contains(targets, v) {
			continue
		}
		if o := p.simple.Origin[i]; o.Index >= 0 && p.simple.Expression.Dims[o.Index] > 1 {
			need[o.Index] = true
		}
	}
	return need
}

// easyGroup is the price up to which the next group of marginals has twice as many indices,
// mostGroup their maximum number.
// Measured: a quarter of easyGroup takes 0.3 to 0.4 of the flops on two models and no less time; a
// quarter of mostGroup 0.04 to 0.7, four times nothing, decision 20.
const (
	easyGroup = 1e6
	mostGroup = 64
)

// PlanGroups plans marginals of some variables (nil: of all) group by group: the last index whose marginal is still missing is
// kept, everything else that need not stay is summed out (barren variables above all), and all
// indices that are left come out of one pass together. Groups have several indices to keep as long
// as that is cheap. It returns nil where groups take more than o.Flops together, by quick
// orders; the flops of each group beside its plan. A group's simplified network depends on the
// network's entries, not on its shape alone.
//
// Errors: as Plan. Cost: a simplification per group, and Plan's.
func (p *Prepared) PlanGroups(
	ctx context.Context, o PlanOptions, targets []int,
) (*MarginalGroups, []query.Cost, error) {
	missing := p.needed(targets)
	var groups []*Prepared
	c := &MarginalGroups{Shape: p.Shape()}
	total := 0.0
	batch := 1

	for keep := lastOf(missing, batch); len(keep) > 0; keep = lastOf(missing, batch) {
		g, err := p.group(ctx, keep)
		if err != nil {
			return nil, nil, err
		}

		flops, _, err := marginalPrice(ctx, g.Hypergraph())
		if err != nil {
			return nil, nil, err
		}

		if g.simple.Expression.Scale.IsZero() { // so is Z, and no index is left
			groups, c.Groups = []*Prepared{g}, []MarginalGroup{{Keep: keep}}
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

		groups = append(groups, g)
		c.Groups = append(c.Groups, MarginalGroup{Keep: keep, Indices: g.take(missing)})
	}

	if len(groups) == 0 {
		return nil, nil, nil
	}

	plans := make([]query.Cost, len(groups))
	for k, g := range groups {
		own, plan, err := g.Plan(ctx, o.Memory, o.Seed)
		if err != nil {
			return nil, nil, err
		}
		c.Groups[k].Tree = *own
		plans[k] = plan
	}
	return c, plans, nil
}

// lastOf lists the last missing indices, at most most of them, the last one first.
func lastOf(missing []bool, most int) (list []int) {
	for i := len(missing) - 1; i >= 0 && len(list) < most; i-- {
		if missing[i] {
			list = append(list, i)
		}
	}
	return list
}

// take lists the missing indices whose marginals a group recovers, which are missing no more.
func (p *Prepared) take(missing []bool) (indices []int) {
	for i, open := range missing {
		if o := p.simple.Origin[i]; open && (o.From != nil || o.Given != nil) {
			missing[i] = false
			indices = append(indices, i)
		}
	}
	return indices
}

// AnswerGroups computes the groups From ≤ g < To of PlanGroups. Z is the network's if the first
// group is among them, else 0; Marginals has the variables that these groups decide, nil for
// others: probabilities times their group's Z.
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

// answerGroup fills the rows of a group;
// the first one also the rows of variables that no index decides.
func (p *Prepared) answerGroup(
	ctx context.Context, group *MarginalGroup, o Options, first bool, rows [][]scaled.Number,
) (Answer, error) {
	g, err := p.group(ctx, group.Keep)
	if err != nil {
		return Answer{}, err
	}
	own := &group.Tree
	if err := g.fits(own); err != nil {
		return Answer{}, err
	}

	all := Options{Memory: o.Memory, Threads: o.Threads}
	r, stats, err := pairwise.Marginals(ctx, g.simple.Expression, tree(own), options(own, all))
	a := Answer{Z: r.Z, Flops: stats.Flops}
	if err == nil {
		err = g.judge(ctx, own, all, stats, &a)
	}

	if err != nil || r.Z.IsZero() {
		return a, err
	}

	return a, p.groupRows(group, g, r, first, rows)
}

// groupRows fills the rows of the variables that group decides, from the result r of contracting g.
func (p *Prepared) groupRows(
	group *MarginalGroup, g *Prepared, r pairwise.Result, first bool, rows [][]scaled.Number,
) (err error) {
	left := make([][]float64, len(p.simple.Expression.Dims))
	for _, i := range group.Indices {
		if i < 0 || i >= len(left) {
			return fmt.Errorf("%w: no index %d", ErrOtherNetwork, i)
		}
		if left[i], err = g.simple.Recover(i, r.Marginals); err != nil {
			return err
		}
	}

	// A row is known where the group has the index that decides it,
	// or, in the first group, where none does.
	dims := p.simple.Expression.Dims
	for v := range p.net.Variables {
		index := p.simple.Origin[p.given.Variables[v]].Index
		decided := index < 0 || dims[index] == 1
		if decided && !first || !decided && left[index] == nil {
			continue
		}
		row, err := p.row(v, left)
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

// sum adds a list up from the first to the last.
func sum(list []float64) float64 {
	total := 0.0
	for _, x := range list {
		total += x
	}
	return total
}
