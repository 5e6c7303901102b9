package buckets

// Down again: values of the indices, from the last step to the first.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/base/ranked"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// weigh writes the weights of the indices that step k drops, under values of the ones it keeps:
// logarithms where log is returned as true.
func (r *Run) weigh(k int, values []int) (weights []float64, log bool) {
	s := &r.steps[k]
	size := sumproduct.Size(r.dims, s.Drop)
	if cap(r.scratch) < size {
		r.scratch = make([]float64, size)
	}
	weights = r.scratch[:size]

	log = r.tables[s.In[0]].log
	for d := range weights {
		weights[d] = 1
		if log {
			weights[d] = 0
		}
	}
	for _, at := range s.In {
		t := &r.tables[at]

		// place of the entry, and the stride of the dropped indices
		base, step := 0, 1
		for n := len(t.scope) - 1; n >= 0; n-- {
			i := t.scope[n]
			r.stride[i] = step
			step *= r.dims[i]
		}
		for _, i := range s.Out {
			base += r.stride[i] * values[i]
		}
		r.spread(t.data[base:], s.Drop, weights, log)
		for _, i := range t.scope {
			r.stride[i] = 0
		}
	}
	return weights, log
}

// spread multiplies weights, over the values of some indices, by entries at the strides set.
func (r *Run) spread(data []float64, drop []int, weights []float64, log bool) {
	if len(drop) == 1 {
		stride := r.stride[drop[0]]
		for d := range weights {
			if log {
				weights[d] += data[d*stride]
			} else {
				weights[d] *= data[d*stride]
			}
		}
		return
	}

	x := make([]int, len(drop))
	at := 0
	for d := range weights {
		if log {
			weights[d] += data[at]
		} else {
			weights[d] *= data[at]
		}
		for n := len(drop) - 1; n >= 0; n-- {
			i := drop[n]
			at += r.stride[i]
			if x[n]++; x[n] < r.dims[i] {
				break
			}
			at -= x[n] * r.stride[i]
			x[n] = 0
		}
	}
}

// put sets the dropped indices of step k to combination d.
func (r *Run) put(k, d int, values []int) {
	drop := r.steps[k].Drop
	for n := len(drop) - 1; n >= 0; n-- {
		values[drop[n]] = d % r.dims[drop[n]]
		d /= r.dims[drop[n]]
	}
}

// Draw sets values, one per index, to a term drawn with its probability. All steps are sums, and
// their total is not 0.
func (r *Run) Draw(rng *rand.Rand, values []int) {
	for _, i := range r.loose {
		values[i] = rng.IntN(r.dims[i])
	}
	for k := len(r.steps) - 1; k >= 0; k-- {
		s := &r.steps[k]
		if len(s.Drop) == 0 {
			continue
		}
		sums, known := r.drops[k]
		if !known {
			weights, log := r.weigh(k, values)
			cumulate(weights, log)
			if sums = weights; len(s.Out) == 0 {
				sums = append([]float64(nil), weights...)
				r.drops[k] = sums
			}
		}
		r.put(k, pick(sums, rng.Float64()), values)
	}
}

// cumulate replaces weights by their sums up to each.
func cumulate(weights []float64, log bool) {
	if log {
		top := math.Inf(-1)
		for _, w := range weights {
			top = max(top, w)
		}
		for d, w := range weights {
			weights[d] = math.Exp(w - top)
		}
	}
	for d := 1; d < len(weights); d++ {
		weights[d] += weights[d-1]
	}
}

// pick returns the first whose cumulated weight is above u of the total.
func pick(sums []float64, u float64) int {
	last := len(sums) - 1
	at := sort.Search(last, func(d int) bool { return sums[d] > u*sums[last] })
	for at > 0 && sums[at] == sums[at-1] { // rounding must not pick a value without weight
		at--
	}
	return at
}

// Near lists terms, as a value per index, whose logarithm is at most slack below the largest: all
// of them, or the first most that the steps come to (all is false then). Steps that are sums are
// passed by, but for those that later ones need, where the heaviest value is taken. The largest
// term is not 0.
func (r *Run) Near(ctx context.Context, slack float64, most int) (list [][]int, all bool, err error) {
	// fork is a step, or a loose index, with several values within the slack.
	type fork struct {
		at    int // steps to go, then loose indices as −1, −2, …
		near  []int
		short []float64 // shortfall of each from the largest, earlier steps included
		next  int
	}
	values := make([]int, len(r.dims))
	var forks []fork
	lost := 0.0 // of the values chosen so far
	k := len(r.steps) - 1
	floor := -1 - len(r.loose)
	turns := 0

	for {
		for ; k > floor; k-- {
			if turns++; turns&1023 == 0 && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			near, short := r.nearest(k, slack-lost, values)
			if len(near) == 0 {
				continue
			}
			if len(near) > 1 {
				f := fork{at: k, near: append([]int(nil), near...)}
				for _, s := range short {
					f.short = append(f.short, lost+s)
				}
				f.next = 1
				forks = append(forks, f)
			}
			r.choose(k, near[0], values)
			lost += short[0]
		}

		if len(list) == most {
			return list, false, nil
		}
		list = append(list, append([]int(nil), values...))

		for len(forks) > 0 && forks[len(forks)-1].next == len(forks[len(forks)-1].near) {
			forks = forks[:len(forks)-1]
		}
		if len(forks) == 0 {
			return list, true, nil
		}
		f := &forks[len(forks)-1]
		r.choose(f.at, f.near[f.next], values)
		lost = f.short[f.next]
		f.next++
		k = f.at - 1
	}
}

// choose is put for steps and loose indices.
func (r *Run) choose(k, d int, values []int) {
	if k < 0 {
		values[r.loose[-1-k]] = d
		return
	}
	r.put(k, d, values)
}

// nearest lists the combinations of a step's dropped indices that are within slack of the heaviest
// one, and their shortfall; none for steps without a choice. The heaviest is among them at any
// slack; of a sum it is the only one.
func (r *Run) nearest(k int, slack float64, values []int) (near []int, short []float64) {
	if k < 0 {
		for d := range r.dims[r.loose[-1-k]] {
			near, short = append(near, d), append(short, 0)
		}
		return near, short
	}
	if len(r.steps[k].Drop) == 0 {
		return nil, nil
	}

	weights, log := r.weigh(k, values)
	if !r.steps[k].Max {
		best := 0
		for d, w := range weights {
			if w > weights[best] {
				best = d
			}
		}
		return []int{best}, []float64{0}
	}
	if !log {
		return nil, nil // no maximum is taken of numbers
	}
	top := math.Inf(-1)
	for _, w := range weights {
		top = max(top, w)
	}
	for d, w := range weights {
		if w == top || top-w <= slack {
			near, short = append(near, d), append(short, top-w)
		}
	}
	return near, short
}

// Largest lists terms, as a value per index, from the largest on: so many, and at most more further ones whose logarithm is within slack
// of the last one's. All says that no other is above 0. All steps are maxima, and the largest term is not 0. Cost as of ranked.List.
func (r *Run) Largest(ctx context.Context, count int, slack float64, more int) (list [][]int, all bool, err error) {
	w := &maxima{run: r, values: make([]int, len(r.dims))}
	for k := len(r.steps) - 1; k >= 0; k-- {
		if len(r.steps[k].Drop) > 0 {
			w.at = append(w.at, k)
		}
	}
	for k := range r.loose {
		w.at = append(w.at, -1-k)
	}
	all, err = ranked.List(ctx, len(w.at), w, count+more, func(lost float64) float64 {
		if list = append(list, slices.Clone(w.values)); len(list) < count {
			return math.Inf(1)
		}
		return lost + slack
	})
	return list, all, err
}

// maxima are the choices of Largest: of steps to go, then of loose indices as −1, −2, ….
type maxima struct {
	run    *Run
	at     []int
	values []int
}

// Choose implements ranked.Choices.
func (w *maxima) Choose(level, option int) { w.run.choose(w.at[level], option, w.values) }

// Costs implements ranked.Choices.
func (w *maxima) Costs(level int) []float64 {
	k := w.at[level]
	if k < 0 {
		return make([]float64, w.run.dims[w.run.loose[-1-k]])
	}
	weights, _ := w.run.weigh(k, w.values)
	top := slices.Max(weights)
	for d, x := range weights {
		weights[d] = top - x
	}
	return weights
}
