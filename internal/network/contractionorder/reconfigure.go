package contractionorder

// Subtree reconfiguration:
// pieces of a tree are replaced by their optimal trees until none gets cheaper.

import (
	"slices"
)

// reconfigurer replaces the tree between a node and a few of its descendants by the optimal one.
type reconfigurer struct {
	w       *working
	o       objective
	k       int // tables of one piece
	d       optimal
	front   []int32  // the descendants: tables of the piece
	inner   []int32  // the merges of the piece, its root first
	pattern []uint16 // by index: which tables of the piece have it
	outside []uint64 // scratch of scope
	clean   []bool   // by node: nothing near has changed since it could not be improved
}

func newReconfigurer(w *working, o objective, k int) *reconfigurer {
	return &reconfigurer{
		w:       w,
		o:       o,
		k:       min(k, maxOptimal),
		pattern: make([]uint16, 64*w.n.words),
		outside: make([]uint64, w.n.words),
		clean:   make([]bool, len(w.left)),
	}
}

// negligible is the part of a tree's cost, per merge, below which pieces are left as they are.
const negligible = 0x1p-10

// run goes over the tree from the leaves up until no piece
// gets cheaper or the moves of the working tree reach limit.
func (r *reconfigurer) run(limit int64) {
	w := r.w
	if len(w.left) < 5 {
		return
	}

	for changed := true; changed && w.moves < limit; {
		changed = false
		floor := w.logTotal(&r.o) + log2Float(negligible) - log2(uint64(len(w.left)))
		for _, v := range w.postorder() {
			if w.left[v] == none || r.clean[v] || w.moves >= limit {
				continue
			}
			if w.n.over() {
				return
			}
			if r.improve(v, floor) {
				changed = true
			} else {
				r.clean[v] = true
			}
		}
	}
}

// improve replaces the piece below v if that is cheaper.
func (r *reconfigurer) improve(v int32, floor logs) bool {
	w := r.w
	r.grow(v)
	if len(r.front) < 3 {
		return false
	}

	old := -noLimit
	for _, x := range r.inner {
		old = logAdd(old, r.o.log(w.full[x], w.size[x]))
	}
	if old < floor {
		return false
	}

	r.load(v)
	total, base := r.d.solve(&r.o)
	w.moves += r.d.moves
	r.d.moves = 0

	before := 0.0
	for _, x := range r.inner {
		before += float64(r.o.float(w.full[x], w.size[x], base))
	}

	if !(total < before*(1-0x1p-20)) {
		return false
	}
	r.rebuild(v)
	return true
}

// grow collects the piece below v:
// the largest table at its border is replaced by its two children until there are k.
func (r *reconfigurer) grow(v int32) {
	w := r.w
	r.front = append(r.front[:0], w.left[v], w.right[v])
	r.inner = append(r.inner[:0], v)

	for len(r.front) < r.k {
		at := -1
		for i, x := range r.front {
			if w.left[x] != none && (at < 0 || w.full[x] > w.full[r.front[at]]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		x := r.front[at]
		r.inner = append(r.inner, x)
		r.front[at] = w.left[x]
		r.front = append(r.front, w.right[x])
	}
	w.moves += int64(r.k * r.k)
}

// load enters the indices of the piece below v.
func (r *reconfigurer) load(v int32) {
	w := r.w
	r.d.reset(len(r.front))
	for j, x := range r.front {
		for i, word := range w.set(x) {
			for ; word != 0; word &= word - 1 {
				r.pattern[i<<6+trailing(word)] |= 1 << j
			}
		}
	}

	// An index is open where the table of v has it.
	open := w.set(v)
	for i := range open {
		var union uint64
		for _, x := range r.front {
			union |= w.set(x)[i]
		}
		for u := union; u != 0; u &= u - 1 {
			at := i<<6 + trailing(u)
			r.d.add(int(r.pattern[at]), w.n.log[i], open[i]&u&-u != 0)
			r.pattern[at] = 0
		}
	}
	w.moves += int64(len(r.front) * (2*w.n.words + 16))
}

// rebuild puts the optimal tree in place of the piece below v, reusing its nodes.
func (r *reconfigurer) rebuild(v int32) {
	w := r.w
	slices.Sort(r.inner[1:])
	free := r.inner[1:]
	var build func(x int32, m int)
	child := func(m int) int32 {
		if m&(m-1) == 0 {
			return r.front[trailing(uint64(m))]
		}
		x := free[0]
		free = free[1:]
		build(x, m)
		return x
	}
	build = func(x int32, m int) {
		a := int(r.d.split[m])
		w.join(x, child(a), child(m^a))
		if x != v {
			r.scope(x, v, m)
		}

		var full logs
		p, q := w.set(w.left[x]), w.set(w.right[x])
		for i := range p {
			full += logs(ones(p[i]|q[i])) * w.n.log[i]
		}
		w.full[x] = full
	}

	build(v, 1<<len(r.front)-1)
	w.moves += int64(len(r.inner) * (len(r.front) + 2) * w.n.words)
	for _, x := range r.inner {
		r.clean[x] = false
	}

	// Nearby ancestors may get cheaper now.
	x := v
	for range r.k {
		if x = w.parent[x]; x == none {
			break
		}
		r.clean[x] = false
	}
}

// scope sets the scope of x, which holds subset m of the piece below v: the
// indices that m shares with tables outside.
func (r *reconfigurer) scope(x, v int32, m int) {
	w := r.w
	s := w.set(x)
	clear(s)

	copy(r.outside, w.set(v))
	for j, y := range r.front {
		to := r.outside
		if m>>j&1 != 0 {
			to = s
		}
		for i, word := range w.set(y) {
			to[i] |= word
		}
	}

	for i := range s {
		s[i] &= r.outside[i]
	}
	w.size[x] = w.n.weigh(s)
}
