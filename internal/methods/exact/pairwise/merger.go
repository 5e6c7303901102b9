package pairwise

// One merge: its blocks shared out over threads.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const chunkWork = 1 << 16 // multiplications that a thread takes at a time

// merger computes merges, each as its spec says. It keeps the workspaces of its threads.
type merger struct {
	ctx         context.Context
	spec        *spec        // of the merge under way
	operands    [2][]float64 // in the sequence of the spec
	out         []float64    // the result
	tasks       int          // number of parts that threads do independently of each other
	runPieces   int          // number of pieces that the run is cut into, for tasks
	rowPieces   int          // number of pieces that the rows are cut into, for tasks
	partialSums []float64    // of an inner merge: one for each task and entry of the result
	workers     []worker     // by thread
}

// scalarOne is the second operand of a merge that only sums its first.
var scalarOne = []float64{1}

// run computes out = a · b as x says, on some threads. The result has the same bits for any number of threads. The only error is that of
// the context.
func (m *merger) run(ctx context.Context, threads int, x *spec, a, b, out []float64) error {
	if x.isSwapped {
		a, b = b, a
	}
	m.ctx = ctx
	m.spec = x
	m.operands = [2][]float64{a, b}
	m.out = out

	if len(m.workers) == 0 {
		m.workers = make([]worker, 1)
	}
	if x.kind == tiny {
		m.workers[0].doTiny(m)
		return nil
	}

	m.cutTasks()
	err := m.doChunks(ctx, threads)
	if x.kind == inner {
		m.addPartials()
	}
	if err == nil {
		err = ctx.Err() // workers leave their tasks when it ends
	}
	return err
}

// doChunks does all tasks of the merge. Threads take chunks of tasks, of about chunkWork multiplications, one after the other.
func (m *merger) doChunks(ctx context.Context, threads int) error {
	tasksPerChunk := max(1, int(chunkWork/(m.spec.work/float64(m.tasks))))
	chunks := (m.tasks + tasksPerChunk - 1) / tasksPerChunk
	threads = max(1, min(threads, chunks))
	for len(m.workers) < threads {
		m.workers = append(m.workers, worker{})
	}
	for i := range threads {
		m.workers[i].start(m)
	}
	return sumproduct.RunChunks(ctx, threads, chunks, func(w, c int) error {
		m.workers[w].doTasks(m, c*tasksPerChunk, min((c+1)*tasksPerChunk, m.tasks))
		return nil
	})
}

// cutTasks cuts the merge into tasks: the blocks of the result, and pieces of large blocks. For an inner merge a task is a part of the sum.
// The tasks do not depend on the number of threads.
func (m *merger) cutTasks() {
	x := m.spec
	m.runPieces = 1
	m.rowPieces = 1

	switch x.kind {
	case panel:
		// V is packed for at most maxSum values of the sum at a time, and then has at most maxPanel entries.
		maxEntries := min(maxRun, maxPanel/min(count(x.sum), maxSum))
		m.runPieces = pieces(count(x.run), maxEntries)
		m.rowPieces = pieces(count(x.rows), taskRows)
		m.tasks = count(x.outer) * m.runPieces * m.rowPieces
	case blend, batched:
		m.tasks = count(x.outer)
	case inner:
		m.tasks = min(innerParts, count(x.steps))
		n := m.tasks * len(m.out) // each task has a sum of its own for each entry of the result
		if cap(m.partialSums) < n {
			m.partialSums = make([]float64, n)
		}
		m.partialSums = m.partialSums[:n]
		clear(m.partialSums)
	}
}

// pieces returns into how many pieces of at most size entries n entries are cut: ⌈n / size⌉.
func pieces(n, size int) int { return (n + size - 1) / size }

// addPartials sets the result of an inner merge to the sum of the partial sums of its tasks, added in the sequence of the tasks.
// partialSums has one sum for each task and entry of the result, task by task, and is empty afterwards.
func (m *merger) addPartials() {
	clear(m.out)
	for len(m.partialSums) > 0 {
		for i := range m.out {
			m.out[i] += m.partialSums[i]
		}
		m.partialSums = m.partialSums[len(m.out):]
	}
}

// offsets returns the offsets in an operand of all combinations of values of some axes, the last axis fastest. Operand 2 is the result. It
// uses the memory of list. Example: two axes of 2 values with strides 10 and 1 have the offsets 0, 1, 10, 11.
func offsets(list []int, axes []axis, operand int) []int {
	list = slices.Grow(list[:0], count(axes))[:1]
	list[0] = 0
	for i := len(axes) - 1; i >= 0; i-- {
		n := len(list) // the number of combinations of the axes after this one, at its value 0
		for x := 1; x < axes[i].dim; x++ {
			shift := x * axes[i].stride[operand]
			list = list[:(x+1)*n]
			target := list[x*n:]
			for j, offset := range list[:n] {
				target[j] = offset + shift
			}
		}
	}
	return list
}

// odometer is a position in a nest of loops: a value of each axis, with the offsets of both operands and the result.
type odometer struct {
	axes    []axis
	values  []int  // by axis
	offsets [3]int // by operand, and of the result
}

// seek sets the position to the n-th one of some axes, counted from 0 with the last axis fastest.
func (o *odometer) seek(axes []axis, n int) {
	o.axes = axes
	o.values = append(o.values[:0], make([]int, len(axes))...)
	o.offsets = [3]int{}
	for i := len(axes) - 1; i >= 0 && n > 0; i-- {
		x := n % axes[i].dim
		n /= axes[i].dim
		o.values[i] = x
		o.move(&axes[i], x)
	}
}

// next goes to the next position, and from the last position to the first.
func (o *odometer) next() {
	for i := len(o.axes) - 1; i >= 0; i-- {
		a := &o.axes[i]
		o.values[i]++
		if o.values[i] < a.dim {
			o.move(a, 1)
			return
		}
		o.values[i] = 0
		o.move(a, 1-a.dim)
	}
}

// move changes the offsets by a number of values along an axis, which may be negative.
func (o *odometer) move(a *axis, values int) {
	for i := range o.offsets {
		o.offsets[i] += values * a.stride[i]
	}
}
