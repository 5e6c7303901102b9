package structured

// Contraction of integer statistics: Z, marginals, joint marginals and draws by the histogram of their sums.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// counted is Contract for integer statistics. All terms are positive: the value is exact up to rounding and Fit.LnError, whatever the
// signs of the form.
func (p *Nodes) counted(ctx context.Context, j contraction.Contraction, memory int64, want btn.Want) (value btn.Value, err error) {
	weights, err := weightsOf(j.Net)
	if err != nil {
		return value, err
	}
	h, err := newHistogram(p.Of, weights, memory)
	if err != nil {
		return value, err
	}
	if h == nil {
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		if j.Joint != nil {
			value.Joint = j.JointOf(make([]scaled.Number, cellsOf(j)))
		}
		return value, nil
	}
	all, err := h.upTo(ctx, begin(), 0, len(h.choices))
	if err != nil {
		return value, err
	}
	tails := h.tails(all)
	z := total{}
	for x := range tails {
		z.add(all.at(x).times(tails[x]))
	}
	scale := j.Net.Scale.Mul(h.ln.Exp())
	value.Z = z.sum().number().Mul(scale)
	value.Flops = p.Of.Integers.flops(false)
	if p.Ask != "" {
		return h.drawn(j, all, tails, value, want)
	}
	value.Rounding = rounded(value.Z, h.roundings(), p.Of.LnError)
	if j.M != nil {
		if err := h.marginals(ctx, all, tails, j.M); err != nil {
			return value, err
		}
		if err := j.M.Finite(); err != nil {
			return value, err
		}
		value.Marginals = j.M.Result(scale)
		value.Flops = p.Of.Integers.flops(true)
	}
	if j.Joint == nil {
		return value, nil
	}
	cells := make([]scaled.Number, cellsOf(j))
	at := make([]int, len(j.Joint))
	clamped := slices.Clone(weights)
	for c := range cells {
		rest := c
		for k, v := range slices.Backward(j.Joint) {
			at[k] = rest % p.Of.Domains[v]
			rest /= p.Of.Domains[v]
			clamped[v] = make([]float64, p.Of.Domains[v])
			clamped[v][at[k]] = weights[v][at[k]]
		}
		own, err := newHistogram(p.Of, clamped, memory)
		if err != nil {
			return value, err
		}
		if own == nil {
			continue
		}
		if cells[c], err = own.total(ctx); err != nil {
			return value, err
		}
		cells[c] = cells[c].Mul(j.Net.Scale)
		value.Flops += p.Of.Integers.flops(false)
	}
	value.Joint = j.JointOf(cells)
	return value, nil
}

// cellsOf is the number of cells of a contraction's joint marginal.
func cellsOf(j contraction.Contraction) int {
	count := 1
	for _, v := range j.Joint {
		count *= j.Net.Variables[v].Domain
	}
	return count
}

// rounded bounds the error of a positive value by so many roundings and an error of its logarithm.
func rounded(z scaled.Number, steps, ln float64) *scaled.Number {
	off := z.Abs().Mul(scaled.FromFloat(math.Expm1(ln + math.Ldexp(steps, -53))))
	return &off
}

// roundings bounds the roundings of a term of the sum: of each variable its weight, a product and the sum over its values; of the state its
// factor and the sums of blocks.
func (h *histogram) roundings() float64 {
	steps := 16 + 2*block + float64(mostStates)/block
	if s := h.fit.Integers.States; s < mostStates {
		steps = 16 + min(s, block+s/block)
	}
	for _, c := range h.choices {
		steps += 6 + float64(len(c))
	}
	return steps
}

// total is the sum over all states.
func (h *histogram) total(ctx context.Context) (scaled.Number, error) {
	all, err := h.upTo(ctx, begin(), 0, len(h.choices))
	if err != nil {
		return scaled.Number{}, err
	}
	z := total{}
	for x, t := range h.tails(all) {
		z.add(all.at(x).times(t))
	}
	return z.sum().number().Mul(h.ln.Exp()), nil
}

// marginals fills in the marginals, in units of e^ln, on the way back: the tail of a state is Σ over what the variables after it may add.
func (h *histogram) marginals(ctx context.Context, all *states, tails []float, to *contraction.Collected) error {
	after := all.key // of the states that the tails are of
	return h.back(ctx, begin(), 0, len(h.choices), func(place int, before *states) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		own := make([]float, len(before.key))
		v := h.fit.Integers.Sequence[place]
		for _, c := range h.choices[place] {
			share, at := total{}, 0
			for x, key := range before.key {
				for after[at] < key+c.key {
					at++
				}
				tail := tails[at].times(c.w)
				own[x] = own[x].plus(tail)
				share.add(tail.times(before.at(x)))
			}
			to.At[to.Offset[v]+c.value] = share.sum().number()
		}
		after, tails = before.key, own
		return nil
	})
}

// drawn draws assignments: a sum by its share, then the variables on the way back.
func (h *histogram) drawn(j contraction.Contraction, all *states, tails []float, value btn.Value, want btn.Want) (btn.Value, error) {
	if j.Net.Scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"structured: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	if value.Z.IsZero() {
		return value, nil
	}
	n := len(h.choices)
	drawn := &btn.Drawn{Weight: value.Z, Values: make([]int, n*want.Samples)}
	streams := make([]*rand.Rand, want.Samples)
	keys := make([]int64, want.Samples)
	upTo := make([]float64, len(tails)) // cumulated shares
	sum := 0.0
	z := total{}
	for x := range tails {
		z.add(all.at(x).times(tails[x]))
	}
	unit := z.sum().number()
	for x := range tails {
		sum += all.at(x).times(tails[x]).number().Div(unit).Float64()
		upTo[x] = sum
	}
	for s := range keys {
		streams[s] = rand.New(rand.NewPCG(want.Seed, uint64(s)))
		x := sort.SearchFloat64s(upTo, streams[s].Float64()*sum)
		keys[s] = all.key[min(x, len(upTo)-1)]
	}
	err := h.back(j.Ctx, begin(), 0, n, func(place int, before *states) error {
		if err := j.Ctx.Err(); err != nil {
			return err
		}
		v := h.fit.Integers.Sequence[place]
		shares := make([]float, len(h.choices[place]))
		for s := range keys {
			most := int32(math.MinInt32)
			for k, c := range h.choices[place] {
				shares[k] = float{}
				if x, there := slices.BinarySearch(before.key, keys[s]-c.key); there {
					shares[k] = before.at(x).times(c.w)
					most = max(most, shares[k].exp)
				}
			}
			row := make([]plain, len(shares))
			for k, share := range shares {
				if by := int(share.exp) - int(most); share.mant > 0 && by > -2 {
					row[k] = plain(math.Ldexp(share.mant, by*unitBits))
				}
			}
			c := h.choices[place][pick(streams[s], row)]
			keys[s] -= c.key
			drawn.Values[s*n+v] = c.value
		}
		return nil
	})
	value.Drawn = drawn
	value.Z = scaled.Number{}
	value.Flops = h.fit.Integers.flops(true)
	return value, err
}
