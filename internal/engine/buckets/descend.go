package buckets

// Descend: values of the indices, from the last step to the first.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/base/ranked"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// stepWeights returns the product of the inputs of step k for every combination of values of the indices that the step drops. The indices
// that it keeps have their values in the list values. Combination d has the last dropped index fastest (setDropped). If isLog is true, the
// products are logarithms. The list is valid until the next call.
func (r *Run) stepWeights(k int, values []int) (weights []float64, isLog bool) {
	s := &r.steps[k]
	size := sumproduct.Size(r.dims, s.Drop)
	if cap(r.weights) < size {
		r.weights = make([]float64, size)
	}
	weights = r.weights[:size]

	isLog = r.tables[s.In[0]].isLog // as all inputs: a step that uses logarithms has turned all of them into logarithms
	for d := range weights {
		weights[d] = 1
		if isLog {
			weights[d] = 0
		}
	}
	for _, input := range s.In {
		t := &r.tables[input]

		base, stride := 0, 1 // base is the position in t at which the kept indices have their values and all others 0
		for n := len(t.scope) - 1; n >= 0; n-- {
			i := t.scope[n]
			r.stride[i] = stride
			stride *= r.dims[i]
		}
		for _, i := range s.Out {
			base += r.stride[i] * values[i]
		}
		r.multiplyInto(t.data[base:], s.Drop, weights, isLog)
		for _, i := range t.scope {
			r.stride[i] = 0
		}
	}
	return weights, isLog
}

// multiplyInto multiplies the weight of every combination of values of the dropped indices by the entry of data at these values. If isLog
// is set, both are logarithms, which it adds. r.stride has the strides of the indices in data, 0 for those that it does not have.
func (r *Run) multiplyInto(data []float64, drop []int, weights []float64, isLog bool) {
	if len(drop) == 1 {
		stride := r.stride[drop[0]]
		for d := range weights {
			if isLog {
				weights[d] += data[d*stride]
			} else {
				weights[d] *= data[d*stride]
			}
		}
		return
	}

	// Count through the combinations like an odometer, with the last index fastest.
	x := make([]int, len(drop)) // the values of the dropped indices
	position := 0               // of x in data
	for d := range weights {
		if isLog {
			weights[d] += data[position]
		} else {
			weights[d] *= data[position]
		}
		for n := len(drop) - 1; n >= 0; n-- {
			i := drop[n]
			position += r.stride[i]
			if x[n]++; x[n] < r.dims[i] {
				break
			}
			position -= x[n] * r.stride[i] // carry: back to value 0, and on to the next slower index
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

// Draw sets values, one for each index, to a state drawn with the probability of its term. A step drops some indices: it sums over them.
// Draw draws the dropped indices of each step, from the last step to the first, given the values that are drawn already. Free indices,
// which are in no table, get any value. All steps have to be sums, and their total must not be 0.
func (r *Run) Draw(rng *rand.Rand, values []int) {
	for _, i := range r.free {
		values[i] = rng.IntN(r.dims[i])
	}
	for k := len(r.steps) - 1; k >= 0; k-- {
		s := &r.steps[k]
		if len(s.Drop) == 0 {
			continue
		}
		sums, isKnown := r.cumulated[k]
		if !isKnown {
			weights, isLog := r.stepWeights(k, values)
			cumulate(weights, isLog)
			sums = weights
			if len(s.Out) == 0 { // the weights do not depend on drawn values, so they are kept for further draws
				sums = append([]float64(nil), weights...)
				r.cumulated[k] = sums
			}
		}
		r.setDropped(k, pick(sums, rng.Float64()), values)
	}
}

// cumulate replaces each weight by the sum of the weights up to it. If isLog is set, the weights are logarithms, which it first turns into
// numbers, relative to the largest.
func cumulate(weights []float64, isLog bool) {
	if isLog {
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

// pick returns the first position whose cumulated weight is above u times the total, for u in [0, 1). sums has the cumulated weights; a
// position without weight of its own is not picked.
func pick(sums []float64, u float64) int {
	last := len(sums) - 1
	d := sort.Search(last, func(d int) bool { return sums[d] > u*sums[last] })
	for d > 0 && sums[d] == sums[d-1] { // rounding must not pick a value without weight
		d--
	}
	return d
}

// fork is a level of the search of Near at which several choices are within the slack. Level k ≥ 0 is step k, whose choices are the
// combinations of values that it drops; level −1−n is the free index n, whose choices are its values.
type fork struct {
	level   int
	choices []int
	losses  []float64 // by choice: ln of the largest term less ln of the best term with this choice and those before
	next    int       // position of the next choice to try
}

// Near lists the terms whose logarithm is at most slack below the largest, each as a value for each index. isAll is false if there are more
// than limit of them; then it lists the first limit that it comes to. It searches depth first: through the steps from the last to the
// first, then through the free indices (fork). In a step that is a sum it takes the heaviest values only. The largest term must not be 0.
func (r *Run) Near(ctx context.Context, slack float64, limit int) (list [][]int, isAll bool, err error) {
	s := &nearSearch{run: r, slack: slack, values: make([]int, len(r.dims)), level: len(r.steps) - 1}
	for {
		if err := s.goDown(ctx); err != nil {
			return nil, false, err
		}
		if len(list) == limit {
			return list, false, nil
		}
		list = append(list, slices.Clone(s.values))
		if hasMore := s.goBack(); !hasMore {
			return list, true, nil
		}
	}
}

// nearSearch is the state of one search of Near.
type nearSearch struct {
	run    *Run
	slack  float64 // the largest loss of a term
	values []int   // by index: its value by the choices so far
	level  int     // the next level, as of fork
	loss   float64 // how far the choices so far bring the term below the largest, in nats
	forks  []fork  // on the way to the present term
	visits int     // levels visited so far
}

// goDown goes down to a term by the first choice of every level. Level k ≥ 0 is step k, whose choices are the values of the indices that it
// drops; the levels −1, −2, … are the free indices, which are in no table. goDown adds a fork for each level with several choices. The only
// error is the context's, which is looked at once in 1024 levels.
func (s *nearSearch) goDown(ctx context.Context) error {
	lowestLevel := -len(s.run.free)
	for ; s.level >= lowestLevel; s.level-- {
		if s.visits++; s.visits&1023 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		choices, losses := s.run.nearHeaviest(s.level, s.slack-s.loss, s.values)
		if len(choices) == 0 { // the step drops nothing
			continue
		}
		if len(choices) > 1 {
			f := fork{level: s.level, choices: choices, next: 1}
			for _, l := range losses {
				f.losses = append(f.losses, s.loss+l)
			}
			s.forks = append(s.forks, f)
		}
		s.run.choose(s.level, choices[0], s.values)
		s.loss += losses[0]
	}
	return nil
}

// goBack goes back to the last fork with a choice that is not tried yet, and makes that choice. It returns false if there is none.
func (s *nearSearch) goBack() (hasMore bool) {
	for len(s.forks) > 0 && s.forks[len(s.forks)-1].next == len(s.forks[len(s.forks)-1].choices) {
		s.forks = s.forks[:len(s.forks)-1]
	}
	if len(s.forks) == 0 {
		return false
	}
	f := &s.forks[len(s.forks)-1]
	s.run.choose(f.level, f.choices[f.next], s.values)
	s.loss = f.losses[f.next]
	f.next++
	s.level = f.level - 1
	return true
}

// choose sets the values that step level drops to their combination d. For a level below 0 it sets free index −1−level to the value d.
func (r *Run) choose(level, d int, values []int) {
	if level < 0 {
		values[r.free[-1-level]] = d
		return
	}
	r.setDropped(level, d, values)
}

// nearHeaviest lists combinations of values of the indices that step k drops: those whose logarithmic weight is at most slack below that of
// the heaviest one. losses has how far each is below it. values has the values of the indices that the step keeps.
//
// The heaviest is always listed. If the step is a sum, it is the only one. The lists are empty if the step drops nothing. For k < 0 they
// have all values of free index −1−k, with losses of 0.
func (r *Run) nearHeaviest(k int, slack float64, values []int) (choices []int, losses []float64) {
	if k < 0 {
		for d := range r.dims[r.free[-1-k]] {
			choices, losses = append(choices, d), append(losses, 0)
		}
		return choices, losses
	}
	if len(r.steps[k].Drop) == 0 {
		return nil, nil
	}

	weights, isLog := r.stepWeights(k, values)
	if !r.steps[k].Max {
		best := 0
		for d, w := range weights {
			if w > weights[best] {
				best = d
			}
		}
		return []int{best}, []float64{0}
	}
	if !isLog {
		return nil, nil // cannot happen: maxima are taken of logarithms only
	}
	top := math.Inf(-1)
	for _, w := range weights {
		top = max(top, w)
	}
	for d, w := range weights {
		if w == top || top-w <= slack { // top−top is not a number if top is −Inf
			choices, losses = append(choices, d), append(losses, top-w)
		}
	}
	return choices, losses
}

// Largest lists the terms by size, the largest first, each as a value for each index. It lists count terms, and then at most extra further
// ones, as long as their logarithm is at most slack below that of the last of the count. isAll is true if all other terms are 0.
//
// All steps have to be maxima, and the largest term must not be 0. Cost as of ranked.List.
func (r *Run) Largest(ctx context.Context, count int, slack float64, extra int) (list [][]int, isAll bool, err error) {
	c := &stepChoices{run: r, values: make([]int, len(r.dims))}
	for k := len(r.steps) - 1; k >= 0; k-- {
		if len(r.steps[k].Drop) > 0 {
			c.steps = append(c.steps, k)
		}
	}
	for n := range r.free {
		c.steps = append(c.steps, -1-n) // stands for free index n
	}
	// addTerm lists the current term, and returns the largest loss that the next one may have.
	addTerm := func(loss float64) (maxLoss float64) {
		if list = append(list, slices.Clone(c.values)); len(list) < count {
			return math.Inf(1)
		}
		return loss + slack
	}
	isAll, err = ranked.List(ctx, len(c.steps), c, count+extra, addTerm)
	return list, isAll, err
}

// stepChoices are the choices of Largest, as ranked.Choices: one level for each step that drops indices, and one for each free index.
type stepChoices struct {
	run    *Run
	steps  []int // by level: the number of its step, from the last step to the first; then −1−n for free index n
	values []int // by index: the values chosen
}

// Choose implements ranked.Choices: it sets the values of a level to an option.
func (c *stepChoices) Choose(level, option int) { c.run.choose(c.steps[level], option, c.values) }

// Costs implements ranked.Choices: by option of a level, how much its logarithm is below that of the best option.
func (c *stepChoices) Costs(level int) []float64 {
	k := c.steps[level]
	if k < 0 { // a free index, whose values are in no table and equally good
		return make([]float64, c.run.dims[c.run.free[-1-k]])
	}
	weights, _ := c.run.stepWeights(k, c.values) // logarithms, since all steps are maxima
	top := slices.Max(weights)
	for d, x := range weights {
		weights[d] = top - x
	}
	return weights
}
