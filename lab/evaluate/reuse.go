package evaluate

// Experiment "reuse": projectors learned without evidence, applied under evidence.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

func runReuse(ctx context.Context, o Options) ([]Row, error) {
	list := []instance{{family: grids, size: 10, strength: 1.5}, {family: narrow, strength: 1, attractive: true}}
	observations, bonds := []int{0, 1, 2, 5, 10, 20}, []int{4, 8, 16}
	if o.Short {
		list, observations, bonds = []instance{{family: grids, size: 6, strength: 1.5}}, []int{0, 2}, []int{4}
	}
	var rows []Row
	for _, x := range list {
		for seed := range o.seeds(usualSeeds, shortSeeds) {
			x.seed = uint64(seed)
			for _, drawn := range []bool{true, false} {
				more, err := reused(ctx, x, observations, bonds, drawn)
				rows = append(rows, more...)
				if err != nil {
					return rows, fmt.Errorf("%s: %w", x, err)
				}
			}
			o.say(fmt.Sprintf("%s: %d rows", x, len(rows)))
		}
	}

	return rows, nil
}

// reused contracts one model under growing evidence, along one tree; drawn says where the
// observations come from.
func reused(ctx context.Context, x instance, observations, bonds []int, drawn bool) ([]Row, error) {
	model, err := x.build()
	if err != nil {
		return nil, err
	}
	base := x.row(len(model.Domains))
	base.Family = x.String()[:strings.Index(x.String(), " seed")] + ", values at random"
	if drawn {
		base.Family = strings.Replace(base.Family, "at random", "of the model", 1)
	}
	base.Attractive = false // it is in the name
	p, err := prepared(ctx, model, true)
	if err != nil {
		return nil, err
	}

	plan, err := plannedTree(ctx, p, bonds[len(bonds)-1])
	if err != nil {
		return nil, err
	}
	evidence, truths, err := observe(ctx, model, observations, x.seed, drawn)
	if err != nil {
		return nil, err
	}

	var rows []Row
	for _, bond := range bonds {
		before, err := trees.Contract(ctx, p.Expression(), plan, trees.Options{Bond: bond, Keep: true})
		if err != nil {
			return rows, err
		}
		for k, ev := range evidence {
			for _, projectors := range []*trees.Projectors{before.Projectors, nil} {
				r := base
				r.Method, r.Step = fmt.Sprintf("reused, bond %d", bond), float64(observations[k])
				if projectors == nil {
					r.Method = fmt.Sprintf("learned anew, bond %d", bond)
				}
				got, err := contractUnder(ctx, p, ev, plan, trees.Options{Bond: bond, Projectors: projectors})
				if err != nil {
					return rows, err
				}
				r.answer(got, truths[k])
				if math.IsNaN(got.LnZ) {
					r.Failed = "a total at or below 0"
				}
				rows = append(rows, r)
			}
		}
	}

	return rows, nil
}

// contractUnder contracts the network under evidence; the shapes stay as they are without.
func contractUnder(
	ctx context.Context, p *truncated.Prepared, ev factorgraph.Evidence, plan trees.Plan,
	o trees.Options,
) (Outcome, error) {
	weighed, err := p.Weigh(ev)
	if err != nil {
		return unknown(), err
	}
	start := now()
	v, err := trees.Contract(ctx, weighed.Expression(), plan, o)
	got := valued(v.Z, v.Flops)
	got.Discarded = v.Discarded
	got.Seconds = now().Sub(start).Seconds()
	return got, err
}

// observe makes evidence on so many variables, each set part of the next one, and the exact answers
// under it. The values are drawn from the model, one after the other under those before, or each
// value alike.
func observe(
	ctx context.Context, m *factorgraph.Model, observations []int, seed uint64, drawn bool,
) (sets []factorgraph.Evidence, truths []Outcome, err error) {
	rng := rand.New(rand.NewPCG(seed, 11))
	variables := rng.Perm(len(m.Domains))
	values := map[int]int{}
	for _, count := range observations {
		for len(values) < count {
			v := variables[len(values)]
			value := rng.IntN(m.Domains[v])
			if drawn {
				o, err := answered(ctx, m, query.Query{Evidence: factorgraph.Observe(values), Marginals: true}, exactSettings)
				if err != nil {
					return nil, nil, err
				}
				value = pick(o.Marginals[v], rng.Float64())
			}
			values[v] = value
		}

		ev := factorgraph.Observe(values)
		o, err := answered(ctx, m, query.Query{Evidence: ev}, exactSettings)
		if err != nil {
			return nil, nil, err
		}
		sets, truths = append(sets, ev), append(truths, o)
	}

	return sets, truths, nil
}

// pick is the value at which the probabilities' sum exceeds u.
func pick(p []float64, u float64) int {
	for x := range p[1:] {
		if u -= p[x]; u < 0 {
			return x
		}
	}
	return len(p) - 1
}
