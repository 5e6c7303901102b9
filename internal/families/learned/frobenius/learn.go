package frobenius

// Learning a dictionary: greedy components, cyclic sweeps over all of them, seeded starts.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Learn fits opts.Components components of opts.Classes to the network's base tensor.
//
// From every start, components are added one at a time to the residual of those before (the best of
// a few seeded candidates), and after each addition all components are swept cyclically: R leg by
// leg and S in closed form against the residual of the others, with a joint refit of α after every
// component. The residual never rises from component to component or from sweep to sweep, to
// rounding. The best start by explained fraction is returned; it has fewer components where ρ
// vanishes before, or where a component explains nothing. A network without legs is one rank-one
// component without legs, exact. B = 0 is one rank-one component of weight 0, exact, with LnNormB =
// −Inf. LnExplained is −Inf if nothing could be explained. LnNormError includes bounds on the
// rounding in ρ (see Fit.Rounding) and in the maps (btn.MapRounding), so that certificates hold for computed numbers too.
//
// Cost: about Starts · Sweeps · r² · n² multiply-adds for r components over n legs at two levels
// (see Cost); memory O(r·n^1.5). The same network and options give the same result. It stops between
// cores when ctx is done.
// Source: Hamid and Braun, section on Frobenius norm minimisation.
// Differs: alternating least squares for R and S.
func Learn(ctx context.Context, net *btn.Network, opts Options) (*btn.Plan, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	levels := NetworkLevels(net)
	if opts.Levels != nil {
		levels = *opts.Levels
	}
	sp, err := newSpace(net, levels)
	if err != nil {
		return nil, err
	}

	norm2, err := sp.scale(net)
	if err != nil {
		return nil, err
	}
	if len(net.Dims) == 0 || norm2.IsZero() {
		return Trivial(net, norm2)
	}

	var best *model
	for start := range opts.Starts {
		l := &learner{
			opts:  opts,
			start: start,
			model: &model{sp: sp, norm2: norm2, nonNegative: opts.NonNegative},
		}
		l.model = l.model.snapshot()
		l.fit = Fit{Residual: 1, Condition: 1}
		if opts.LearnMaps && start > 0 {
			l.sp.rot = sp.randomMaps(opts.Seed, start)
		}
		if err := l.run(ctx); err != nil {
			return nil, err
		}
		if best == nil || l.fit.Explained.Cmp(best.fit.Explained) > 0 {
			best = l.model
		}
		if best.fit.vanished() {
			break // nothing left that could be measured
		}
	}

	plan := best.plan()
	plan.Warnings = append(plan.Warnings, gaugeWarnings(net)...)
	return plan, nil
}

// learner runs one start.
type learner struct {
	*model
	opts  Options
	start int
}

// run adds components one at a time and sweeps over all of them after each.
func (l *learner) run(ctx context.Context) error {
	for i := range l.opts.Components {
		before, last := len(l.parts), i == l.opts.Components-1
		if err := l.add(ctx, l.opts.Classes[i%len(l.opts.Classes)]); err != nil {
			return err
		}
		if len(l.parts) == 0 || len(l.parts) == before && !last {
			continue
		}
		sweeps := min(l.opts.Sweeps, greedySweeps)
		if last {
			sweeps = l.opts.Sweeps
		}
		if err := l.sweeps(ctx, sweeps); err != nil {
			return err
		}
		if l.fit.vanished() {
			break
		}
	}

	return nil
}

// greedySweeps are the joint sweeps after each component but the last, which gets all of them.
const greedySweeps = 5

// effort returns the number of candidates for every new component, and the sweeps each gets on its
// own. Minima of small problems are many and cheap to look at; on large ones the candidates differ
// little and cost much.
func effort(legs int) (candidates, sweeps int) {
	if legs <= smallProblem {
		return 6, 8
	}
	return 2, 3
}

// smallProblem is the number of legs up to which a sweep takes about a millisecond.
const smallProblem = 64

// add appends the best of a few candidates, unless none explains anything of the residual. A second
// symmetric component adds nothing: S of the first is free already.
func (l *learner) add(ctx context.Context, class btn.Class) error {
	var best *model
	tries, sweeps := effort(len(l.sp.dims))
	if class == btn.ClassSymmetric {
		tries = 1
		for _, p := range l.parts {
			if p.class == class {
				return nil
			}
		}
	}

	for try := range tries {
		trial := *l
		trial.model = l.snapshot()
		i := trial.grow(newPart(l.sp, class, l.opts.Seed, l.start, len(l.parts), try))
		if err := trial.seed(i); err != nil {
			return err
		}

		for range sweeps {
			if err := trial.improve(ctx, i); err != nil {
				return err
			}
		}

		if trial.fit.Explained.Cmp(l.fit.Explained) <= 0 || trial.g[i][i].IsZero() {
			continue
		}
		if best == nil || trial.fit.Explained.Cmp(best.fit.Explained) > 0 {
			best = trial.model
		}
	}

	if best != nil {
		l.model = best
	}
	return nil
}

// seed fits S of the new part i to the residual and takes it into G and b.
func (l *learner) seed(i int) error {
	p := l.parts[i]
	q, err := l.measure(i, p)
	if err != nil {
		return err
	}
	if p.class != btn.ClassRankOne {
		s := l.symmetricStep(i, q)
		fresh := *p
		fresh.s = &s
		p = &fresh
	}
	return l.place(i, p, q)
}

// improve sweeps part i once: R leg by leg, then S.
func (l *learner) improve(ctx context.Context, i int) error {
	p := l.parts[i]
	var q products
	var err error
	if p.class == btn.ClassSymmetric {
		q, err = l.measure(i, p)
	} else {
		p, q, err = l.vectorSweep(ctx, i)
	}
	if err != nil {
		return err
	}
	if p.class != btn.ClassRankOne {
		s := l.symmetricStep(i, q)
		fresh := *p
		fresh.s = &s
		p = &fresh
	}

	return l.place(i, p, q)
}

// sweeps runs cyclic sweeps over all parts until they stop paying.
func (l *learner) sweeps(ctx context.Context, most int) error {
	for n := range most {
		before := l.fit
		for i := range l.parts {
			if err := l.improve(ctx, i); err != nil {
				return err
			}
		}

		if l.opts.LearnMaps {
			if err := l.procrustes(ctx); err != nil {
				return err
			}
		}

		if l.opts.Progress != nil {
			l.opts.Progress(Progress{
				Start:       l.start,
				Components:  len(l.parts),
				Sweep:       n,
				Residual:    l.fit.Residual,
				LnExplained: l.fit.LnExplained(),
			})
		}
		if l.settled(before) {
			break
		}
	}

	return nil
}

// settled reports whether the last sweep improved neither the explained fraction nor ρ by the
// tolerance.
func (l *learner) settled(before Fit) bool {
	gain := l.fit.Explained.Sub(before.Explained)
	reference := l.fit.Explained
	if r := scaled.FromFloat(l.fit.Residual); r.Cmp(reference) < 0 {
		reference = r
	}
	return l.fit.vanished() || gain.Cmp(reference.Mul(scaled.FromFloat(l.opts.Tolerance))) <= 0
}
