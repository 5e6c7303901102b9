package sampled

// Modes that chains miss: whether further chains begin from them.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/pkg/query"
)

// modesShare is the largest part of a budget for the search for modes and a pilot of chains from them, modesChains the
// least number of chains from each start in that pilot. Chains begin from modes if they find more weight there than
// other chains do, by modesDeviations standard errors and by modesLeast of the total.
// Chosen.
const (
	modesShare      = 0.1
	modesChains     = 16
	modesDeviations = 2
	modesLeast      = 1e-3
)

// seek searches for modes and sets along.Modes, the number of starts beside the chains' own: the largest n such that chains
// from the first n find more weight near the starts they add than the chains chosen before (missed). variance is the
// variance of a component's log-weight over few rungs without them; seek returns it, or the variance with the added starts
// where that is larger. Nothing changes if the search and 3·modesChains chains of few rungs exceed modesShare
// of the budget.
func seek(
	ctx context.Context, m *annealing.Model, s query.Settings, along *Annealing, few int, variance float64,
) (float64, error) {
	work := modesShare*s.Budget - m.ModesFlops()
	p := along.Path()
	p.Rungs, p.Seed = few, ^s.Seed
	each := m.Flops(p.Step, few)
	if work < 3*modesChains*each {
		return variance, nil
	}
	n, err := m.Modes(ctx, p)
	if err != nil || n == 0 {
		return variance, err
	}
	p.Modes = min(n, int(work/(modesChains*each))-1)
	// Chains that are too short for the model miss weight that longer ones find.
	longest := m.Rungs(p.Step, work/(modesChains*p.Starts()))
	p.Rungs = int(max(float64(few), min(longest, float64(few)*variance/targetVariance)))
	each = m.Flops(p.Step, p.Rungs)
	chains := groups(min(work/(each*p.Starts()), pilotChains))
	const first = 4 * productChains // other chains than the pilot's
	w, err := m.Run(ctx, p, first, first+chains, 1, true)
	if err != nil || math.IsInf(w.Top, -1) {
		return variance, err
	}

	without, _ := w.Among(1)
	for n := 1; n <= p.Modes; n++ {
		with, chains := w.Among(1 + n)
		if missed(with, chains, without, 1+along.Modes) {
			along.Modes, without = n, with
			variance = max(variance, lnVariance(with))
		}
	}
	return variance, nil
}

// missed reports whether the added starts, all after the first ones, find weight near them that chains without them miss:
// more by modesDeviations standard errors, and by modesLeast of the total. with and without are log-weights
// of components with the added starts and without; chains are the log-weights of all chains of with.
func missed(with, chains, without []float64, starts int) bool {
	all := len(chains) / len(with)
	theirs, others, total := make([]float64, len(with)), make([]float64, len(with)), 0.0
	top := max(slices.Max(with), slices.Max(without))
	for c := range with {
		mine := 0.0
		for k, l := range chains[c*all:][:all] {
			if k < starts {
				mine += math.Exp(l - top)
			} else {
				theirs[c] += math.Exp(l - top)
			}
		}
		others[c] = math.Exp(without[c]-top) - mine
		total += math.Exp(with[c]-top) / float64(len(with))
	}
	there, here := meanOf(theirs), meanOf(others)
	more := there.mean - here.mean
	return more > modesLeast*total && more > modesDeviations*math.Hypot(there.deviation, here.deviation)
}

// meanOf returns the mean of numbers and its standard error.
func meanOf(x []float64) (m moments) {
	for _, y := range x {
		m.mean += y / float64(len(x))
	}
	for _, y := range x {
		m.deviation += (y - m.mean) * (y - m.mean)
	}
	n := float64(len(x))
	m.deviation = math.Sqrt(m.deviation / (n - 1) / n)
	return m
}
