package sampled

// Proposals: chains, their length and their number.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Choose chooses how components are drawn where s.Budget is what they may take: by the error at that work that pilots of the kinds promise,
// which is the variance of a weight times its work. Where the time for planning is over it takes what is best so far, and whole is false.
func Choose(ctx context.Context, c *Chains, s query.Settings) (along Sampling, whole bool, err error) {
	chains, whole, err := Pilot(ctx, c.Model, s)
	if err != nil {
		return nil, false, err
	}
	chains.Shape = c.Prepared.Shape()
	ends, err := endsOf(ctx, c.Model, chains, s)
	if proposal.Late(err) { // draws whose density leaves something out would not be seen
		return chains, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	other, err := among(ctx, c.Prepared, s, policy.ProposalShare*s.Budget, ends)
	if proposal.Late(err) {
		whole, err = false, nil
	}
	roomless := chains.Bytes(c, annealing.Group, true) > float64(s.Memory)
	if err == nil && other != nil && (roomless || promise(other, c, s.Budget) < promise(chains, c, s.Budget)) {
		other.About().Modes = chains.Modes
		return other, whole, err
	}
	return chains, whole, err
}

// promise is the variance of the mean over the square of Z.
func promise(along Sampling, c *Chains, budget float64) float64 {
	each, setup := along.Takes(c)
	return along.About().Spread * each / max(budget-setup, each)
}

// Components divides what s.Budget leaves after the pilot into components: estimates of a sixteenth of it or less, an eighth and so on,
// each of the components of those before it and as many again. What comes before the first component takes policy.SetupShare of a part
// at most.
func Components(c *Chains, along Sampling, s query.Settings, marginals bool) (out []btn.Estimate, err error) {
	each, setup := along.Takes(c)
	work := s.Budget * (1 - policy.PilotShare)
	least := groups(setup / each / policy.SetupShare)
	part := max(groups(work/each/policy.SampledParts), least)
	chains := groups(work / (each + setup/float64(part)))
	bytes := func(part int64) float64 { return along.Bytes(c, part, marginals) }
	part = fitting(min(part, chains), s.Memory, bytes)
	chains = min(chains, part*policy.MostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: components need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}

	// What the accuracy needs by the pilot comes first where that is less.
	enough := max(policy.LeastSampled, along.About().Spread*math.Pow(2/s.Accuracy, 2))
	first := min(max(chains/16, part)/part*part, groups(enough), chains)
	from := int64(0)
	for to := first; from < chains; to = min(2*to, chains) {
		if chains-to < to/2 {
			to = chains
		}
		own := min(part, max(least, groups(float64(to-from)/2)))
		e := btn.Estimate{
			Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1, Level: math.Log2(float64(to)),
			Cost: query.Cost{Flops: each*float64(to-from) + setup*math.Ceil(float64(to-from)/float64(own)), Bytes: bytes(own)},
		}
		for ; from < to; from += own {
			e.Parts = append(e.Parts, &Sampled{Along: along, From: from, To: min(from+own, to)})
		}
		from = to
		out = append(out, e)
	}
	return out, nil
}

// fitting halves a part until it fits the memory, down to one group.
func fitting(part, memory int64, bytes func(part int64) float64) int64 {
	for part > annealing.Group && bytes(part) > float64(memory) {
		part = groups(float64(part) / 2)
	}
	return part
}

// groups is a number of components from one group to the most there are, in whole groups.
func groups(n float64) int64 {
	return max(annealing.Group, int64(min(n, float64(MostComponents)))/annealing.Group*annealing.Group)
}

// Pilot chooses steps, rungs and where chains begin by how far the weights of some chains spread, none of which is a component. The
// logarithm's variance falls as one over the rungs. Where the time for planning is over after the first, the others have no say, and
// whole is false.
func Pilot(ctx context.Context, m *annealing.Model, s query.Settings) (along *Annealing, whole bool, err error) {
	few := policy.PilotRungs
	chains := int64(policy.PilotChains)
	for ; few > 4 && m.Flops(annealing.HeatBath, few)*float64(2*chains) > policy.PilotShare*s.Budget; few /= 2 {
	}
	along = &Annealing{Base: Base{Kind: ByAnnealing, Seed: s.Seed}}
	// Pilots have seeds of their own: components never see what has chosen them.
	variance, gains, err := weightVariance(ctx, m, annealing.Path{Rungs: few, Seed: ^s.Seed}, chains)
	if err != nil {
		return nil, false, err
	}
	if variance, gains, err = others(ctx, m, s, along, few, chains, variance, gains); err != nil && !proposal.Late(err) {
		return nil, false, err
	}
	along.Knots = knots(gains)
	if err == nil {
		if variance, err = seek(ctx, m, s, along, few, variance); err != nil && !proposal.Late(err) {
			return nil, false, err
		}
	}
	along.ladder(m, s, few, variance)
	return along, err == nil, nil
}

// ladder sets the number of rungs and the spread of weights by the variance of log-weights over few rungs.
func (s *Annealing) ladder(m *annealing.Model, of query.Settings, few int, variance float64) {
	most := max(float64(few), s.rungs(m, of.Budget/policy.LeastSampled))
	least := max(2, policy.OnceRungs*m.Once(s.Path().Step))
	s.Rungs = int(max(2, min(max(least, float64(few)*variance/policy.WeightVariance), most, 1<<24)))
	s.Spread = math.Expm1(min(variance*float64(few)/float64(s.Rungs), 50))
}

// others tries steps other than single ones of the heat bath, and chains that begin with beliefs, against those of this variance. It notes
// in along what is better, and returns the variance and the gains of that; with an error, those of what was better before it.
func others(
	ctx context.Context, m *annealing.Model, s query.Settings, along *Annealing,
	rungs int, chains int64, variance float64, gains [][]float64,
) (float64, [][]float64, error) {
	if m.Binary() {
		other, of, err := weightVariance(ctx, m, annealing.Path{Rungs: rungs, Seed: ^s.Seed, Step: annealing.Metropolis}, chains)
		if err != nil {
			return variance, gains, err
		}
		if other < policy.MetropolisGain*variance {
			variance, gains, along.Metropolis = other, of, true
		}
	}
	each, trial := m.Flops(annealing.HeatBath, rungs), m.Flops(annealing.Forests, rungs)
	room := m.Bytes(annealing.Path{Step: annealing.Forests}, annealing.Group, policy.ForestThreads, true) <= float64(s.Memory)
	if room && m.Forests() && max(trial*float64(chains), m.ForestFlops()) < policy.PilotShare*s.Budget {
		p := annealing.Path{Rungs: rungs, Seed: ^s.Seed, Step: annealing.Forests}
		other, of, err := weightVariance(ctx, m, p, chains)
		if err != nil {
			return variance, gains, err
		}
		if other*trial < policy.ForestGain*variance*each {
			variance, gains, each, along.Metropolis, along.Forests = other, of, trial, false, true
		}
	}
	if m.StartFlops() >= policy.PilotShare*s.Budget {
		return variance, gains, nil
	}
	p := along.Path()
	p.Rungs, p.Seed, p.Product = rungs, ^s.Seed, true
	other, of, err := weightVariance(ctx, m, p, chains)
	if err != nil || other >= policy.ProductGain*variance {
		return variance, gains, err
	}
	many := int64(policy.PilotShare * s.Budget / each / 2)
	many = min(max(many/annealing.Group*annealing.Group, chains), policy.ProductChains)
	if along.Product, err = alike(ctx, m, p, chains, chains+many); err != nil || !along.Product {
		return variance, gains, err
	}
	return other, of, nil
}

// alike reports whether chains that begin with beliefs are to be believed against those from uniform draws: they weigh as much on average,
// their weights spread less, and they end where the others do. Beliefs that speak for one of several modes keep chains from the others, of
// which the spread of their weights tells nothing; but ln of what the beliefs say of where chains end is low in other modes, and one of a
// tenth of the weight shows in a hundred chains. Chains from uniform draws that weigh far less have no say; it is beliefs from other starts
// that say then whether there are other modes.
func alike(ctx context.Context, m *annealing.Model, p annealing.Path, from, to int64) (bool, error) {
	var means [2]sampling.Mean
	var ends [2]moments
	for k := range means {
		p.Product = k == 1
		w, err := m.Run(ctx, p, from, to, 1, true)
		if err != nil {
			return false, err
		}
		means[k] = sampling.Of(w.Ln)
		beliefs, err := m.LnStart(ctx, w)
		if err != nil {
			return false, err
		}
		ends[k] = weighted(beliefs, w.Ln)
	}
	uniform, product := means[0], means[1]
	if math.IsInf(uniform.Ln, -1) {
		return true, nil
	}
	deviation := math.Hypot(uniform.StandardError, product.StandardError)
	apart := math.Abs(ends[1].mean - ends[0].mean)
	switch more := product.Ln - uniform.Ln; {
	case more < -policy.ProductDeviations*deviation:
		return false, nil
	case product.StandardError > math.Sqrt(policy.ProductGain)*uniform.StandardError:
		return false, nil
	case more > policy.ProductExcess*deviation:
		divided, err := m.Divided(ctx)
		return !divided, err
	}
	return apart <= policy.ProductDeviations*math.Hypot(ends[0].deviation, ends[1].deviation), nil
}

// ends are where some chains that are no components have ended.
type ends struct {
	states  [][]int
	weights []float64 // of the chains, tempered; they add up to 1
	ln      float64   // of the mean of the weights
}

// endsOf returns the last states of about policy.PilotChains chains of the chosen kind, which have fewer rungs where
// policy.PilotShare of the budget asks for it; nil where all weigh 0.
func endsOf(ctx context.Context, m *annealing.Model, along *Annealing, s query.Settings) (*ends, error) {
	const first = 2 * policy.ProductChains // other chains than the pilot's
	p := along.Path()
	components := groups(policy.PilotChains / p.Starts())
	p.Rungs = int(max(4, min(float64(along.Rungs), along.rungs(m, policy.PilotShare*s.Budget/float64(components)))))
	p.Seed = ^s.Seed
	w, err := m.Run(ctx, p, first, first+components, 1, true)
	if err != nil || math.IsInf(w.Top, -1) {
		return nil, err
	}
	e := &ends{weights: tempered(w.Each), ln: sampling.LnMean(w.Ln)}
	for c := range w.Each {
		x := make([]int, m.Indices())
		m.State(w, c, x)
		e.states = append(e.states, x)
	}
	return e, nil
}

// spread is the variance of weights over the square of their mean as it is at states of the model: E w/Z there, less 1, where draws whose
// weights have a mean of e^ln would weigh e^at. A part of Z that the density leaves out is rare among draws, and not among the states.
func (e *ends) spread(at []float64, ln float64) float64 {
	ln = max(ln, e.ln)
	total := 0.0
	for c, l := range at {
		total += e.weights[c] * math.Exp(min(l-ln, 50))
	}
	return total - 1
}

// moments are a mean and its standard error.
type moments struct{ mean, deviation float64 }

// tempered are weights e^ln, or a power of them that leaves enough of the chains effective, over their sum.
func tempered(ln []float64) (w []float64) {
	w = make([]float64, len(ln))
	top := slices.Max(ln)
	for power := 1.0; ; power /= 2 {
		sum, squares := 0.0, 0.0
		for c, l := range ln {
			w[c] = math.Exp(max(power*(l-top), -700))
			sum += w[c]
			squares += w[c] * w[c]
		}
		if sum*sum >= policy.LeastEffective*squares || power < 1e-3 {
			for c := range w {
				w[c] /= sum
			}
			return w
		}
	}
}

// weighted is the mean of x with tempered weights: the mean of few would have no standard error to speak of.
func weighted(x, ln []float64) (m moments) {
	w := tempered(ln)
	for c, y := range x {
		m.mean += w[c] * y
	}
	for c, y := range x {
		m.deviation += w[c] * w[c] * (y - m.mean) * (y - m.mean)
	}
	m.deviation = math.Sqrt(m.deviation)
	return m
}

// weightVariance returns the variance of the log-weights of some chains, and their gains over parts of the rungs.
func weightVariance(ctx context.Context, m *annealing.Model, p annealing.Path, chains int64) (float64, [][]float64, error) {
	gains, w, err := m.Gains(ctx, p, 0, chains, min(policy.LadderParts, p.Rungs))
	if err != nil {
		return 0, nil, err
	}
	return lnVariance(w.Ln), gains, nil
}

// lnVariance is the variance of log-weights. A weight of 0 counts as e^−3 times the least positive one; 50 where all are 0.
func lnVariance(ln []float64) float64 {
	least := math.Inf(1)
	for _, l := range ln {
		if !math.IsInf(l, -1) {
			least = min(least, l)
		}
	}
	if math.IsInf(least, 1) {
		return 50
	}
	all := make([]float64, len(ln))
	for k, l := range ln {
		all[k] = max(l, least-3)
	}
	return sampling.Variance(all)
}
