// Package simulate is a discrete-event model of the pipeline: the throughput, latency and bottleneck for a number of
// contract workers, from service times that `btnlab load --record` measured.
//
// A simulation is a function of its configuration and seed. Times are milliseconds.
package simulate

import (
	"container/heap"
)

// engine runs events in the order of their times, simultaneous ones in the order in which they were set.
type engine struct {
	now   float64
	count int
	queue events
}

type event struct {
	at    float64
	count int
	do    func()
}

// after sets do for d milliseconds from now.
func (e *engine) after(d float64, do func()) {
	e.count++
	heap.Push(&e.queue, event{e.now + d, e.count, do})
}

// run runs events until there are none, or more returns false.
func (e *engine) run(more func() bool) {
	for len(e.queue) > 0 && more() {
		next := heap.Pop(&e.queue).(event)
		e.now = next.at
		next.do()
	}
}

type events []event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].count < q[j].count
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = event{}
	*q = (*q)[:last]
	return x
}
