package sampled

// Proposals: chains, their length and their number.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// proposalShare is the part of a budget that the pilot of independent draws may take: mini-buckets, and sweeps of growing bonds.
// Measured: an attractive grid of 40×40 has a sweep of bond 4 within a tenth of six seconds, not within a twentieth, and a standard
// error of 0.002 with it where chains have 0.13.
const proposalShare = 0.1

// Choose chooses how components are drawn where s.Budget is what they may take: by the error at that work that pilots of the kinds promise,
// which is the variance of a weight times its work. Where the time for planning is over it takes what is best so far, and whole is false.
func Choose(ctx context.Context, c *Chains, s query.Settings) (along Sampling, whole bool, err error) {
	chains, whole, err := c.pilot(ctx, s)
	if err != nil {
		return nil, false, err
	}
	ends, err := endsOf(ctx, c.Model, chains, s)
	if proposal.IsLate(err) { // draws whose density leaves something out would not be seen
		return chains, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	other, err := among(ctx, c.Prepared, s, proposalShare*s.Budget, ends)
	if proposal.IsLate(err) {
		whole, err = false, nil
	}
	roomless := chains.Bytes(c, annealing.Group, true) > float64(s.Memory)
	if err == nil && other != nil && (roomless || promise(other, c, s.Budget) < promise(chains, c, s.Budget)) {
		other.About().Modes = chains.Modes
		return other, whole, err
	}
	return chains, whole, err
}

// pilot is Pilot for chains on the prepared network, which their parts name.
func (c *Chains) pilot(ctx context.Context, s query.Settings) (along *Annealing, whole bool, err error) {
	if along, whole, err = Pilot(ctx, c.Model, s); err == nil {
		along.Shape = c.Prepared.Shape()
	}
	return along, whole, err
}

// promise is the variance of the mean over the square of Z.
func promise(along Sampling, c *Chains, budget float64) float64 {
	each, setup := along.Takes(c)
	return along.About().Spread * each / max(budget-setup, each)
}

// pilotShare is the part of a budget that the pilot may take.
// Chosen.
const pilotShare = 0.05

// setupShare is the largest ratio of the preparation of a part of the components to the work on
// them.
// Chosen.
const setupShare = 0.25

// leastSampled is the minimum number of chains, unless the budget does not hold them at
// pilotRungs.
// Chosen: a tail index needs some.
const leastSampled = 128

// Components divides what s.Budget leaves after the pilot into components: estimates of a sixteenth of it or less, an eighth and so on,
// each of the components of those before it and as many again. What comes before the first component takes setupShare of a part
// at most.
func Components(c *Chains, along Sampling, s query.Settings, marginals bool) (out []btn.Estimate, err error) {
	each, setup := along.Takes(c)
	work := s.Budget * (1 - pilotShare)
	least := groups(setup / each / setupShare)
	part := max(groups(work/each/policy.SampledParts), least)
	chains := groups(work / (each + setup/float64(part)))
	bytes := func(part int64) float64 { return along.Bytes(c, part, marginals) }
	part = fitting(min(part, chains), s.Memory, bytes)
	chains = min(chains, part*mostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: components need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}

	// What the accuracy needs by the pilot comes first where that is less.
	enough := max(leastSampled, along.About().Spread*math.Pow(2/s.Accuracy, 2))
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

// pilotChains and pilotRungs are the chains and rungs of the pilot: the spread of its weights
// decides the number of rungs, and the kind of steps.
// Chosen: the variance of 64 normal numbers is known within a fifth.
const (
	pilotChains = 64
	pilotRungs  = 128
)

// Pilot chooses steps, rungs and where chains begin by how far the weights of some chains spread, none of which is a component. The
// logarithm's variance falls as one over the rungs. Where the time for planning is over after the first, the others have no say, and
// whole is false.
func Pilot(ctx context.Context, m *annealing.Model, s query.Settings) (along *Annealing, whole bool, err error) {
	few := pilotRungs
	chains := int64(pilotChains)
	for ; few > 4 && m.Flops(annealing.HeatBath, few)*float64(2*chains) > pilotShare*s.Budget; few /= 2 {
	}
	along = &Annealing{Base: Base{Kind: ByAnnealing, Seed: s.Seed}}
	// Pilots have seeds of their own: components never see what has chosen them.
	variance, gains, err := weightVariance(ctx, m, annealing.Path{Rungs: few, Seed: ^s.Seed}, chains)
	if err != nil {
		return nil, false, err
	}
	if variance, gains, err = others(ctx, m, s, along, few, chains, variance, gains); err != nil && !proposal.IsLate(err) {
		return nil, false, err
	}
	along.Knots = knots(gains)
	if err == nil {
		if variance, err = seek(ctx, m, s, along, few, variance); err != nil && !proposal.IsLate(err) {
			return nil, false, err
		}
	}
	along.ladder(m, s, few, variance)
	return along, err == nil, nil
}

// targetVariance is the variance of the logarithm of a weight that the rungs are chosen for.
// Measured: the error at equal work does not depend on it from 1 down (complete, bipartite, three-dimensional, 3-regular models), and
// is 1.5 to 3 times larger at 8.
const targetVariance = 0.25

// onceRungs is the minimum ratio of rung work to fixed work per chain, budget permitting.
// Chosen: the error at equal work depends on the variance of a weight times its work alone, and
// that is then a fifth.
const onceRungs = 4

// ladder sets the number of rungs and the spread of weights by the variance of log-weights over few rungs.
func (s *Annealing) ladder(m *annealing.Model, of query.Settings, few int, variance float64) {
	most := max(float64(few), s.rungs(m, of.Budget/leastSampled))
	least := max(2, onceRungs*m.Once(s.Path().Step))
	s.Rungs = int(max(2, min(max(least, float64(few)*variance/targetVariance), most, 1<<24)))
	s.Spread = math.Expm1(min(variance*float64(few)/float64(s.Rungs), 50))
}

// metropolisGain is the ratio of variances below which Metropolis steps are taken.
// Measured: 0.3 to 0.7 of the heat bath's on cold models, 1.7 to 2.5 on warm ones where nothing is
// summed out; spins 0.5 to 0.9.
const metropolisGain = 0.9

// forestGain is the ratio of variance times work below which forests are drawn together.
// Chosen: metropolisGain. Measured against the earlier choice: 0.07 and 0.08 on 3-regular graphs
// of 300 spins, 0.2 on a 4-regular one, 0.6 on a scale-free one; above it on ±J models in three
// dimensions and on periodic grids, decision 26.
const forestGain = 0.9

// forestThreads is the number of parallel threads for which the memory has to hold forests, which
// take twice the memory of other chains.
// Chosen: a worker has no more cores.
const forestThreads = 64

// productGain is the ratio of variances below which chains begin with beliefs. productDeviations
// is the number of standard errors by which their mean may be below the mean of other chains, and
// the statement of the beliefs about their ends above, of productChains at most; productExcess is
// the number of standard errors above the mean of others from which only they count.
// Measured on 24 families: 0.1 of the variance or less on Bayesian networks, parity codes, in
// fields; where there are several modes the mean falls by 0.4 to 12, or by less, and the statement
// of the beliefs about the ends differs by 3 to 17 standard errors: a restricted Boltzmann machine
// of 40 and 40 units lost 0.13 of ln Z with a quarter of the variance, and 512 chains saw it by 2
// and 5 standard errors.
// Chains of parity codes weigh 10 to 33 standard errors more than those from uniform draws, which
// die.
const (
	productGain       = 0.5
	productDeviations = 2
	productChains     = 2048
	productExcess     = 4
)

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
		if other < metropolisGain*variance {
			variance, gains, along.Metropolis = other, of, true
		}
	}
	each, trial := m.Flops(annealing.HeatBath, rungs), m.Flops(annealing.Forests, rungs)
	room := m.Bytes(annealing.Path{Step: annealing.Forests}, annealing.Group, forestThreads, true) <= float64(s.Memory)
	if room && m.Forests() && max(trial*float64(chains), m.ForestFlops()) < pilotShare*s.Budget {
		p := annealing.Path{Rungs: rungs, Seed: ^s.Seed, Step: annealing.Forests}
		other, of, err := weightVariance(ctx, m, p, chains)
		if err != nil {
			return variance, gains, err
		}
		if other*trial < forestGain*variance*each {
			variance, gains, each, along.Metropolis, along.Forests = other, of, trial, false, true
		}
	}
	if m.StartFlops() >= pilotShare*s.Budget {
		return variance, gains, nil
	}
	p := along.Path()
	p.Rungs, p.Seed, p.Product = rungs, ^s.Seed, true
	other, of, err := weightVariance(ctx, m, p, chains)
	if err != nil || other >= productGain*variance {
		return variance, gains, err
	}
	many := int64(pilotShare * s.Budget / each / 2)
	many = min(max(many/annealing.Group*annealing.Group, chains), productChains)
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
	case more < -productDeviations*deviation:
		return false, nil
	case product.StandardError > math.Sqrt(productGain)*uniform.StandardError:
		return false, nil
	case more > productExcess*deviation:
		divided, err := m.Divided(ctx)
		return !divided, err
	}
	return apart <= productDeviations*math.Hypot(ends[0].deviation, ends[1].deviation), nil
}

// ends are where some chains that are no components have ended.
type ends struct {
	states  [][]int
	weights []float64 // of the chains, tempered; they add up to 1
	ln      float64   // of the mean of the weights
}

// endsOf returns the last states of about pilotChains chains of the chosen kind, which have fewer rungs where
// pilotShare of the budget asks for it; nil where all weigh 0.
func endsOf(ctx context.Context, m *annealing.Model, along *Annealing, s query.Settings) (*ends, error) {
	const first = 2 * productChains // other chains than the pilot's
	p := along.Path()
	components := groups(pilotChains / p.Starts())
	p.Rungs = int(max(4, min(float64(along.Rungs), along.rungs(m, pilotShare*s.Budget/float64(components)))))
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
	gains, w, err := m.Gains(ctx, p, 0, chains, min(ladderParts, p.Rungs))
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
