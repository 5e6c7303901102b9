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
	components, starts, sweeps int     // at most
	maps                       bool    // orthogonal maps are learned as well
	seed                       uint64  // of the starts
	work                       float64 // multiply-adds at most
}

// effortFrom returns the effort that settings allow.
func effortFrom(settings query.Settings) effort {
	return effort{
		components: settings.Components, starts: 2, sweeps: 20, maps: settings.Maps == query.MapLearned, seed: settings.Seed,
		work: settings.Budget * learnShare / countRate,
	}
}

// Learn fits a sum of components to the network's base tensor: it minimises ‖B − Σ_i α_i S^(i)∘R^(i)‖ over α ≥ 0, S and R, with at most
// Components components of the settings.
//
// From every start, components are added one at a time to the residual of those before: the best of a few seeded candidates. After each
// addition all components are swept cyclically: R leg by leg, then S in closed form, both against the residual of the others, then all α
// together. Up to rounding, the residual never rises. The result is the start that explains most. It has fewer components if ρ vanishes, if
// a component explains nothing, or if the share of the budget for learning is spent, which gives a warning.
//
// A network without legs is one component of rank one, exact. B = 0 is one component of rank one with weight 0, exact, with LnNormB = −Inf.
// LnExplained is −Inf if nothing could be explained. LnNormError includes bounds of the rounding in ρ (fit.Rounding) and in the maps
// (btn.MapRounding), so that certificates hold for computed numbers, too.
//
// Cost: about r² · n² multiply-adds a sweep for r components over n legs at two levels; memory O(r·n^1.5). The same network and settings
// give the same result. It stops between cores if ctx is done. Source: Hamid and Braun, section on Frobenius norm minimisation. Differs:
// alternating least squares for R and S.
func Learn(ctx context.Context, net *btn.Network, settings query.Settings) (*btn.Plan, error) {
	e := effortFrom(settings)
	return learn(ctx, net, levelsOf(net, e.work), e)
}

// learn is Learn with given levels of the components and a given effort. It learns a model from each of several starts and takes the one
// that explains most. It ends early if a model has no residual or if the work is used up. Levels divide the values of a leg: those of level
// 0 are not counted, those of level a > 0 count in variable a.
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
		return TrivialPlan(net, norm2)
	}

	// The best of several starts.
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
		countBefore, isLast := len(l.parts), i == l.components-1
		if err := l.addComponent(ctx); err != nil {
			return err
		}
		isUnchanged := len(l.parts) == countBefore       // no candidate explained anything
		if len(l.parts) == 0 || isUnchanged && !isLast { // nothing new to sweep over
			continue
		}
		sweeps := min(l.sweeps, greedySweeps) // fewer as long as components are still added
		if isLast {
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

// trialCounts returns the number of candidates for every new component, and the number of sweeps that each candidate gets, for so many
// legs. Small problems have many minima that are cheap to look at. On large problems the candidates differ little and cost much.
func trialCounts(legs int) (candidates, sweeps int) {
	if legs <= smallProblem {
		return 6, 8
	}
	return 2, 3
}

// smallProblem is the number of legs up to which a sweep takes about a millisecond.
const smallProblem = 64

// addComponent adds the best of a few candidates for a new component. It adds none if no candidate explains anything of the residual.
func (l *learner) addComponent(ctx context.Context) error {
	var best *model
	candidates, sweeps := trialCounts(len(l.sp.dims))
	for try := range candidates {
		if try > 0 && l.isSpent() {
			break
		}

		// Draw a candidate, and improve it alone.
		trial := *l // l itself stays as it is
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

		explainsMore := trial.fit.Explained.Cmp(l.fit.Explained) > 0
		if !explainsMore || trial.g[i][i].IsZero() { // g[i][i] is the new part's squared norm
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

// improve updates part i once: its vectors leg by leg, then its S, then the weights of all parts.
func (m *model) improve(ctx context.Context, i int) error {
	vectors, products, err := m.vectorSweep(ctx, i)
	if err != nil {
		return err
	}
	return m.replacePart(i, &part{s: m.symmetricStep(i, products), r: vectors}, products)
}

// sweepAll runs at most the given number of sweeps, each over all parts. It ends when a sweep improves the fit by less than the tolerance,
// or when the work is used up.
func (l *learner) sweepAll(ctx context.Context, sweeps int) error {
	for range sweeps {
		fitBefore := l.fit
		if err := l.sweep(ctx); err != nil {
			return err
		}
		if l.isSettled(fitBefore) || l.isSpent() {
			break
		}
	}
	return nil
}

// sweep improves every part once, and then the maps if they are learned. A part is one component S∘R of the model: S weighs counts, and R
// has a vector for each leg.
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

// isSettled reports whether ρ has vanished, or the last sweep improved the fit by less than the tolerance. previous is the fit before that
// sweep.
func (l *learner) isSettled(previous fit) bool {
	gain := l.fit.Explained.Sub(previous.Explained)
	reference := l.fit.Explained // the smaller one of 1 − ρ and ρ
	if residual := scaled.FromFloat(l.fit.Residual); residual.Cmp(reference) < 0 {
		reference = residual
	}
	return l.fit.hasVanished() || gain.Cmp(reference.Mul(scaled.FromFloat(tolerance))) <= 0
}

// newPart returns a part with random unit vectors and S = 0. Try 0 draws positive vectors near the uniform one, which suits factors that
// are mostly positive; try 1 positive vectors of any direction; try 2 vectors of either sign; and so on in turn. The draw is a function of
// seed, start, component and try.
func newPart(sp *space, seed uint64, start, component, try int) *part {
	p := &part{s: countspace.New(sp.shape), r: make([][]float64, len(sp.dims))}
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|uint64(component)<<10|uint64(try))) // each has bits of its own
	for leg, d := range sp.dims {
		p.r[leg] = randomVector(rng, d, try)
	}
	return p
}

// randomVector draws a unit vector of d entries. If try is a multiple of 3, it is near all ones; for the next try all entries are positive;
// for the one after that they are of either sign.
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

	if square == 0 { // it has no direction
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
