package aggregate

// Weighted samples: the states of all bundles of sampled components.

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// piece is the state of what one part has of a bundle.
type piece struct {
	bundle int64
	ln     float64
	values []int
}

// reportStates fills in the samples that are wanted, with their weights: one of each bundle, drawn by weight where several parts have a
// share in it. Bundles without a weight, or that have not arrived, have no sample.
func (r *estimate) reportStates(to *Total, want *btn.Want) {
	if want.Samples == 0 {
		return
	}
	pieces, err := r.pieces(int64(want.Samples))
	if err != "" {
		to.Result.Warnings = append(to.Result.Warnings, "there are no samples: "+err)
		return
	}
	top := math.Inf(-1)
	for at := 0; at < len(pieces); {
		k := pieces[at].bundle
		end := at
		for end < len(pieces) && pieces[end].bundle == k {
			end++
		}
		one := chosen(pieces[at:end], rand.New(rand.NewPCG(want.Seed, math.MaxUint64-uint64(k))))
		to.Samples = append(to.Samples, one.values)
		to.Weights = append(to.Weights, one.ln)
		top = max(top, one.ln)
		at = end
	}

	total := 0.0
	for k, l := range to.Weights {
		to.Weights[k] = math.Exp(l - top)
		total += to.Weights[k]
	}
	squares := 0.0
	for k := range to.Weights {
		to.Weights[k] /= total
		squares += to.Weights[k] * to.Weights[k]
	}
	to.Effective = finite(1 / squares)
	if n := len(to.Samples); n < want.Samples {
		to.Result.Warnings = append(to.Result.Warnings, fmt.Sprintf("%d of %d samples: there are no more with a weight", n, want.Samples))
	}
}

// pieces lists what the parts have drawn, bundle by bundle, without what weighs nothing; or says why there is none.
func (r *estimate) pieces(samples int64) (all []piece, trouble string) {
	width := -1
	for _, v := range r.parts {
		if v.Weights == nil || v.Weights.Picked == nil {
			continue
		}
		x := v.Weights.Picked
		n := len(x.Values) / max(1, len(x.Ln))
		if width < 0 {
			width = n
		}
		if len(x.Ln) == 0 || len(x.Values) != width*len(x.Ln) || x.First < 0 || x.First > samples-int64(len(x.Ln)) {
			return nil, "components contradict each other"
		}
		for k, l := range x.Ln {
			if !math.IsInf(l, -1) {
				all = append(all, piece{x.First + int64(k), l, x.Values[k*width:][:width]})
			}
		}
	}
	if len(all) == 0 {
		return nil, "no state has a weight"
	}
	slices.SortStableFunc(all, func(a, b piece) int { return cmp.Compare(a.bundle, b.bundle) })
	return all, ""
}

// chosen draws one of the pieces of a bundle by weight; it weighs what they weigh together.
func chosen(of []piece, r *rand.Rand) piece {
	top := math.Inf(-1)
	for _, p := range of {
		top = max(top, p.ln)
	}
	total := 0.0
	for _, p := range of {
		total += math.Exp(p.ln - top)
	}
	u := r.Float64() * total
	one := of[len(of)-1]
	for _, p := range of {
		x := math.Exp(p.ln - top)
		if u < x {
			one = p
			break
		}
		u -= x
	}
	one.ln = top + math.Log(total)
	return one
}

// sampleDoubt is how far a probability may be off that weighted samples give: two standard errors of a half by as many as count, and the
// share of Z by which it may be off, as all of that may have one value. 0 without weighted samples.
func sampleDoubt(t *Total) float64 {
	if len(t.Weights) == 0 || t.Effective == nil {
		return 0
	}
	off := 1 / math.Sqrt(*t.Effective)
	if t.Result.Uncertainty == nil {
		return 1
	}
	return min(1, max(off, -math.Expm1(-*t.Result.Uncertainty)))
}
