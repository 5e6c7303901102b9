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

// findModes searches for modes and sets sampler.Modes, the number of starts in addition to that of the chains. It is the largest n such
// that chains from the first n modes find more weight near the starts they add than the chains chosen before (missesWeight). variance is
// the variance of ln w of a component without modes and with pilotedRungs rungs. It returns that, or the variance with modes if it is
// larger. It changes nothing if the search and 3·modesChains chains of pilotedRungs rungs would exceed modesShare of the budget.
func findModes(
	ctx context.Context, m *annealing.Model, s query.Settings, sampler *Annealing, pilotedRungs int, variance float64,
) (float64, error) {
	flops := modesShare*s.Budget - m.ModesFlops()
	path := sampler.Path()
	path.Rungs, path.Seed = pilotedRungs, ^s.Seed
	each := m.Flops(path.Step, pilotedRungs)
	if flops < 3*modesChains*each {
		return variance, nil
	}
	count, err := m.Modes(ctx, path)
	if err != nil || count == 0 {
		return variance, err
	}
	path.Modes = min(count, int(flops/(modesChains*each))-1)
	// Chains that are too short for the model miss weight that longer ones find.
	longest := m.Rungs(path.Step, flops/(modesChains*path.Starts()))
	path.Rungs = int(max(float64(pilotedRungs), min(longest, float64(pilotedRungs)*variance/targetVariance)))
	each = m.Flops(path.Step, path.Rungs)
	chains := wholeGroups(min(flops/(each*path.Starts()), pilotChains))
	const first = 4 * productChains // other chains than the pilot's
	w, err := m.Run(ctx, path, first, first+chains, 1, true)
	if err != nil || math.IsInf(w.Top, -1) {
		return variance, err
	}

	without, _ := w.Among(1)
	for count := 1; count <= path.Modes; count++ {
		with, chains := w.Among(1 + count)
		if missesWeight(with, chains, without, 1+sampler.Modes) {
			sampler.Modes, without = count, with
			variance = max(variance, lnVariance(with))
		}
	}
	return variance, nil
}

// missesWeight reports whether chains from added starts find weight near those starts that chains without them miss: more by
// modesDeviations standard errors, and by the share modesLeast of the total. with and without are ln weights of components with the added
// starts and without. chains are ln weights of all chains of with, component after component; in each the first starts chains are those
// without added starts.
func missesWeight(with, chains, without []float64, starts int) bool {
	perComponent := len(chains) / len(with)
	nearAdded := make([]float64, len(with)) // by component: the weight of its chains from added starts
	difference := make([]float64, len(with))
	total, top := 0.0, max(slices.Max(with), slices.Max(without))
	for c := range with {
		nearOld := 0.0
		for k, ln := range chains[c*perComponent:][:perComponent] {
			if k < starts {
				nearOld += math.Exp(ln - top)
			} else {
				nearAdded[c] += math.Exp(ln - top)
			}
		}
		difference[c] = math.Exp(without[c]-top) - nearOld // what the old chains count near the added starts
		total += math.Exp(with[c]-top) / float64(len(with))
	}
	added, old := plainMoments(nearAdded), plainMoments(difference)
	more := added.mean - old.mean
	return more > modesLeast*total && more > modesDeviations*math.Hypot(added.standardError, old.standardError)
}

// plainMoments returns the mean of numbers and its standard error.
func plainMoments(x []float64) (m moments) {
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
