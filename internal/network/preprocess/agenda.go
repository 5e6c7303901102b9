package preprocess

// The agenda: what the rules have to look at again.

import "slices"

// agenda has a queue for each rule, of tables or of indices that have changed since it looked at them.
type agenda struct {
	zeros   queue // tables whose zeros have not been propagated
	merges  queue // tables that may be inside others, or make an index follow another
	splits  queue // tables that may be products
	filters queue // tables whose zeros have not been carried over to others
	indices queue // indices that may be summed out
	probes  queue // indices whose values have not been assumed
}

// addTable queues table n, which has new entries or a new scope, for all rules that look at tables. It queues the indices of its scope for
// all rules that look at indices.
func (a *agenda) addTable(n int, scope []int) {
	a.zeros.push(n)
	a.merges.push(n)
	a.filters.push(n)
	a.splits.push(n)
	for _, i := range scope {
		a.indices.push(i)
		a.probes.push(i)
	}
}

// clone returns a copy of the agenda, which shares no memory with it.
func (a *agenda) clone() agenda {
	return agenda{
		zeros:   a.zeros.clone(),
		merges:  a.merges.clone(),
		splits:  a.splits.clone(),
		filters: a.filters.clone(),
		indices: a.indices.clone(),
		probes:  a.probes.clone(),
	}
}

// queue is a first-in, first-out queue of numbers, each in it at most once.
type queue struct {
	numbers  []int
	isQueued []bool // by number
}

// len returns the length of the queue.
func (q *queue) len() int { return len(q.numbers) }

// push appends n to the queue, unless it is in it already.
func (q *queue) push(n int) {
	for n >= len(q.isQueued) {
		q.isQueued = append(q.isQueued, false)
	}
	if !q.isQueued[n] {
		q.isQueued[n] = true
		q.numbers = append(q.numbers, n)
	}
}

// pop removes the first number and returns it. The queue must not be empty.
func (q *queue) pop() int {
	n := q.numbers[0]
	q.numbers = q.numbers[1:]
	q.isQueued[n] = false
	return n
}

// clone returns a copy of the queue, which shares no memory with it.
func (q *queue) clone() queue { return queue{slices.Clone(q.numbers), slices.Clone(q.isQueued)} }
