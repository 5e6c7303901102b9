package contractionorder

// Subtree reconfiguration:
// pieces of a tree are replaced by their optimal trees until none gets cheaper.

import (
	"slices"
)

// reconfigurer improves a tree piece by piece. A piece is the tree between a node, its root, and a few descendants, its border. The
// reconfigurer replaces it by the optimal tree over the tables of the border.
type reconfigurer struct {
	w         *workingTree
	objective objective
	maxTables int      // limit of the tables of a piece
	optimal   optimal  // computes the optimal tree of a piece
	border    []int32  // of the present piece: its tables. Table j is bit j of a subset
	merges    []int32  // of the present piece: its merges, the root first
	pattern   []uint16 // by index: the subset of the border that has it; 0 except in enterIndices
	outside   []uint64 // scratch of setScope: the indices of tables outside a subset
	isClean   []bool   // by node: the piece below it could not be improved, and nothing near has changed since
}

// newReconfigurer returns a reconfigurer of w with pieces of at most maxTables tables.
func newReconfigurer(w *workingTree, objective objective, maxTables int) *reconfigurer {
	return &reconfigurer{
		w:         w,
		objective: objective,
		maxTables: min(maxTables, maxOptimal),
		pattern:   make([]uint16, 64*w.n.words),
		outside:   make([]uint64, w.n.words),
		isClean:   make([]bool, len(w.left)),
	}
}

// negligible decides which pieces are not worth work: those whose price is below this share of the tree's price per node.
const negligible = 0x1p-10

// run improves the pieces below all nodes, from the leaves up, again and again until no piece gets cheaper or the moves of the tree reach
// limit. It stops early if the search ends.
func (r *reconfigurer) run(limit int64) {
	w := r.w
	if len(w.left) < 5 {
		return
	}

	for hasChanged := true; hasChanged && w.moves < limit; {
		hasChanged = false
		floor := w.log2TotalPrice(&r.objective) + log2Float(negligible) - log2(uint64(len(w.left)))
		for _, v := range w.postorder() {
			if w.left[v] == none || r.isClean[v] || w.moves >= limit {
				continue
			}
			if w.n.hasEnded() {
				return
			}
			if r.improvePiece(v, floor) {
				hasChanged = true
			} else {
				r.isClean[v] = true
			}
		}
	}
}

// improvePiece replaces the piece below v by the optimal tree, if that is cheaper, and reports whether it did. It leaves pieces of two
// tables, and pieces whose log2 price is below floor.
func (r *reconfigurer) improvePiece(v int32, floor logs) bool {
	w := r.w
	r.collectPiece(v)
	if len(r.border) < 3 {
		return false
	}

	log2Before := -noLimit
	for _, x := range r.merges {
		log2Before = logAdd(log2Before, r.objective.log2Price(w.unionSize[x], w.size[x]))
	}
	if log2Before < floor {
		return false
	}

	r.enterIndices(v)
	priceAfter, base := r.optimal.solve(&r.objective)
	w.moves += r.optimal.moves
	r.optimal.moves = 0

	priceBefore := 0.0
	for _, x := range r.merges {
		priceBefore += float64(r.objective.relativePrice(w.unionSize[x], w.size[x], base))
	}

	if !(priceAfter < priceBefore*(1-0x1p-20)) {
		return false
	}
	r.rebuildPiece(v)
	return true
}

// collectPiece sets border and merges to the piece below v. It begins with the children of v and replaces the merge of the border with the
// largest union by its two children, until the border has maxTables tables or only leaves.
func (r *reconfigurer) collectPiece(v int32) {
	w := r.w
	r.border = append(r.border[:0], w.left[v], w.right[v])
	r.merges = append(r.merges[:0], v)

	for len(r.border) < r.maxTables {
		largest := -1
		for i, x := range r.border {
			if w.left[x] != none && (largest < 0 || w.unionSize[x] > w.unionSize[r.border[largest]]) {
				largest = i
			}
		}
		if largest < 0 {
			break
		}
		x := r.border[largest]
		r.merges = append(r.merges, x)
		r.border[largest] = w.left[x]
		r.border = append(r.border, w.right[x])
	}
	w.moves += int64(r.maxTables * r.maxTables)
}

// enterIndices gives optimal the tables of the piece below v with their indices.
func (r *reconfigurer) enterIndices(v int32) {
	w := r.w
	r.optimal.reset(len(r.border))
	for j, x := range r.border {
		for i, word := range w.scopeOf(x) {
			for ; word != 0; word &= word - 1 {
				r.pattern[i<<6+lowestBit(word)] |= 1 << j
			}
		}
	}

	// An index is open, that is, tables outside have it, if the table of v has it.
	open := w.scopeOf(v)
	for i := range open {
		var union uint64
		for _, x := range r.border {
			union |= w.scopeOf(x)[i]
		}
		for u := union; u != 0; u &= u - 1 {
			index := i<<6 + lowestBit(u)
			r.optimal.addIndex(int(r.pattern[index]), w.n.log2Dim[i], open[i]&u&-u != 0)
			r.pattern[index] = 0
		}
	}
	w.moves += int64(len(r.border) * (2*w.n.words + 16))
}

// rebuildPiece puts the optimal tree in place of the piece below v. It reuses the nodes of the piece. The new merges and the nearest
// ancestors are no longer clean.
func (r *reconfigurer) rebuildPiece(v int32) {
	w := r.w
	slices.Sort(r.merges[1:])
	freeNodes := r.merges[1:]
	var build func(x int32, subset int) // makes x the merge of a subset of the border
	child := func(subset int) int32 {
		if subset&(subset-1) == 0 {
			return r.border[lowestBit(uint64(subset))]
		}
		x := freeNodes[0]
		freeNodes = freeNodes[1:]
		build(x, subset)
		return x
	}
	build = func(x int32, subset int) {
		first := int(r.optimal.firstPart[subset])
		w.setChildren(x, child(first), child(subset^first))
		if x != v {
			r.setScope(x, v, subset)
		}

		var unionSize logs
		p, q := w.scopeOf(w.left[x]), w.scopeOf(w.right[x])
		for i := range p {
			unionSize += logs(popCount(p[i]|q[i])) * w.n.log2Dim[i]
		}
		w.unionSize[x] = unionSize
	}

	build(v, 1<<len(r.border)-1)
	w.moves += int64(len(r.merges) * (len(r.border) + 2) * w.n.words)
	for _, x := range r.merges {
		r.isClean[x] = false
	}

	// The pieces below the nearest ancestors may get cheaper now.
	x := v
	for range r.maxTables {
		if x = w.parent[x]; x == none {
			break
		}
		r.isClean[x] = false
	}
}

// setScope sets scope and size of node, a merge in the piece below root. Its table is the product of a subset of the border. The scope has
// the indices of the subset that a table outside the subset has, too. The merge sums over the other indices of the subset. Scopes are bit
// sets: index 64·i + b is bit b of word i.
func (r *reconfigurer) setScope(node, root int32, subset int) {
	w := r.w
	scope := w.scopeOf(node)
	clear(scope)

	// outside begins with the scope of root: these are the indices of the piece that tables outside the piece have.
	copy(r.outside, w.scopeOf(root))
	for j, table := range r.border {
		target := r.outside
		if subset>>j&1 != 0 {
			target = scope
		}
		for i, word := range w.scopeOf(table) {
			target[i] |= word
		}
	}

	for i := range scope {
		scope[i] &= r.outside[i]
	}
	w.size[node] = w.n.log2Size(scope)
}
