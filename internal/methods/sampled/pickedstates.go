package sampled

// Weighted samples: one state for each bundle of components.

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/judge"
)

// partState is the state that one part has drawn from its components in a bundle. A bundle may lie in several parts.
type partState struct {
	bundle   int64
	lnWeight float64 // ln of the sum of the weights of those components
	values   []int   // of the variables
}

// Samples implements judge.Judge. It returns up to n states with weights that add up to 1: one for each bundle of components. If a bundle
// lies in several parts, each has drawn a state, and one of these is drawn by weight. A bundle has no state if all its components weigh 0
// or its parts have not arrived. Warning states how many states there are if they are fewer than n.
func (j *sampleJudge) Samples(e *judge.Estimate, n int, seed uint64) (samples judge.Samples) {
	states, trouble := collectStates(e, int64(n))
	if trouble != "" {
		return judge.Samples{Warning: "there are no samples: " + trouble}
	}

	// Draw one state for each bundle: those of a bundle are states[begin:end].
	top := math.Inf(-1)
	for begin := 0; begin < len(states); {
		bundle, end := states[begin].bundle, begin
		for end < len(states) && states[end].bundle == bundle {
			end++
		}
		// The numbers of these streams count down from the highest one. So they differ from those of the streams that the parts have used.
		state := drawState(states[begin:end], rand.New(rand.NewPCG(seed, math.MaxUint64-uint64(bundle))))
		samples.Values = append(samples.Values, state.values)
		samples.Weights = append(samples.Weights, state.lnWeight) // logarithms for now
		top = max(top, state.lnWeight)
		begin = end
	}

	normaliseLogs(samples.Weights, top)
	if count := len(samples.Values); count < n {
		samples.Warning = fmt.Sprintf("%d of %d samples: there are no more with a weight", count, n)
	}
	return samples
}

// normaliseLogs turns logarithms of weights, of which top is the largest, into weights that add up to 1.
func normaliseLogs(weights []float64, top float64) {
	total := 0.0
	for k, ln := range weights {
		weights[k] = math.Exp(ln - top)
		total += weights[k]
	}
	for k := range weights {
		weights[k] /= total
	}
}

// collectStates returns the states of positive weight that the parts of an estimate have drawn, sorted by bundle. The components are
// divided into as many bundles as samples, and a part has drawn one state from each of its bundles. If there is no state, or the parts
// contradict each other, trouble is the reason.
func collectStates(e *judge.Estimate, samples int64) (states []partState, trouble string) {
	variables := -1 // number of values of a state, −1 before the first
	for _, part := range e.Parts {
		if part.Weights == nil || part.Weights.Picked == nil {
			continue
		}
		picked := part.Weights.Picked // one state after the other, for the bundles from First on
		if variables < 0 {            // the first part decides, and the others have to agree
			variables = len(picked.Values) / max(1, len(picked.Ln))
		}
		hasStates := len(picked.Ln) > 0 && len(picked.Values) == variables*len(picked.Ln)
		isInRange := picked.First >= 0 && picked.First <= samples-int64(len(picked.Ln))
		if !hasStates || !isInRange {
			return nil, "components contradict each other"
		}
		for k, ln := range picked.Ln {
			if !math.IsInf(ln, -1) {
				states = append(states, partState{picked.First + int64(k), ln, picked.Values[k*variables:][:variables]})
			}
		}
	}
	if len(states) == 0 {
		return nil, "no state has a weight"
	}
	slices.SortStableFunc(states, func(a, b partState) int { return cmp.Compare(a.bundle, b.bundle) })
	return states, ""
}

// drawState draws one of the states of a bundle by weight, and gives it the sum of all their weights.
func drawState(states []partState, r *rand.Rand) partState {
	top := math.Inf(-1)
	for _, state := range states {
		top = max(top, state.lnWeight)
	}
	total := 0.0
	for _, state := range states {
		total += math.Exp(state.lnWeight - top)
	}
	remaining := r.Float64() * total
	chosen := states[len(states)-1] // if rounding leaves a remainder behind the last weight
	for _, state := range states {
		weight := math.Exp(state.lnWeight - top)
		if remaining < weight {
			chosen = state
			break
		}
		remaining -= weight
	}
	chosen.lnWeight = top + math.Log(total)
	return chosen
}
