package exchangeable

// Sums class by class: where few classes interact with each other, as layers do, one after the other is summed out, and the vectors of
// all together are never listed.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// maxListed bounds the vectors of one class that is summed out.
const maxListed = 1 << 16

// elimination is a sequence of the classes, each with those that it interacts with when it is summed out.
type elimination struct {
	order      []int
	neighbours [][]int // by place in the order, increasing
	size       float64 // of all tables together
	largest    float64
}

// eliminationOf chooses the sequence in which classes are summed out: the next one is always that with the smallest table. sizes are the
// numbers of vectors of the classes. together lists sets of classes that have to be in one table. Cost O(classes³).
func eliminationOf(k *kinds, sizes []float64, together [][]int) *elimination {
	n := len(sizes)
	adjacent := make([][]bool, n)
	for c := range adjacent {
		adjacent[c] = make([]bool, n)
	}
	join := func(classes []int) {
		for _, c := range classes {
			for _, d := range classes {
				adjacent[c][d] = c != d || adjacent[c][d]
			}
		}
	}
	for _, t := range slices.Concat(k.terms, k.forbidden) {
		var classes []int
		for _, m := range t.members {
			classes = append(classes, m.class)
		}
		join(classes)
	}
	for _, classes := range together {
		join(classes)
	}
	e := &elimination{}
	done := make([]bool, n)
	for range n {
		best, least := -1, math.Inf(1)
		for c := range n {
			if done[c] {
				continue
			}
			size := sizes[c]
			for d := range n {
				if adjacent[c][d] && !done[d] && d != c {
					size *= sizes[d]
				}
			}
			if size < least || best < 0 {
				best, least = c, size
			}
		}
		var neighbours []int
		for d := range n {
			if adjacent[best][d] && !done[d] && d != best {
				neighbours = append(neighbours, d)
			}
		}
		join(neighbours)
		done[best] = true
		e.order, e.neighbours = append(e.order, best), append(e.neighbours, neighbours)
		e.size += least
		e.largest = max(e.largest, least)
	}
	return e
}

// eliminated is a form whose classes are summed out one after the other.
type eliminated struct {
	*form
	*elimination
	lists     []*list
	tables    []classTable // by place in the order
	ln        logarithm
	roundings float64
}

// classTable is the distribution of a class given each vector of its neighbours. In the tables of jointTables it is their joint
// distribution.
type classTable struct {
	outer         side
	probabilities []float64
}

// message is what a class that was summed out leaves, by the vectors of its neighbours.
type message struct {
	outer side
	ln    []logarithm
}

// sumOutAll sums out all classes and sets ln Z. Cost O(size of the tables).
func (e *eliminated) sumOutAll(ctx context.Context, threads int) error {
	remaining := &kinds{terms: e.kinds.terms, forbidden: e.kinds.forbidden}
	var messages []message
	e.ln = e.fields.constant
	for k, class := range e.order {
		has := func(t term) bool {
			return slices.ContainsFunc(t.members, func(m member) bool { return m.class == class })
		}
		mine := &kinds{}
		mine.terms, remaining.terms = splitBy(remaining.terms, has)
		mine.forbidden, remaining.forbidden = splitBy(remaining.forbidden, has)
		t := &termSum{lists: e.lists, inner: sideOf([]int{class}, e.lists), outer: sideOf(e.neighbours[k], e.lists)}
		t.endOuter = t.outer.size
		var received []message
		received, messages = splitBy(messages, func(m message) bool { return slices.Contains(m.outer.classes, class) })
		sent, weights, err := e.sumOut(ctx, mine, t, received, threads)
		if err != nil {
			return err
		}
		e.tables = append(e.tables, classTable{t.outer, weights})
		e.roundings += e.lists[class].roundings + 8 + float64(len(received))
		if len(e.neighbours[k]) == 0 {
			e.ln = e.ln.plus(sent.ln[0])
		} else {
			messages = append(messages, sent)
		}
	}
	return nil
}

// splitBy divides a list into the elements that have a property and the others.
func splitBy[T any](list []T, has func(T) bool) (with, without []T) {
	for _, x := range list {
		if has(x) {
			with = append(with, x)
		} else {
			without = append(without, x)
		}
	}
	return with, without
}

// sumOut sums out the inner class of t: its terms k and the messages received. It returns the message to the class's neighbours, and, by
// vector of the neighbours, the conditional probabilities of the class's vectors.
func (e *eliminated) sumOut(ctx context.Context, k *kinds, t *termSum, received []message, threads int) (message, []float64, error) {
	sent := message{t.outer, make([]logarithm, t.outer.size)}
	r, err := newSides(ctx, k, t, false)
	if err != nil {
		return sent, nil, err
	}
	r.isBare = true
	size := t.inner.size
	weights := make([]float64, size*t.outer.size)
	err = t.eachOuter(ctx, r, threads, func(w *outerWorker, o int) {
		row := w.row[:size]
		w.fillTerms(o, logarithm{}, row)
		for _, m := range received {
			w.addMessage(m, t.inner.classes[0], row)
		}
		largest := impossible
		for _, x := range row {
			if x.isAbove(largest) {
				largest = x
			}
		}
		if largest.isImpossible() {
			sent.ln[o] = impossible
			return
		}
		sum := 0.0
		to := weights[o*size : (o+1)*size]
		for i, x := range row {
			if !x.isImpossible() {
				to[i] = math.Exp(x.minus(largest).float())
				sum += to[i]
			}
		}
		for i := range to {
			to[i] /= sum
		}
		sent.ln[o] = largest.plus(logarithmOf(sum))
	})
	return sent, weights, err
}

// addMessage adds a message to the terms of an outer vector, one for each vector of class. The worker has the outer vector.
func (w *outerWorker) addMessage(m message, class int, to []logarithm) {
	for i := range to {
		w.vectors[class] = i
		to[i] = to[i].plus(m.ln[m.outer.placeOf(w.vectors)])
	}
}

// placeOf returns the number of a side's vector, given the vector of every class. It is the inverse of vectors.
func (s *side) placeOf(vectors []int) (place int) {
	for k, c := range s.classes {
		place = place*s.sizes[k] + vectors[c]
	}
	return place
}

// lnZ returns ln Z.
func (e *eliminated) lnZ() logarithm { return e.ln }

// relativeError implements evaluation. No term is below 0, so that roundings of terms are those of the sum.
func (e *eliminated) relativeError() float64 {
	longest := 1
	for _, l := range e.lists {
		longest = max(longest, l.size)
	}
	return math.Ldexp(e.roundings+float64(len(e.lists)*longest), -53)
}

// jointTables turns the conditional tables into joint distributions of a class and its neighbours, the class that is summed out last first.
func (e *eliminated) jointTables(ctx context.Context) ([]classTable, error) {
	joint := make([]classTable, len(e.tables))
	look := pace.New(ctx)
	for k := len(e.order) - 1; k >= 0; k-- {
		t := e.tables[k]
		masses := []float64{1}
		if len(t.outer.classes) > 0 {
			var err error
			if masses, err = e.marginalOf(ctx, joint, t.outer.classes); err != nil {
				return nil, err
			}
		}
		size := e.lists[e.order[k]].size
		joint[k] = classTable{t.outer, make([]float64, len(t.probabilities))}
		for o, p := range masses {
			if look.Over(int64(size)) {
				return nil, look.Err()
			}
			for i, w := range t.probabilities[o*size : (o+1)*size] {
				joint[k].probabilities[o*size+i] = p * w
			}
		}
	}
	return joint, nil
}

// marginalOf returns the joint probabilities of some classes that are in one table, the last class fastest.
func (e *eliminated) marginalOf(ctx context.Context, joint []classTable, classes []int) ([]float64, error) {
	k := 0
	for ; ; k++ { // the first of them that is summed out has all others beside it
		if slices.Contains(classes, e.order[k]) {
			break
		}
	}
	to := sideOf(classes, e.lists)
	out := make([]float64, to.size)
	vectors := make([]int, len(e.lists))
	size := e.lists[e.order[k]].size
	look := pace.New(ctx)
	for o := range joint[k].outer.size {
		if look.Over(int64(size)) {
			return nil, look.Err()
		}
		joint[k].outer.vectors(o, vectors)
		for i, p := range joint[k].probabilities[o*size : (o+1)*size] {
			vectors[e.order[k]] = i
			out[to.placeOf(vectors)] += p
		}
	}
	return out, nil
}

// marginals returns P(x) by variable and value. Z is above 0.
func (e *eliminated) marginals(ctx context.Context) ([][]float64, error) {
	joint, err := e.jointTables(ctx)
	if err != nil {
		return nil, err
	}
	distributions := make([][]float64, len(e.lists))
	for c := range e.lists {
		if distributions[c], err = e.marginalOf(ctx, joint, []int{c}); err != nil {
			return nil, err
		}
	}
	jointOf := func(classes []int) []float64 {
		p, failed := e.marginalOf(ctx, joint, classes)
		if failed != nil {
			err = failed
			p = make([]float64, e.lists[classes[0]].size*e.lists[classes[1]].size)
		}
		return p
	}
	rows, failed := e.marginalRows(ctx, e.lists, distributions, jointOf)
	if err != nil {
		return nil, err
	}
	return rows, failed
}

// drawVectors draws the vector of every class, given those of the classes that are summed out after it.
func (e *eliminated) drawVectors(stream *rand.Rand, to []int) {
	for k := len(e.order) - 1; k >= 0; k-- {
		size := e.lists[e.order[k]].size
		o := e.tables[k].outer.placeOf(to)
		u, sum := stream.Float64(), 0.0
		for i, p := range e.tables[k].probabilities[o*size : (o+1)*size] {
			if p > 0 {
				to[e.order[k]] = i
				if sum += p; sum > u {
					break
				}
			}
		}
	}
}

// classPairs lists the pairs of classes that marginals of leaves need in one table.
func (f *form) classPairs() (sets [][]int) {
	class := f.partition.class
	seen := map[[2]int32]bool{}
	for _, l := range f.interactions.leafOf {
		if l != nil && len(l.neighbours) == 2 {
			a, b := class[l.neighbours[0]], class[l.neighbours[1]]
			if key := [2]int32{min(a, b), max(a, b)}; a != b && !seen[key] {
				seen[key] = true
				sets = append(sets, []int{int(key[0]), int(key[1])})
			}
		}
	}
	return sets
}
