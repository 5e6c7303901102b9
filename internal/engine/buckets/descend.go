package buckets

// The way down: values of the indices, from the last step to the first.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/base/ranked"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// weightsOf returns the weight of every combination of values of the indices that step k drops, given the values of the indices that it
// keeps: the product of its inputs. If log is true, the weights are logarithms. The list is valid until the next call.
func (r *Run) weightsOf(k int, values []int) (weights []float64, log bool) {
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
	for _, input := range s.In {
		t := &r.tables[input]

		base, stride := 0, 1 // base is the position of the kept values in t
		for n := len(t.scope) - 1; n >= 0; n-- {
			i := t.scope[n]
			r.stride[i] = stride
			stride *= r.dims[i]
		}
		for _, i := range s.Out {
			base += r.stride[i] * values[i]
		}
		r.multiplyInto(t.data[base:], s.Drop, weights, log)
		for _, i := range t.scope {
			r.stride[i] = 0
		}
	}
	return weights, log
}

// multiplyInto multiplies the weight of every combination of values of the dropped indices by the entry of data at these values, or adds it
// if they are logarithms. r.stride has the strides of the indices in data.
func (r *Run) multiplyInto(data []float64, drop []int, weights []float64, log bool) {
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

// setDropped sets the values of the indices that step k drops to their combination d, the last index fastest.
func (r *Run) setDropped(k, d int, values []int) {
	drop := r.steps[k].Drop
	for n := len(drop) - 1; n >= 0; n-- {
		values[drop[n]] = d % r.dims[drop[n]]
		d /= r.dims[drop[n]]
	}
}

// Draw sets values, one per index, to a state drawn with the probability of its term. All steps have to be sums, and
// their total must not be 0.
func (r *Run) Draw(rng *rand.Rand, values []int) {
	for _, i := range r.loose {
		values[i] = rng.IntN(r.dims[i])
	}
	for k := len(r.steps) - 1; k >= 0; k-- {
		s := &r.steps[k]
		if len(s.Drop) == 0 {
			continue
		}
		sums, ok := r.cumulated[k]
		if !ok {
			weights, log := r.weightsOf(k, values)
			cumulate(weights, log)
			if sums = weights; len(s.Out) == 0 {
				sums = append([]float64(nil), weights...)
				r.cumulated[k] = sums
			}
		}
		r.setDropped(k, pick(sums, rng.Float64()), values)
	}
}

// cumulate replaces each weight by the sum of the weights up to it. Logarithms are turned into weights first, up to a common factor.
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

// pick returns the first position whose cumulated weight is above the share u of the total.
func pick(sums []float64, u float64) int {
	last := len(sums) - 1
	d := sort.Search(last, func(d int) bool { return sums[d] > u*sums[last] })
	for d > 0 && sums[d] == sums[d-1] { // rounding must not pick a value without weight
		d--
	}
	return d
}

// Near lists the terms whose logarithm is at most slack below the largest, each as a value per index. isAll is false if there are more than
// limit of them; then it lists the first limit that it comes to. It searches depth first, from the last step to the first. In a step that
// is a sum it takes the heaviest values only. The largest term must not be 0.
func (r *Run) Near(ctx context.Context, slack float64, limit int) (list [][]int, isAll bool, err error) {
	// fork is a step, or a loose index, with several choices within the slack.
	type fork struct {
		at    int       // the step; −1, −2, … for loose indices
		near  []int     // the choices
		short []float64 // by choice: ln of the largest term less ln of the best term with it and with the choices before
		next  int       // the next choice to try
	}
	values := make([]int, len(r.dims))
	var forks []fork
	lost := 0.0 // what the choices so far have cost, in nats
	k := len(r.steps) - 1
	floor := -1 - len(r.loose)
	turns := 0

	for {
		for ; k > floor; k-- {
			if turns++; turns&1023 == 0 && ctx.Err() != nil {
				return nil, false, ctx.Err()
			}
			near, short := r.nearHeaviest(k, slack-lost, values)
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

		if len(list) == limit {
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

// choose sets the values that step k drops to choice d or, for k < 0, the value of loose index −1−k.
func (r *Run) choose(k, d int, values []int) {
	if k < 0 {
		values[r.loose[-1-k]] = d
		return
	}
	r.setDropped(k, d, values)
}

// nearHeaviest lists the combinations of values that step k drops whose logarithmic weight is at most slack below the heaviest, and how far
// each is below it (short). The heaviest is always among them. If the step is a sum, it is the only one. The lists are empty for a step
// that drops nothing. For k < 0 they have all values of loose index −1−k.
func (r *Run) nearHeaviest(k int, slack float64, values []int) (near []int, short []float64) {
	if k < 0 {
		for d := range r.dims[r.loose[-1-k]] {
			near, short = append(near, d), append(short, 0)
		}
		return near, short
	}
	if len(r.steps[k].Drop) == 0 {
		return nil, nil
	}

	weights, log := r.weightsOf(k, values)
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
		return nil, nil // cannot happen: maxima are taken of logarithms only
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

// Largest lists terms, the largest first, each as a value per index: count of them, and up to more further terms whose logarithm is at most
// slack below the last of these. isAll is true if all other terms are 0. All steps have to be maxima, and the largest term must not be
// 0. Cost as of ranked.List.
func (r *Run) Largest(ctx context.Context, count int, slack float64, more int) (list [][]int, isAll bool, err error) {
	w := &maxima{run: r, values: make([]int, len(r.dims))}
	for k := len(r.steps) - 1; k >= 0; k-- {
		if len(r.steps[k].Drop) > 0 {
			w.at = append(w.at, k)
		}
	}
	for k := range r.loose {
		w.at = append(w.at, -1-k)
	}
	isAll, err = ranked.List(ctx, len(w.at), w, count+more, func(lost float64) float64 {
		if list = append(list, slices.Clone(w.values)); len(list) < count {
			return math.Inf(1)
		}
		return lost + slack
	})
	return list, isAll, err
}

// maxima are the choices of Largest, as ranked.Choices. Each level is a step or a loose index.
type maxima struct {
	run    *Run
	at     []int // by level: the step, in the sequence of the way down; then −1, −2, … for the loose indices
	values []int // by index
}

// Choose implements ranked.Choices: it sets the values of a level to an option.
func (w *maxima) Choose(level, option int) { w.run.choose(w.at[level], option, w.values) }

// Costs implements ranked.Choices: by option of a level, how much its logarithm is below that of the best option.
func (w *maxima) Costs(level int) []float64 {
	k := w.at[level]
	if k < 0 {
		return make([]float64, w.run.dims[w.run.loose[-1-k]])
	}
	weights, _ := w.run.weightsOf(k, w.values)
	top := slices.Max(weights)
	for d, x := range weights {
		weights[d] = top - x
	}
	return weights
}
