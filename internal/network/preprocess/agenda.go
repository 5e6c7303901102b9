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

// addTable puts a table with new entries or a new scope on the agenda of all rules.
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

// clone copies the queues.
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

// queue is a queue of numbers, each in it once.
type queue struct {
	list []int
	in   []bool // by number
}

// len is the number of numbers in the queue.
func (q *queue) len() int { return len(q.list) }

// push puts n at the end, unless it is in the queue.
func (q *queue) push(n int) {
	for n >= len(q.in) {
		q.in = append(q.in, false)
	}
	if !q.in[n] {
		q.in[n] = true
		q.list = append(q.list, n)
	}
}

// pop takes the first number out.
func (q *queue) pop() int {
	n := q.list[0]
	q.list = q.list[1:]
	q.in[n] = false
	return n
}

// clone copies the queue.
func (q *queue) clone() queue { return queue{slices.Clone(q.list), slices.Clone(q.in)} }
