package sampled

// The choice of a kind of sampling by pilots, and the division of a budget into components.

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

// proposalShare is the share of a budget that the pilot of independent draws may take, with mini-buckets and sweeps of growing bonds.
// Measured: an attractive grid of 40×40 has a sweep of bond 4 within a tenth of six seconds, not within a twentieth, and a standard
// error of 0.002 with it where chains have 0.13.
const proposalShare = 0.1

// ChooseSampling returns the kind of sampling with the smallest predicted variance of the mean if its components take s.Budget. Pilots
// show how far the weights of each kind spread. If the time for planning ends, it returns the best kind so far, and isComplete is false.
func ChooseSampling(ctx context.Context, c *Chains, s query.Settings) (sampler Sampling, isComplete bool, err error) {
	chains, isComplete, err := c.pilot(ctx, s)
	if err != nil {
		return nil, false, err
	}
	chainEnds, err := drawChainEnds(ctx, c.Model, chains, s)
	if proposal.IsLate(err) { // without them a trial does not see which states independent draws miss
		return chains, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	draws, err := chooseIndependent(ctx, c.Prepared, s, proposalShare*s.Budget, chainEnds)
	if proposal.IsLate(err) {
		isComplete, err = false, nil
	}
	if err != nil || draws == nil {
		return chains, isComplete, err
	}
	const marginals = true // the larger memory
	chainsFit := chains.Bytes(c, annealing.GroupSize, marginals) <= float64(s.Memory)
	if chainsFit && !(predictVariance(draws, c, s.Budget) < predictVariance(chains, c, s.Budget)) {
		return chains, isComplete, err
	}
	draws.About().Modes = chains.Modes // independent draws keep the number that was chosen for chains
	return draws, isComplete, err
}

// pilot chooses chains as Pilot does, and sets their Shape to that of the simplified network.
func (c *Chains) pilot(ctx context.Context, s query.Settings) (sampler *Annealing, isComplete bool, err error) {
	if sampler, isComplete, err = Pilot(ctx, c.Model, s); err == nil {
		sampler.Shape = c.Prepared.Shape()
	}
	return sampler, isComplete, err
}

// predictVariance returns the variance of the mean weight, over the square of Z, if components are drawn for the whole budget: the variance
// of one weight over the number of components. There is always at least one component.
func predictVariance(sampler Sampling, c *Chains, budget float64) float64 {
	componentFlops, setupFlops := sampler.Cost(c)
	return sampler.About().Spread * componentFlops / max(budget-setupFlops, componentFlops)
}

// pilotShare is the share of a budget that the pilot of chains may take.
// Chosen.
const pilotShare = 0.05

// setupShare is the largest ratio of the flops of a part's preparation, before its first component, to the flops of its components.
// Chosen.
const setupShare = 0.25

// leastSampled is the minimum number of chains, unless the budget does not hold them at
// pilotRungs.
// Chosen: a tail index needs some.
const leastSampled = 128

// PlanEstimates divides what the pilot leaves of s.Budget into estimates, each a list of parts with some components. The first estimate
// has a sixteenth of all components, or fewer if the pilot shows that the accuracy needs fewer. Each further estimate adds as many as
// there were before it, so that the total doubles. The preparation of a part takes at most setupShare of the work on its components. The
// error is over budget if the smallest part does not fit the memory.
//
// A part has one policy.SampledParts'th of the components that the budget holds, or more if its preparation needs that. If the memory needs
// smaller parts, there are more of them, up to mostSampledParts. The components that these do not hold are left out.
func PlanEstimates(c *Chains, sampler Sampling, s query.Settings, marginals bool) (estimates []btn.Estimate, err error) {
	// part is the number of components in a part, total that in all parts.
	componentFlops, setupFlops := sampler.Cost(c)
	work := s.Budget * (1 - pilotShare)
	leastPart := wholeGroups(setupFlops / componentFlops / setupShare) // its setup is setupShare of the work on its components
	part := max(wholeGroups(work/componentFlops/policy.SampledParts), leastPart)
	total := wholeGroups(work / (componentFlops + setupFlops/float64(part)))
	bytes := func(part int64) float64 { return sampler.Bytes(c, part, marginals) }
	part = fitToMemory(min(part, total), s.Memory, bytes)
	total = min(total, part*mostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: components need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}

	// The first estimate has as many components as the accuracy needs: two standard errors √(Spread/N) are at most s.Accuracy.
	needed := max(leastSampled, sampler.About().Spread*math.Pow(2/s.Accuracy, 2))
	first := min(max(total/16, part)/part*part, wholeGroups(needed), total) // a sixteenth in whole parts, if no fewer are enough

	// Each estimate has the components from ≤ c < to, in parts of size components.
	from := int64(0)
	for to := first; from < total; to = min(2*to, total) {
		if total-to < to/2 { // too few are left for an estimate of their own
			to = total
		}
		half := wholeGroups(float64(to-from) / 2) // if leastPart allows it, there are two parts or more, which workers share
		size := min(part, max(leastPart, half))
		e := newEstimate(sampler, from, to, size)
		parts := math.Ceil(float64(to-from) / float64(size)) // each does the setup
		e.Cost = query.Cost{Flops: componentFlops*float64(to-from) + setupFlops*parts, Bytes: bytes(size)}
		estimates = append(estimates, e)
		from = to
	}
	return estimates, nil
}

// newEstimate returns an estimate with the components from ≤ c < to, in parts of size components. It has no price yet.
func newEstimate(sampler Sampling, from, to, size int64) btn.Estimate {
	e := btn.Estimate{Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1, Level: math.Log2(float64(to))}
	for ; from < to; from += size {
		e.Parts = append(e.Parts, &Sampled{Sampling: sampler, From: from, To: min(from+size, to)})
	}
	return e
}

// fitToMemory halves the number of components in a part until bytes(part) fits the memory, and returns it. It is at least one group.
func fitToMemory(part, memory int64, bytes func(part int64) float64) int64 {
	for part > annealing.GroupSize && bytes(part) > float64(memory) {
		part = wholeGroups(float64(part) / 2)
	}
	return part
}

// wholeGroups rounds a number of components down to a multiple of annealing.GroupSize, between one group and MaxComponents.
func wholeGroups(n float64) int64 {
	return max(annealing.GroupSize, int64(min(n, float64(MaxComponents)))/annealing.GroupSize*annealing.GroupSize)
}

// pilotChains and pilotRungs are the chains and rungs of the pilot: the spread of its weights
// decides the number of rungs, and the kind of steps.
// Chosen: the variance of 64 normal numbers is known within a fifth.
const (
	pilotChains = 64
	pilotRungs  = 128
)

// pilotThreads and keepStates are arguments of annealing.Model.Run: pilots run on one thread, and these keep the states where chains end.
const (
	pilotThreads = 1
	keepStates   = true
)

// Pilot chooses how chains are carried: the kind of steps, where they begin, the number of rungs (steps), and the knots, which fix β at
// each rung. It carries some chains of each kind, none of which is a component, and compares how far their weights spread. If the time for
// planning ends after the first chains, the other kinds are not tried, and isComplete is false.
func Pilot(ctx context.Context, m *annealing.Model, s query.Settings) (sampler *Annealing, isComplete bool, err error) {
	// Halve the rungs until two kinds of chains fit the budget of the pilot.
	rungs := pilotRungs
	chains := int64(pilotChains)
	for rungs > 4 && m.Flops(annealing.HeatBath, rungs)*float64(2*chains) > pilotShare*s.Budget {
		rungs /= 2
	}

	// The seed differs from that of components, so that the choice does not depend on them.
	sampler = &Annealing{Base: Base{Kind: ByAnnealing, Seed: s.Seed}}
	result, err := pilotChainsOn(ctx, m, annealing.Path{Rungs: rungs, Seed: ^s.Seed}, chains)
	if err != nil {
		return nil, false, err
	}
	// If the time for planning ends from here on (IsLate), the best kind so far is kept.
	if result, err = tryAlternatives(ctx, m, s, sampler, rungs, chains, result); err != nil && !proposal.IsLate(err) {
		return nil, false, err
	}
	variance := result.variance
	sampler.Knots = placeKnots(result.gains)
	if err == nil { // there is still time
		if variance, err = findModes(ctx, m, s, sampler, rungs, variance); err != nil && !proposal.IsLate(err) {
			return nil, false, err
		}
	}
	sampler.setRungs(m, s, rungs, variance)
	isComplete = err == nil
	return sampler, isComplete, nil
}

// targetVariance is the variance of ln w that the number of rungs is chosen for.
// Measured: the error at equal work does not depend on it from 1 down (complete, bipartite, three-dimensional, 3-regular models), and
// is 1.5 to 3 times larger at 8.
const targetVariance = 0.25

// onceRungs is the smallest ratio of the work of all rungs of a chain to the work that does not depend on rungs, if the budget permits it.
// Chosen: the error at equal work depends on the variance of a weight times its work alone, and
// that is then a fifth.
const onceRungs = 4

// setRungs sets the number of rungs with which the variance of ln w is targetVariance, and the spread of weights with that number. variance
// is the variance of ln w with pilotedRungs rungs; it falls as one over the number of rungs. The rungs take at least onceRungs times the
// fixed work of a chain, and at most so much that the budget holds leastSampled chains.
func (s *Annealing) setRungs(m *annealing.Model, settings query.Settings, pilotedRungs int, variance float64) {
	largest := max(float64(pilotedRungs), s.rungsFor(m, settings.Budget/leastSampled))
	smallest := max(2, onceRungs*m.FixedRungs(s.Path().Step))
	s.Rungs = int(max(2, min(max(smallest, float64(pilotedRungs)*variance/targetVariance), largest, 1<<24)))
	logVariance := variance * float64(pilotedRungs) / float64(s.Rungs)
	s.Spread = math.Expm1(min(logVariance, 50)) // log-normal weights: Var w / (E w)² = e^logVariance − 1; finite by the 50
}

// metropolisGain is the ratio of the variance with Metropolis steps to that of the heat bath, below which they are chosen.
// Measured: 0.3 to 0.7 of the heat bath's on cold models, 1.7 to 2.5 on warm ones where nothing is
// summed out; spins 0.5 to 0.9.
const metropolisGain = 0.9

// forestGain is the ratio of variance times work with forests to that of single spins, below which they are chosen.
// Chosen: metropolisGain. Measured against the earlier choice: 0.07 and 0.08 on 3-regular graphs
// of 300 spins, 0.2 on a 4-regular one, 0.6 on a scale-free one; above it on ±J models in three
// dimensions and on periodic grids, decision 26.
const forestGain = 0.9

// forestThreads is the number of parallel threads for which the memory has to hold forests. They take twice the memory of other chains.
// Chosen: a worker has no more cores.
const forestThreads = 64

// productGain is the ratio of variances below which chains may begin with beliefs (mayTrustBeliefs compares at most productChains of them).
// productDeviations is the number of standard errors by which their mean may be below that of chains from uniform draws, and by which the
// beliefs about their ends may differ. If their mean is higher by more than productExcess standard errors, chains from uniform draws do not
// count.
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

// pilotResult says how far the weights of some chains spread.
type pilotResult struct {
	variance float64     // of ln w
	gains    [][]float64 // gains[k][c] is how much ln w of chain c grows in part k of the rungs
}

// tryAlternatives tries Metropolis steps, steps of forests, and chains that begin with beliefs, with the given numbers of rungs (steps of a
// chain) and chains. result is the result of chains with steps of the heat bath, to which the others are compared. It sets the fields of
// sampler for the best kind and returns the result of that kind. If there is an error, it returns the result of the best kind so far.
func tryAlternatives(
	ctx context.Context, m *annealing.Model, s query.Settings, sampler *Annealing, rungs int, chains int64, result pilotResult,
) (pilotResult, error) {
	a := &alternatives{
		model: m, sampler: sampler, best: result, chainFlops: m.Flops(annealing.HeatBath, rungs),
		budget: pilotShare * s.Budget, memory: float64(s.Memory), seed: ^s.Seed, rungs: rungs, chains: chains,
	}
	for _, try := range []func(context.Context) error{a.tryMetropolis, a.tryForests, a.tryBeliefs} {
		if err := try(ctx); err != nil {
			return a.best, err
		}
	}
	return a.best, nil
}

// alternatives compares kinds of chains with the best one so far.
type alternatives struct {
	model      *annealing.Model
	sampler    *Annealing  // whose fields are set for the best kind
	best       pilotResult // of the best kind
	chainFlops float64     // of a chain of the best kind; those of the heat bath and of Metropolis steps are equal
	// The pilot of a kind.
	budget, memory float64 // flops and bytes that it may take
	seed           uint64
	rungs          int
	chains         int64
}

// tryMetropolis tries Metropolis steps. They differ from those of the heat bath only for indices of two values.
func (a *alternatives) tryMetropolis(ctx context.Context) error {
	if !a.model.HasBinaryIndex() {
		return nil
	}
	path := annealing.Path{Rungs: a.rungs, Seed: a.seed, Step: annealing.Metropolis}
	metropolis, err := pilotChainsOn(ctx, a.model, path, a.chains)
	if err == nil && metropolis.variance < metropolisGain*a.best.variance {
		a.best, a.sampler.Metropolis = metropolis, true
	}
	return err
}

// tryForests tries steps of forests: spins drawn together, whose couplings among themselves make no cycle. They take more work, so that
// variance times work is compared.
func (a *alternatives) tryForests(ctx context.Context) error {
	m := a.model
	path := annealing.Path{Rungs: a.rungs, Seed: a.seed, Step: annealing.Forests}
	chainFlops := m.Flops(annealing.Forests, a.rungs)
	const marginals = true // the larger memory
	fitsMemory := m.Bytes(annealing.Path{Step: annealing.Forests}, annealing.GroupSize, forestThreads, marginals) <= a.memory
	if !fitsMemory || !m.MayUseForests() || !(max(chainFlops*float64(a.chains), m.ForestFlops()) < a.budget) {
		return nil
	}
	forests, err := pilotChainsOn(ctx, m, path, a.chains)
	if err == nil && forests.variance*chainFlops < forestGain*a.best.variance*a.chainFlops {
		a.best, a.chainFlops = forests, chainFlops
		a.sampler.Metropolis, a.sampler.Forests = false, true
	}
	return err
}

// tryBeliefs tries chains that begin with draws from the beliefs of belief propagation, with the steps of the best kind of chains so far.
// They become the best kind if ln of their weights varies by less than productGain times that of the best kind, and if they find all modes
// (mayTrustBeliefs).
func (a *alternatives) tryBeliefs(ctx context.Context) error {
	if a.model.StartFlops() >= a.budget { // the beliefs alone take too long
		return nil
	}
	path := a.sampler.Path()
	path.Rungs, path.Seed, path.FromBeliefs = a.rungs, a.seed, true
	beliefs, err := pilotChainsOn(ctx, a.model, path, a.chains)
	if err != nil || beliefs.variance >= productGain*a.best.variance {
		return err
	}
	comparedChains := int64(a.budget / a.chainFlops / 2) // of each kind: from beliefs, and from uniform draws
	comparedChains = min(max(comparedChains/annealing.GroupSize*annealing.GroupSize, a.chains), productChains)
	// The pilots have carried the chains with numbers below a.chains.
	a.sampler.Product, err = mayTrustBeliefs(ctx, a.model, path, a.chains, a.chains+comparedChains)
	if err == nil && a.sampler.Product {
		a.best = beliefs
	}
	return err
}

// mayTrustBeliefs reports whether chains that begin with draws from beliefs find all modes. It compares the chains from ≤ c < to of path
// with as many that begin with uniform draws. Those from beliefs have to weigh as much on average, spread less, and end in states to which
// the beliefs give the same probability on average.
//
// The last rule finds beliefs that are about one of several modes. Such beliefs keep chains away from the other modes, and give a low
// probability to ends of chains there. If chains from uniform draws weigh far less than those from beliefs, their ends show nothing. Then
// beliefs may be trusted if belief propagation from other starts ends with the same beliefs.
func mayTrustBeliefs(ctx context.Context, m *annealing.Model, path annealing.Path, from, to int64) (bool, error) {
	// Carry the two kinds of chains, and compute the mean log-probability of their ends under the beliefs.
	var means [2]sampling.Mean // of the weights from uniform draws and from beliefs
	var lnBeliefs [2]moments
	for k := range means {
		path.FromBeliefs = k == 1
		w, err := m.Run(ctx, path, from, to, pilotThreads, keepStates)
		if err != nil {
			return false, err
		}
		means[k] = sampling.MeanOf(w.Ln)
		lnAtEnds, err := m.LnBeliefs(ctx, w)
		if err != nil {
			return false, err
		}
		lnBeliefs[k] = temperedMoments(lnAtEnds, w.Ln)
	}

	uniform, beliefs := means[0], means[1]
	if math.IsInf(uniform.Ln, -1) { // all chains from uniform draws weigh 0
		return true, nil
	}
	standardError := math.Hypot(uniform.StandardError, beliefs.StandardError)
	switch excess := beliefs.Ln - uniform.Ln; {
	case excess < -productDeviations*standardError: // chains from beliefs miss weight
		return false, nil
	case beliefs.StandardError > math.Sqrt(productGain)*uniform.StandardError: // they spread too far
		return false, nil
	case excess > productExcess*standardError: // chains from uniform draws do not count
		isDivided, err := m.HasSeveralBeliefs(ctx)
		return !isDivided, err
	}
	distance := math.Abs(lnBeliefs[1].mean - lnBeliefs[0].mean)
	return distance <= productDeviations*math.Hypot(lnBeliefs[0].standardError, lnBeliefs[1].standardError), nil
}

// chainEnds are the states where some chains have ended, none of which is a component.
type chainEnds struct {
	states  [][]int
	weights []float64 // of the chains (temperedWeights); they add up to 1
	lnMean  float64   // ln of the mean weight of the components that the chains belong to
}

// drawChainEnds carries about pilotChains chains as sampler draws them and returns the states where they end. The chains have fewer rungs
// (steps) if they would take more than pilotShare of the budget. The result is nil if all of them weigh 0.
func drawChainEnds(ctx context.Context, m *annealing.Model, sampler *Annealing, s query.Settings) (*chainEnds, error) {
	const firstComponent = 2 * productChains // the pilot has carried the chains of lower numbers
	path := sampler.Path()
	components := wholeGroups(pilotChains / path.Starts())
	path.Rungs = int(max(4, min(float64(sampler.Rungs), sampler.rungsFor(m, pilotShare*s.Budget/float64(components)))))
	path.Seed = ^s.Seed // not that of components
	w, err := m.Run(ctx, path, firstComponent, firstComponent+components, pilotThreads, keepStates)
	if err != nil || math.IsInf(w.Top, -1) {
		return nil, err
	}
	ends := &chainEnds{weights: temperedWeights(w.LnContributions), lnMean: sampling.LnMean(w.Ln)}
	for chain := range w.LnContributions {
		state := make([]int, m.Indices())
		m.ReadState(w, chain, state)
		ends.states = append(ends.states, state)
	}
	return ends, nil
}

// spread estimates the variance of the weights w of independent draws over the square of their mean. It is E(w/Z) − 1 over states of the
// model, for which the ends of chains stand. lnWeights[c] is ln of the weight that a draw of the c-th of these states would have, and
// lnMean ln of the mean weight of draws. The ends show also states that the draws almost never reach.
func (e *chainEnds) spread(lnWeights []float64, lnMean float64) float64 {
	lnZ := max(lnMean, e.lnMean)
	total := 0.0
	for c, ln := range lnWeights {
		total += e.weights[c] * math.Exp(min(ln-lnZ, 50)) // 50: chosen, so that the sum stays finite
	}
	return total - 1
}

// moments is a mean with its standard error.
type moments struct{ mean, standardError float64 }

// temperedWeights returns weights proportional to e^(power·ln) that add up to 1. The effective number of weights is (Σ w)²/Σ w². power is
// 1 if at least policy.LeastEffective weights are effective; otherwise it is halved until they are, or until it is below 1e-3.
func temperedWeights(ln []float64) (w []float64) {
	w = make([]float64, len(ln))
	top := slices.Max(ln)
	for power := 1.0; ; power /= 2 {
		sum, squares := 0.0, 0.0
		for c, x := range ln {
			w[c] = math.Exp(max(power*(x-top), -700)) // e^−700 is no subnormal number
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

// temperedMoments returns the weighted mean Σ w x of the numbers x, and its standard error √(Σ w² (x − mean)²). The weights are e^ln,
// tempered so that enough numbers count for a reliable standard error.
func temperedMoments(x, ln []float64) (m moments) {
	w := temperedWeights(ln)
	for c, value := range x {
		m.mean += w[c] * value
	}
	for c, value := range x {
		m.standardError += w[c] * w[c] * (value - m.mean) * (value - m.mean)
	}
	m.standardError = math.Sqrt(m.standardError)
	return m
}

// pilotChainsOn carries chains 0 to chains−1 along a path and returns how far their weights spread.
func pilotChainsOn(ctx context.Context, m *annealing.Model, path annealing.Path, chains int64) (pilotResult, error) {
	gains, w, err := m.Gains(ctx, path, 0, chains, min(ladderParts, path.Rungs))
	if err != nil {
		return pilotResult{}, err
	}
	return pilotResult{lnVariance(w.Ln), gains}, nil
}

// lnVariance returns the variance of the logarithms of weights, which are ln. A weight of 0 counts as e^−3 times the smallest positive one
// (chosen). If all weights are 0 it returns 50, which stands for a very large variance.
func lnVariance(ln []float64) float64 {
	smallest := math.Inf(1)
	for _, x := range ln {
		if !math.IsInf(x, -1) {
			smallest = min(smallest, x)
		}
	}
	if math.IsInf(smallest, 1) {
		return 50
	}
	limited := make([]float64, len(ln))
	for k, x := range ln {
		limited[k] = max(x, smallest-3)
	}
	return sampling.Variance(limited)
}
