package learned

// Minimisation of the plain objective: greedy components, cyclic sweeps over all of them, seeded starts.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// effort bounds what is learned.
type effort struct {
	components, starts, sweeps int  // at most
	maps                       bool // orthogonal maps are learned as well
	seed                       uint64
	work                       float64 // multiply-adds at most
}

// effortFrom returns the effort of settings.
func effortFrom(s query.Settings) effort {
	return effort{
		components: s.Components, starts: 2, sweeps: 20, maps: s.Maps == query.MapLearned, seed: s.Seed,
		work: s.Budget * learnShare / countRate,
	}
}

// Learn fits the components of the settings, Components at most, to the network's base tensor: ‖B − Σ_i α_i S^(i)∘R^(i)‖ with α ≥ 0.
//
// From every start, components are added one at a time to the residual of those before (the best of
// a few seeded candidates), and after each addition all components are swept cyclically: R leg by
// leg and S in closed form against the residual of the others, with a joint refit of α after every
// component. The residual never rises from component to component or from sweep to sweep, to
// rounding. The best start by explained fraction is returned; it has fewer components where ρ
// vanishes before, or where a component explains nothing, or where the share of the budget for
// learning is spent, with a warning. A network without legs is one rank-one component without legs,
// exact. B = 0 is one rank-one component of weight 0, exact, with LnNormB = −Inf. LnExplained is −Inf
// if nothing could be explained. LnNormError includes bounds on the rounding in ρ (see fit.Rounding)
// and in the maps (btn.MapRounding), so that certificates hold for computed numbers too.
//
// Cost: about r² · n² multiply-adds a sweep for r components over n legs at two levels; memory
// O(r·n^1.5). The same network and settings give the same result. It stops between cores when ctx is
// done.
// Source: Hamid and Braun, section on Frobenius norm minimisation.
// Differs: alternating least squares for R and S.
func Learn(ctx context.Context, net *btn.Network, s query.Settings) (*btn.Plan, error) {
	e := effortFrom(s)
	return learn(ctx, net, levelsOf(net, e.work), e)
}

// learn is Learn with given levels and effort.
func learn(ctx context.Context, net *btn.Network, levels countspace.Levels, e effort) (*btn.Plan, error) {
	sp, err := newSpace(net, levels)
	if err != nil {
		return nil, err
	}
	norm2, err := sp.setRounding(net)
	if err != nil {
		return nil, err
	}
	if len(net.Dims) == 0 || norm2.IsZero() {
		return Trivial(net, norm2)
	}

	var best *model
	for start := range e.starts {
		l := newLearner(sp, norm2, e, start)
		if best != nil && (best.fit.hasVanished() || l.isSpent()) {
			break
		}
		if err := l.run(ctx); err != nil {
			return nil, err
		}
		if best == nil || l.fit.Explained.Cmp(best.fit.Explained) > 0 {
			best = l.model
		}
	}

	plan := best.plan()
	if float64(sp.ops.MulAdds) >= e.work {
		plan.Warnings = append(plan.Warnings,
			fmt.Sprintf("learning ended with its share of the budget, %.3g multiply-adds, at %d of %d components",
				e.work, len(best.parts), e.components))
	}
	return plan, nil
}

// learner runs one start.
type learner struct {
	*model
	effort
	start int
}

// newLearner returns the learner of a start, without components. If maps are learned, starts after the first begin with random ones.
func newLearner(sp *space, norm2 scaled.Number, e effort, start int) *learner {
	m := &model{sp: sp, norm2: norm2, fit: fit{Residual: 1, Condition: 1}}
	l := &learner{model: m.snapshot(), effort: e, start: start}
	if e.maps && start > 0 {
		l.sp.rot = sp.randomMaps(e.seed, start)
	}
	return l
}

// isSpent reports whether the work of learning is used up.
func (l *learner) isSpent() bool { return float64(l.sp.ops.MulAdds) >= l.work }

// run adds components one at a time, and sweeps over all of them after each addition.
func (l *learner) run(ctx context.Context) error {
	for i := range l.components {
		before, last := len(l.parts), i == l.components-1
		if err := l.addComponent(ctx); err != nil {
			return err
		}
		if len(l.parts) == 0 || len(l.parts) == before && !last {
			continue
		}
		sweeps := min(l.sweeps, greedySweeps)
		if last {
			sweeps = l.sweeps
		}
		if err := l.sweepAll(ctx, sweeps); err != nil {
			return err
		}
		if l.fit.hasVanished() || l.isSpent() {
			break
		}
	}

	return nil
}

// greedySweeps is the number of joint sweeps after each component except the last, after which there are effort.sweeps.
const greedySweeps = 5

// trialCounts returns the number of candidates for every new component, and the number of sweeps that each candidate gets. Small problems
// have many minima that are cheap to look at. On large problems the candidates differ little and cost much.
func trialCounts(legs int) (candidates, sweeps int) {
	if legs <= smallProblem {
		return 6, 8
	}
	return 2, 3
}

// smallProblem is the number of legs up to which a sweep takes about a millisecond.
const smallProblem = 64

// addComponent appends the best of a few candidates. It appends none if no candidate explains anything of the residual.
func (l *learner) addComponent(ctx context.Context) error {
	var best *model
	candidates, sweeps := trialCounts(len(l.sp.dims))
	for try := range candidates {
		if try > 0 && l.isSpent() {
			break
		}
		trial := *l
		trial.model = l.snapshot()
		i := trial.appendPart(newPart(l.sp, l.seed, l.start, len(l.parts), try))
		if err := trial.fitNewPart(i); err != nil {
			return err
		}
		for n := range sweeps {
			if n > 0 && l.isSpent() {
				break
			}
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

// improve updates part i once: R leg by leg, then S, then all weights.
func (m *model) improve(ctx context.Context, i int) error {
	r, q, err := m.vectorSweep(ctx, i)
	if err != nil {
		return err
	}
	return m.replacePart(i, &part{s: m.symmetricStep(i, q), r: r}, q)
}

// sweepAll runs cyclic sweeps over all parts, until one improves neither the explained fraction nor ρ by the tolerance.
func (l *learner) sweepAll(ctx context.Context, sweeps int) error {
	for range sweeps {
		before := l.fit
		if err := l.sweep(ctx); err != nil {
			return err
		}
		if l.isSettled(before) || l.isSpent() {
			break
		}
	}
	return nil
}

// sweep improves every part once, and then the maps if they are learned.
func (l *learner) sweep(ctx context.Context) error {
	for i := range l.parts {
		if err := l.improve(ctx, i); err != nil {
			return err
		}
	}
	if l.maps {
		return l.procrustes(ctx)
	}
	return nil
}

// tolerance ends the sweeps: the last sweep has improved the explained fraction by less than this share of it, or ρ by less than this
// share of ρ, whichever is smaller.
const tolerance = 1e-5

// isSettled reports whether the last sweep improved the fit by less than the tolerance, or ρ has vanished. before is the fit before that
// sweep.
func (l *learner) isSettled(before fit) bool {
	gain := l.fit.Explained.Sub(before.Explained)
	reference := l.fit.Explained
	if r := scaled.FromFloat(l.fit.Residual); r.Cmp(reference) < 0 {
		reference = r
	}
	return l.fit.hasVanished() || gain.Cmp(reference.Mul(scaled.FromFloat(tolerance))) <= 0
}

// newPart returns a part with random unit vectors and S = 0. Try 0 draws positive vectors near
// the uniform one, which suits factors that are mostly positive; try 1 positive vectors of any
// direction; later ones vectors of either sign. The draw is a function of seed, start, component and
// try.
func newPart(sp *space, seed uint64, start, component, try int) *part {
	p := &part{s: countspace.New(sp.shape), r: make([][]float64, len(sp.dims))}
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|uint64(component)<<10|uint64(try)))
	for leg, d := range sp.dims {
		p.r[leg] = randomVector(rng, d, try)
	}
	return p
}

// randomVector draws a unit vector. By the number of the try it is near all ones, of one sign, or of either sign.
func randomVector(rng *rand.Rand, d, try int) []float64 {
	v := make([]float64, d)
	square := 0.0
	for x := range v {
		g := rng.NormFloat64()
		switch try % 3 {
		case 0:
			v[x] = 1 + 0.3*g
		case 1:
			v[x] = math.Abs(g)
		default:
			v[x] = g
		}
		square += v[x] * v[x]
	}

	if square == 0 {
		for x := range v {
			v[x] = 1
		}
		return v
	}
	for x := range v {
		v[x] /= math.Sqrt(square)
	}
	return v
}
