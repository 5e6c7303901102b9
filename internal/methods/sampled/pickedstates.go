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

// piece is the state that one part has drawn of its components in a bundle.
type piece struct {
	bundle int64
	ln     float64 // of the weight of those components
	values []int   // of the variables
}

// Samples implements judge.Judge. It returns one state for each bundle, drawn by weight if several parts have a piece of the bundle.
// Weights add up to 1. A bundle without a weight, or whose parts have not arrived, has no sample; then Warning states how many there are.
func (j *sampleJudge) Samples(e *judge.Estimate, n int, seed uint64) (samples judge.Samples) {
	pieces, trouble := piecesOf(e, int64(n))
	if trouble != "" {
		return judge.Samples{Warning: "there are no samples: " + trouble}
	}
	top := math.Inf(-1)
	for begin := 0; begin < len(pieces); {
		bundle, end := pieces[begin].bundle, begin
		for end < len(pieces) && pieces[end].bundle == bundle {
			end++
		}
		state := drawPiece(pieces[begin:end], rand.New(rand.NewPCG(seed, math.MaxUint64-uint64(bundle))))
		samples.Values = append(samples.Values, state.values)
		samples.Weights = append(samples.Weights, state.ln)
		top = max(top, state.ln)
		begin = end
	}

	total := 0.0
	for k, ln := range samples.Weights {
		samples.Weights[k] = math.Exp(ln - top)
		total += samples.Weights[k]
	}
	for k := range samples.Weights {
		samples.Weights[k] /= total
	}
	if count := len(samples.Values); count < n {
		samples.Warning = fmt.Sprintf("%d of %d samples: there are no more with a weight", count, n)
	}
	return samples
}

// piecesOf returns the states that the parts of an estimate have drawn, bundle after bundle, without those of weight 0. If there is none,
// or the parts contradict each other, trouble is the reason.
func piecesOf(e *judge.Estimate, samples int64) (pieces []piece, trouble string) {
	width := -1
	for _, v := range e.Parts {
		if v.Weights == nil || v.Weights.Picked == nil {
			continue
		}
		picked := v.Weights.Picked
		partWidth := len(picked.Values) / max(1, len(picked.Ln))
		if width < 0 {
			width = partWidth
		}
		if len(picked.Ln) == 0 || len(picked.Values) != width*len(picked.Ln) ||
			picked.First < 0 || picked.First > samples-int64(len(picked.Ln)) {
			return nil, "components contradict each other"
		}
		for k, ln := range picked.Ln {
			if !math.IsInf(ln, -1) {
				pieces = append(pieces, piece{picked.First + int64(k), ln, picked.Values[k*width:][:width]})
			}
		}
	}
	if len(pieces) == 0 {
		return nil, "no state has a weight"
	}
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.bundle, b.bundle) })
	return pieces, ""
}

// drawPiece draws one of the pieces of a bundle by weight. Its weight is then the sum of the weights of all.
func drawPiece(pieces []piece, r *rand.Rand) piece {
	top := math.Inf(-1)
	for _, p := range pieces {
		top = max(top, p.ln)
	}
	total := 0.0
	for _, p := range pieces {
		total += math.Exp(p.ln - top)
	}
	u := r.Float64() * total
	drawn := pieces[len(pieces)-1]
	for _, p := range pieces {
		weight := math.Exp(p.ln - top)
		if u < weight {
			drawn = p
			break
		}
		u -= weight
	}
	drawn.ln = top + math.Log(total)
	return drawn
}
