package pairwise

// The backward pass as a program: the adjoint of every table that marginals need.

import (
	"math"
)

// maxSteps bounds the operations of a program per merge:
// recomputation that needs more is not tried.
const maxSteps = 64

// reading says where marginals are read: the indices summed at a merge at one of its two tables, at
// the smaller one unless the adjoint of the other is needed anyway; an index that one tensor alone
// has at that tensor.
type reading struct {
	reads   [][]int // by table
	adjoint []bool  // by table: its adjoint is needed
	table   []bool  // by table: it is needed in the backward pass
}

// reading decides where marginals are read, from the leaves up.
func (s *shape) reading() *reading {
	n := len(s.scope)
	w := &reading{reads: make([][]int, n), adjoint: make([]bool, n), table: make([]bool, n)}
	for i := range s.leaves {
		w.reads[i] = s.alone[i]
		w.adjoint[i] = len(s.alone[i]) > 0
	}
	for k, m := range s.merges {
		a, b := m[0], m[1]
		if len(s.sums[k]) > 0 {
			at := a
			if w.adjoint[a] == w.adjoint[b] && s.size[b] < s.size[a] ||
				w.adjoint[b] && !w.adjoint[a] {
				at = b
			}
			w.reads[at] = append(w.reads[at][:len(w.reads[at]):len(w.reads[at])], s.sums[k]...)
			w.adjoint[at] = true
		}

		w.adjoint[s.leaves+k] = w.adjoint[a] || w.adjoint[b]
		w.table[a] = w.adjoint[b] || len(w.reads[a]) > 0 && a >= s.leaves
		w.table[b] = w.adjoint[a] || len(w.reads[b]) > 0 && b >= s.leaves

		for i := range 2 { // of a scalar the value is needed
			if len(s.scope[m[i]]) == 0 {
				w.table[m[i]] = w.table[m[i]] || w.adjoint[m[i]]
			}
		}
	}
	return w
}

// both is the program of Marginals: forward, keeping the tables of at most keep entries
// that the way back needs, and back. It returns nil when it would take too many operations.
func (s *shape) both(w *reading, keep float64) *program {
	n := len(s.scope)
	kept := func(t int) bool { return w.table[t] && s.size[t] <= keep }
	e := newEmitter(s)
	e.p.reads = w.reads

	var frontier []int // tables that all slices share, next to one they do not

	for k, m := range s.merges {
		for _, i := range m {
			if s.static[i] && !s.static[s.leaves+k] && w.adjoint[i] {
				frontier = append(frontier, i)
				e.take(2*n+i, s.size[i])
				e.emit(op{code: opClear, out: 2*n + i})
			}
		}
	}

	e.evaluate(kept)
	e.begin(1)

	root := n - 1
	if n > 0 && w.adjoint[root] {
		e.take(n+root, 1)
		e.emit(op{code: opUnit, out: n + root})
		e.finish(w, root)
		e.back(w, kept, root)
	}

	if n > 0 && e.have[root] {
		e.release(root)
	}

	e.begin(2)
	for _, i := range frontier {
		e.owned[n+i] = e.owned[2*n+i]
		e.owned[2*n+i] = 0
		e.emit(op{code: opMove, a: 2*n + i, out: n + i})
		e.finish(w, i)
		e.back(w, kept, i)
		if e.have[i] {
			e.release(i)
		}
	}

	for t := range s.scope { // static tables without marginals
		if e.have[t] {
			e.release(t)
		}
	}

	if e.steps > maxSteps*(len(s.merges)+1000) {
		return nil
	}
	return e.p
}

// back goes from a table whose adjoint is live down its subtree.
func (e *emitter) back(w *reading, kept func(int) bool, from int) {
	s := e.s
	n := len(s.scope)
	stack := []int{from}
	for len(stack) > 0 && e.steps <= maxSteps*(len(s.merges)+1000) {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c < s.leaves || !e.have[n+c] {
			continue
		}

		m := s.merges[c-s.leaves]
		for _, i := range m {
			if w.table[i] {
				e.ensure(kept, i)
			}
		}

		var next []int
		for i := range 2 {
			a, b := m[i], m[1-i]
			if !w.adjoint[a] {
				continue
			}
			e.adjoint(c, a, b)
			next = append(next, a)
		}

		e.release(n + c)
		for _, a := range next {
			e.finish(w, a)
		}
		for _, i := range m {
			if e.have[i] && (e.at == 2 || !s.static[i]) {
				e.release(i)
			}
		}

		// the larger one first: it does not wait
		if len(next) == 2 && s.size[next[0]] > s.size[next[1]] {
			next[0], next[1] = next[1], next[0]
		}
		stack = append(stack, next...)
	}
}

// adjoint makes the adjoint of a from the adjoint of c, the result of a and b.
func (e *emitter) adjoint(c, a, b int) {
	s := e.s
	n := len(s.scope)
	switch {
	case e.passes(a, c):
		e.take(n+a, 0)
		e.emit(op{code: opPass, a: n + c, out: n + a})
		e.owned[n+a] = e.owned[n+c]
		e.owned[n+c] = 0
	case e.passes(b, c):
		e.take(n+a, 1)
		e.emit(op{code: opRest, a: a, out: n + a})
	default:
		e.take(n+a, s.size[a])
		full := s.full[c-s.leaves]
		e.spend(finite(full + (full - s.size[a])))
		e.emit(op{code: opAdjoint, a: n + c, b: b, out: n + a})
	}
}

// finish reads the marginals at table t, whose adjoint is live;
// at the border of the common part, it sums the adjoint instead.
func (e *emitter) finish(w *reading, t int) {
	n := len(e.s.scope)
	if e.at == 1 && e.s.static[t] {
		e.spend(e.s.size[t])
		e.emit(op{code: opSum, a: n + t, out: 2*n + t})
		e.release(n + t)
		return
	}

	if len(w.reads[t]) > 0 {
		size := e.s.size[t]
		if t < e.s.leaves {
			size = finite(size + e.s.presum(t))
		}
		e.spend(finite(3 * size))
		e.emit(op{code: opRead, a: t, b: n + t})
	}
	if t < e.s.leaves || !w.adjoint[e.s.merges[t-e.s.leaves][0]] &&
		!w.adjoint[e.s.merges[t-e.s.leaves][1]] {
		e.release(n + t)
	}
}

// ensure computes a table again that was not kept.
func (e *emitter) ensure(kept func(int) bool, t int) {
	s := e.s
	stack := []int{t}
	for len(stack) > 0 && e.steps <= maxSteps*(len(s.merges)+1000) {
		c := stack[len(stack)-1]
		if e.have[c] {
			stack = stack[:len(stack)-1]
			continue
		}
		if c < s.leaves {
			e.load(c)
			continue
		}

		m := s.merges[c-s.leaves]
		if !e.have[m[0]] || !e.have[m[1]] {
			for _, i := range m {
				if !e.have[i] {
					stack = append(stack, i)
				}
			}
			continue
		}

		e.merge(c - s.leaves)
		for _, i := range m {
			if !kept(i) {
				e.drop(i, c)
			}
		}
	}
}

// fit returns the program of Marginals that keeps as many tables as memory has
// room for, or else the one of least memory, with its need.
func (s *shape) fit(memory float64) *program {
	w := s.reading()
	top := s.top()
	var least *program
	for keep := math.MaxFloat64; ; keep = min(keep, 4*top) / 4 {
		p := s.both(w, keep)
		if p == nil {
			break
		}
		if least == nil || p.peak < least.peak {
			least = p
		}
		if 8*p.peak <= memory || keep < 1 {
			break
		}
	}
	return least
}
