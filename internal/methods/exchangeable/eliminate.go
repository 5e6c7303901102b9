package exchangeable

// Sums class by class: if few classes interact with each other, as layers do, one class after the other is summed out, and the combinations
// of all count vectors are never listed.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// maxListed bounds the vectors of one class that is summed out.
const maxListed = 1 << 16

// elimination is a sequence in which the classes are summed out.
type elimination struct {
	order      []int
	neighbours [][]int // by position in the order: the classes that interact with it when it is summed out, increasing
	size       float64 // entries of all tables together
	largest    float64 // entries of the largest table
}

// chooseElimination chooses the sequence in which classes are summed out: always the class with the smallest table next. Its table has an
// entry for each combination of count vectors of the class and its neighbours, the classes that interact with it then. sizes are the
// numbers of count vectors of the classes. together lists sets of classes that have to be in one table. Cost O(classes³).
func chooseElimination(k *kinds, sizes []float64, together [][]int) *elimination {
	graph := newClassGraph(k, len(sizes), together)
	e := &elimination{}
	for range sizes {
		chosen, smallestSize := -1, math.Inf(1)
		for c := range sizes {
			if graph.isSummedOut[c] {
				continue
			}
			if size := graph.tableSize(c, sizes); size < smallestSize || chosen < 0 { // sizes may be infinite
				chosen, smallestSize = c, size
			}
		}
		e.order, e.neighbours = append(e.order, chosen), append(e.neighbours, graph.sumOut(chosen))
		e.size += smallestSize
		e.largest = max(e.largest, smallestSize)
	}
	return e
}

// classGraph says which classes are neighbours: those that are in one table when one of them is summed out.
type classGraph struct {
	adjacent    [][]bool // by two different classes
	isSummedOut []bool   // by class
}

// newClassGraph returns the graph of n classes, none of which is summed out. Two classes are neighbours if they are in one term of k, or in
// one of the sets together.
func newClassGraph(k *kinds, n int, together [][]int) *classGraph {
	g := &classGraph{make([][]bool, n), make([]bool, n)}
	for c := range g.adjacent {
		g.adjacent[c] = make([]bool, n)
	}
	for _, t := range slices.Concat(k.terms, k.forbidden) {
		var classes []int
		for _, m := range t.members {
			classes = append(classes, m.class)
		}
		g.join(classes)
	}
	for _, classes := range together {
		g.join(classes)
	}
	return g
}

// join makes all classes of a list neighbours of each other.
func (g *classGraph) join(classes []int) {
	for _, c := range classes {
		for _, d := range classes {
			if c != d {
				g.adjacent[c][d] = true
			}
		}
	}
}

// tableSize returns the number of entries of the table of class c: the combinations of its count vectors and those of its neighbours that
// are not summed out. sizes are the numbers of count vectors of the classes.
func (g *classGraph) tableSize(c int, sizes []float64) float64 {
	size := sizes[c]
	for d, isNeighbour := range g.adjacent[c] {
		if isNeighbour && !g.isSummedOut[d] {
			size *= sizes[d]
		}
	}
	return size
}

// sumOut marks a class as summed out. Its neighbours become neighbours of each other, since the sum depends on all of them. It returns
// them, ascending.
func (g *classGraph) sumOut(c int) (neighbours []int) {
	for d, isNeighbour := range g.adjacent[c] {
		if isNeighbour && !g.isSummedOut[d] {
			neighbours = append(neighbours, d)
		}
	}
	g.join(neighbours)
	g.isSummedOut[c] = true
	return neighbours
}

// eliminated is a form whose classes are summed out one after the other.
type eliminated struct {
	*form
	*elimination
	lists     []*list
	tables    []classTable // by position in the order
	ln        logarithm    // ln Z
	roundings float64      // of a term
}

// classTable is the distribution of a class given each vector of its neighbours. In the tables of jointTables it is the joint distribution
// of all of them.
type classTable struct {
	outer         side      // the neighbours
	probabilities []float64 // by vector of outer and count vector of the class
}

// message is the sum over the count vectors of a class that was summed out, as a function of its neighbours.
type message struct {
	outer side        // the neighbours
	ln    []logarithm // by vector of outer
}

// sumOutAll sums out all classes one after the other and sets ln Z. A class is summed out by a sum over its count vectors, for each
// combination of count vectors of its neighbours. The sum as a function of the neighbours is a message to them. Neighbours are the classes
// that are in a term or a message together with the class. Forbidden terms make counts impossible. Cost O(size of the tables).
func (e *eliminated) sumOutAll(ctx context.Context, threads int) error {
	remaining := &kinds{terms: e.kinds.terms, forbidden: e.kinds.forbidden}
	var messages []message
	e.ln = e.fields.constant
	for k, class := range e.order {
		// Take the terms and the messages that the class is in.
		hasClass := func(t term) bool {
			return slices.ContainsFunc(t.members, func(m member) bool { return m.class == class })
		}
		taken := &kinds{}
		taken.terms, remaining.terms = splitBy(remaining.terms, hasClass)
		taken.forbidden, remaining.forbidden = splitBy(remaining.forbidden, hasClass)
		t := &termSum{lists: e.lists, inner: sideOf([]int{class}, e.lists), outer: sideOf(e.neighbours[k], e.lists)}
		t.endOuter = t.outer.size
		var received []message
		received, messages = splitBy(messages, func(m message) bool { return slices.Contains(m.outer.classes, class) })

		// Sum it out: what it leaves is a message to its neighbours, or a factor of Z.
		sent, probabilities, err := e.sumOut(ctx, taken, t, received, threads)
		if err != nil {
			return err
		}
		e.tables = append(e.tables, classTable{t.outer, probabilities})
		e.roundings += e.lists[class].roundings + 8 + float64(len(received)) // one for each message; 8 for the exponential and the sum
		if len(e.neighbours[k]) == 0 {                                       // the message is one number
			e.ln = e.ln.plus(sent.ln[0])
		} else {
			messages = append(messages, sent)
		}
	}
	return nil
}

// splitBy divides a list into the elements for which has returns true, and the others.
func splitBy[T any](list []T, has func(T) bool) (matching, others []T) {
	for _, x := range list {
		if has(x) {
			matching = append(matching, x)
		} else {
			others = append(others, x)
		}
	}
	return matching, others
}

// sumOut sums over the count vectors of one class, the inner class of t. Its neighbours are the outer classes of t. A summand is the
// product of the vector's weight, of the terms in k and of the messages received, which are sums over the classes summed out before. The
// weights of the neighbours are left out (isBare): they enter when these are summed out. It returns the sum as a function of the
// neighbours' vectors, a message, and the conditional probabilities of the class's vectors, by combination of the neighbours' vectors.
func (e *eliminated) sumOut(ctx context.Context, k *kinds, t *termSum, received []message, threads int) (message, []float64, error) {
	sent := message{t.outer, make([]logarithm, t.outer.size)}
	const isMaximal = false // weights are sums over assignments
	sides, err := newSides(ctx, k, t, isMaximal)
	if err != nil {
		return sent, nil, err
	}
	sides.isBare = true
	size := t.inner.size
	probabilities := make([]float64, size*t.outer.size)
	err = t.eachOuter(ctx, sides, threads, func(w *outerWorker, o int) {
		row := w.row[:size]              // the terms of outer vector o, by vector of the class
		w.fillTerms(o, logarithm{}, row) // without a constant: ln 1
		for _, m := range received {
			w.addMessage(m, t.inner.classes[0], row)
		}
		sent.ln[o] = normaliseLn(row, probabilities[o*size:(o+1)*size])
	})
	return sent, probabilities, err
}

// normaliseLn returns ln Σ_i e^ln[i], and sets probabilities[i] to e^ln[i] over that sum. If the sum is 0, it leaves probabilities as they
// are.
func normaliseLn(ln []logarithm, probabilities []float64) (lnSum logarithm) {
	largest := impossible
	for _, x := range ln {
		if x.isAbove(largest) {
			largest = x
		}
	}
	if largest.isImpossible() {
		return impossible
	}
	sum := 0.0 // in units of the largest
	for i, x := range ln {
		if !x.isImpossible() {
			probabilities[i] = math.Exp(x.minus(largest).float())
			sum += probabilities[i]
		}
	}
	for i := range probabilities {
		probabilities[i] /= sum
	}
	return largest.plus(logarithmOf(sum))
}

// addMessage adds a message to the terms of the worker's outer vector, one for each count vector of class. The message is a function of the
// vectors of class and of outer classes.
func (w *outerWorker) addMessage(m message, class int, to []logarithm) {
	for i := range to {
		w.vectors[class] = i
		to[i] = to[i].plus(m.ln[m.outer.combinedVector(w.vectors)])
	}
}

// combinedVector returns the number of a side's vector, given the count vector of every class. It is the inverse of splitVector.
func (s *side) combinedVector(vectors []int) (vector int) {
	for k, c := range s.classes {
		vector = vector*s.sizes[k] + vectors[c]
	}
	return vector
}

// lnZ returns ln Z.
func (e *eliminated) lnZ() logarithm { return e.ln }

// relativeError implements evaluation. No term is below 0, so the sum has the relative roundings of a term, and those of the additions.
func (e *eliminated) relativeError() float64 {
	largestList := 1
	for _, l := range e.lists {
		largestList = max(largestList, l.size)
	}
	return math.Ldexp(e.roundings+float64(len(e.lists)*largestList), -53) // each is at most 2^−53
}

// jointTables returns the joint distribution of the count vectors of each class and its neighbours, by position in the order in which the
// classes were summed out. It begins with the class that was summed out last. The joint distribution of a class is that of its neighbours,
// a marginal of a later table, times the conditional distribution of the class.
func (e *eliminated) jointTables(ctx context.Context) ([]classTable, error) {
	joint := make([]classTable, len(e.tables))
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	for k := len(e.order) - 1; k >= 0; k-- {
		t := e.tables[k]
		neighbourProbabilities := []float64{1}
		if len(t.outer.classes) > 0 {
			var err error
			if neighbourProbabilities, err = e.marginalOf(ctx, joint, t.outer.classes); err != nil {
				return nil, err
			}
		}
		size := e.lists[e.order[k]].size
		joint[k] = classTable{t.outer, make([]float64, len(t.probabilities))}
		for o, p := range neighbourProbabilities {
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

// marginalOf returns the joint probabilities of the count vectors of some classes, the last class fastest. The classes have to be together
// in one of the tables joint, which are by position in the order of the elimination.
func (e *eliminated) marginalOf(ctx context.Context, joint []classTable, classes []int) ([]float64, error) {
	// The first of these classes to be summed out is number k of the order. Its table has all the others, its neighbours at that time.
	k := slices.IndexFunc(e.order, func(class int) bool { return slices.Contains(classes, class) })
	target := sideOf(classes, e.lists)
	marginal := make([]float64, target.size)
	vectors := make([]int, len(e.lists))
	size := e.lists[e.order[k]].size
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	for o := range joint[k].outer.size {
		if look.Over(int64(size)) {
			return nil, look.Err()
		}
		joint[k].outer.splitVector(o, vectors)
		for i, p := range joint[k].probabilities[o*size : (o+1)*size] {
			vectors[e.order[k]] = i
			marginal[target.combinedVector(vectors)] += p
		}
	}
	return marginal, nil
}

// marginals returns P(x) by variable and value, from the joint tables. Z is above 0.
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
	// marginalRows takes a jointOf that returns no error. So jointOf leaves its error in err and returns zeros, and then the rows are void.
	jointOf := func(classes []int) []float64 {
		p, jointErr := e.marginalOf(ctx, joint, classes)
		if jointErr != nil {
			err = jointErr
			p = make([]float64, e.lists[classes[0]].size*e.lists[classes[1]].size)
		}
		return p
	}
	rows, rowsErr := e.marginalRows(ctx, e.lists, distributions, jointOf)
	if err != nil {
		return nil, err
	}
	return rows, rowsErr
}

// drawVectors draws the count vector of every class, from the class that was summed out last to the first. Each vector is drawn with its
// probabilities given the vectors of the class's neighbours, which are drawn already. It sets vectors, by class.
func (e *eliminated) drawVectors(stream *rand.Rand, vectors []int) {
	for k := len(e.order) - 1; k >= 0; k-- {
		size := e.lists[e.order[k]].size
		o := e.tables[k].outer.combinedVector(vectors) // the neighbours' vectors as one number
		u, sum := stream.Float64(), 0.0
		for i, p := range e.tables[k].probabilities[o*size : (o+1)*size] {
			if p > 0 { // if roundings keep the sum below u, the last vector with a probability stays
				vectors[e.order[k]] = i
				if sum += p; sum > u {
					break
				}
			}
		}
	}
}

// classPairs lists the pairs of different classes that the two neighbours of some leaf have. The marginal of a leaf needs the joint
// distribution of its neighbours, so both classes have to be in one table of the elimination.
func (f *form) classPairs() (sets [][]int) {
	class := f.partition.classOf
	isListed := map[[2]int32]bool{}
	for _, l := range f.interactions.leafOf {
		if l != nil && len(l.neighbours) == 2 {
			a, b := class[l.neighbours[0]], class[l.neighbours[1]]
			if key := [2]int32{min(a, b), max(a, b)}; a != b && !isListed[key] {
				isListed[key] = true
				sets = append(sets, []int{int(key[0]), int(key[1])})
			}
		}
	}
	return sets
}
