package sampled

// Modes that chains miss, and whether further chains begin there.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/pkg/query"
)

// modesShare is the largest share of a budget for the search for modes and a pilot of chains from them. modesChains is the smallest
// number of chains from each start in that pilot. Chains begin from modes if they find more weight there than other chains do, by
// modesDeviations standard errors and by the share modesLeast of the total.
// Chosen.
const (
	modesShare      = 0.1
	modesChains     = 16
	modesDeviations = 2
	modesLeast      = 1e-3
)

// findModes searches for modes and sets sampler.Modes, the number of modes from which further chains of a component begin. It adds the
// modes one after the other. A number of modes is kept if the chains from these modes find weight that the chains from the modes kept
// before miss (missesWeight); the largest such number counts.
//
// variance is the variance of ln w, where w is the weight of a component without modes and with pilotedRungs rungs, the steps of a chain.
// The result is the larger of this variance and of that with the modes kept. If the search and 3·modesChains chains of pilotedRungs rungs
// exceed modesShare of the budget, nothing changes.
func findModes(
	ctx context.Context, m *annealing.Model, s query.Settings, sampler *Annealing, pilotedRungs int, variance float64,
) (float64, error) {
	flops := modesShare*s.Budget - m.ModesFlops() // for chains
	path := sampler.Path()
	path.Rungs, path.Seed = pilotedRungs, ^s.Seed // not the seed of components
	chainFlops := m.Flops(path.Step, pilotedRungs)
	if flops < 3*modesChains*chainFlops {
		return variance, nil
	}
	count, err := m.CountModes(ctx, path)
	if err != nil || count == 0 {
		return variance, err
	}

	// Carry chains from all modes that the work allows. They have as many rungs as it allows up to targetVariance: chains that are too
	// short miss weight that longer ones find.
	path.Modes = min(count, int(flops/(modesChains*chainFlops))-1) // −1: a component has a chain from the first start, too
	longest := m.RungsWithin(path.Step, flops/(modesChains*path.Starts()))
	path.Rungs = int(max(float64(pilotedRungs), min(longest, float64(pilotedRungs)*variance/targetVariance)))
	chainFlops = m.Flops(path.Step, path.Rungs)
	components := wholeGroups(min(flops/(chainFlops*path.Starts()), pilotChains))
	const firstComponent = 4 * productChains // the pilots before have carried the chains of lower numbers
	w, err := m.Run(ctx, path, firstComponent, firstComponent+components, pilotThreads, keepStates)
	if err != nil || math.IsInf(w.Top, -1) {
		return variance, err
	}
	return sampler.keepModes(w, path.Modes, variance), nil
}

// keepModes sets s.Modes, the number of modes that are kept, to at most count. It tries 1, 2, … modes, and keeps a number if its chains
// find weight that the chains of the modes kept before miss (missesWeight). w has a chain of each component from the first start and from
// each mode. It returns the largest of variance and of the variances of ln w with the modes that were kept on the way.
func (s *Annealing) keepModes(w *annealing.Weights, count int, variance float64) float64 {
	keptWeights, _ := w.WithFirstStarts(1) // without modes
	for modes := 1; modes <= count; modes++ {
		weights, chains := w.WithFirstStarts(1 + modes)
		if missesWeight(keptWeights, weights, chains, 1+s.Modes) { // the first start, and the modes kept
			s.Modes, keptWeights = modes, weights
			variance = max(variance, lnVariance(weights))
		}
	}
	return variance
}

// missesWeight reports whether components with chains from old starts alone miss weight that chains from added starts find. oldLn[c] is ln
// of the weight of component c with the old starts, and newLn[c] with all starts. chainLn has ln of the contributions of each component's
// chains to newLn, component after component; the first oldStarts of a component are from old starts.
//
// A chain counts only near its start. So the weight near the added starts is, for components with all starts, what the added chains
// contribute. For components with the old starts alone, it is their weight less what the chains from old starts contribute if all starts
// are there. The first weight has to exceed the second on average, by modesDeviations standard errors and by the share modesLeast of the
// total weight.
func missesWeight(oldLn, newLn, chainLn []float64, oldStarts int) bool {
	starts := len(chainLn) / len(newLn)
	newNearAdded := make([]float64, len(newLn))                  // by component: the weight near the added starts, with all starts
	oldNearAdded := make([]float64, len(newLn))                  // and with the old ones
	total, top := 0.0, max(slices.Max(newLn), slices.Max(oldLn)) // total is the mean weight; all weights are over e^top
	for c := range newLn {
		nearOld := 0.0
		for k, ln := range chainLn[c*starts:][:starts] {
			if k < oldStarts {
				nearOld += math.Exp(ln - top)
			} else {
				newNearAdded[c] += math.Exp(ln - top)
			}
		}
		oldNearAdded[c] = math.Exp(oldLn[c]-top) - nearOld
		total += math.Exp(newLn[c]-top) / float64(len(newLn))
	}
	added, old := meanAndError(newNearAdded), meanAndError(oldNearAdded)
	excess := added.mean - old.mean
	return excess > modesLeast*total && excess > modesDeviations*math.Hypot(added.standardError, old.standardError)
}

// meanAndError returns the mean of the numbers x, all with the same weight, and its standard error.
func meanAndError(x []float64) (m moments) {
	for _, y := range x {
		m.mean += y / float64(len(x))
	}
	for _, y := range x {
		m.standardError += (y - m.mean) * (y - m.mean)
	}
	n := float64(len(x))
	m.standardError = math.Sqrt(m.standardError / (n - 1) / n)
	return m
}
