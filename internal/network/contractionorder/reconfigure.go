package contractionorder

// Subtree reconfiguration:
// pieces of a tree are replaced by their optimal trees until none gets cheaper.

import (
	"slices"
)

// reconfigurer improves a tree piece by piece. A piece is the tree between a node, its root, and a few descendants, its border. The
// reconfigurer replaces it by the optimal tree over the tables of the border.
type reconfigurer struct {
	tree      *workingTree
	objective objective
	maxTables int      // limit of the tables of a piece
	optimal   optimal  // computes the optimal tree of a piece
	border    []int32  // nodes of the present piece's border; a subset of them is a bit mask, in which border[j] is bit j
	merges    []int32  // nodes of the present piece's merges, the root first
	freeNodes []int32  // of merges: those that rebuildPiece has not used again yet
	pattern   []uint16 // by index: the subset of the border that has it; 0 except in enterIndices
	outside   []uint64 // scratch of setScope: the indices of tables outside a subset
	isClean   []bool   // by node: the piece below it could not be improved, and nothing near has changed since
}

// newReconfigurer returns a reconfigurer, whose run replaces pieces of w by their optimal trees. A piece has at most maxTables tables, and
// not more than maxOptimal.
func newReconfigurer(w *workingTree, objective objective, maxTables int) *reconfigurer {
	return &reconfigurer{
		tree:      w,
		objective: objective,
		maxTables: min(maxTables, maxOptimal),
		pattern:   make([]uint16, 64*w.network.words),
		outside:   make([]uint64, w.network.words),
		isClean:   make([]bool, len(w.left)),
	}
}

// negligible decides which pieces are not worth work: those whose price is below this share of the tree's price per node.
const negligible = 0x1p-10

// run replaces the piece below every merge by an optimal tree, from the leaves up, again and again until no piece gets cheaper. A piece is
// the part of the tree from the merge down to a few nodes. run stops early if the moves of the tree (elementary operations, those before
// run included) reach maxMoves or if the search ends. A merge is clean if its piece could not be improved and nothing near has changed
// since; it is skipped.
func (r *reconfigurer) run(maxMoves int64) {
	tree := r.tree
	if len(tree.left) < 5 { // fewer than 5 nodes, that is, at most two leaves: they have one tree only
		return
	}

	for hasChanged := true; hasChanged && tree.movesSpent < maxMoves; {
		hasChanged = false
		// Pieces with a log2 price below minPrice are not worth the work: their share of the total price is below negligible/nodes.
		minPrice := tree.log2TotalPrice(&r.objective) + log2Float(negligible) - log2(uint64(len(tree.left)))
		for _, v := range tree.postorder() {
			isLeaf := tree.left[v] == none
			if isLeaf || r.isClean[v] || tree.movesSpent >= maxMoves {
				continue
			}
			if tree.network.hasEnded() {
				return
			}
			if r.improvePiece(v, minPrice) {
				hasChanged = true
			} else {
				r.isClean[v] = true
			}
		}
	}
}

// improvePiece replaces the piece below node v by the optimal tree, if that is cheaper, and reports whether it did. A piece is the part of
// the tree from v down to a few nodes, the border, and the optimal tree is over the tables of these nodes. It leaves pieces of two tables,
// which have one tree only, and pieces whose log2 price is below minPrice, since little can be saved there.
func (r *reconfigurer) improvePiece(v int32, minPrice log2Fixed) bool {
	tree := r.tree
	r.collectPiece(v) // sets r.border, and r.merges to the merges of the piece
	if len(r.border) < 3 {
		return false
	}

	log2Before := -noLimit // log2 of 0
	for _, x := range r.merges {
		log2Before = logAdd(log2Before, r.objective.log2Price(tree.unionSize[x], tree.size[x]))
	}
	if log2Before < minPrice {
		return false
	}

	// Compare the prices of the optimal tree and of the piece, both divided by 2^base.
	r.enterIndices(v)
	priceAfter, base := r.optimal.solve(&r.objective)
	tree.movesSpent += r.optimal.movesSpent
	r.optimal.movesSpent = 0

	priceBefore := 0.0
	for _, x := range r.merges {
		priceBefore += float64(r.objective.relativePrice(tree.unionSize[x], tree.size[x], base))
	}
	isCheaper := priceAfter < priceBefore*(1-0x1p-20) // by more than rounding
	if !isCheaper {
		return false
	}

	r.rebuildPiece(v)
	return true
}

// collectPiece sets border and merges to the piece below v. merges has the merges of the piece, v first; border has the nodes whose tables
// the piece multiplies. It begins with the children of v as the border. Then it replaces the merge of the border that has the largest
// union of scopes by its two children, until the border has maxTables tables or only leaves.
func (r *reconfigurer) collectPiece(v int32) {
	tree := r.tree
	r.border = append(r.border[:0], tree.left[v], tree.right[v])
	r.merges = append(r.merges[:0], v)

	for len(r.border) < r.maxTables {
		largest := -1 // position in border
		for i, x := range r.border {
			isMerge := tree.left[x] != none
			if isMerge && (largest < 0 || tree.unionSize[x] > tree.unionSize[r.border[largest]]) {
				largest = i
			}
		}
		if largest < 0 { // only leaves are left
			break
		}
		x := r.border[largest]
		r.merges = append(r.merges, x)
		r.border[largest] = tree.left[x]
		r.border = append(r.border, tree.right[x])
	}
	tree.movesSpent += int64(r.maxTables * r.maxTables) // up to maxTables rounds over up to maxTables nodes
}

// enterIndices passes the tables of the border of the piece below v and their indices to r.optimal, which finds the best tree over them.
// Scopes are bit sets: bit b of word i stands for index 64·i + b. Bit j of pattern[index] is set if table j of the border has the index;
// pattern is 0 before and afterwards.
func (r *reconfigurer) enterIndices(v int32) {
	tree := r.tree
	r.optimal.reset(len(r.border))

	// Find the pattern of every index.
	for j, x := range r.border {
		for i, word := range tree.scopeOf(x) {
			for ; word != 0; word &= word - 1 {
				r.pattern[i<<6+lowestBit(word)] |= 1 << j
			}
		}
	}

	// Enter every index with its pattern. It is open, that is, tables outside the piece have it, if the table of v has it.
	open := tree.scopeOf(v)
	for i := range open {
		var union uint64
		for _, x := range r.border {
			union |= tree.scopeOf(x)[i]
		}
		for ; union != 0; union &= union - 1 { // bit by bit: the lowest one is removed at the end of each round
			bit := lowestBit(union)
			index := i<<6 + bit
			isOpen := open[i]>>bit&1 != 0
			r.optimal.addIndex(int(r.pattern[index]), tree.network.log2Dim[i], isOpen)
			r.pattern[index] = 0
		}
	}
	// For each table of the border: its scope twice, word by word, and 16 elementary operations for its indices.
	tree.movesSpent += int64(len(r.border) * (2*tree.network.words + 16))
}

// rebuildPiece replaces the piece below node v, the part of the tree from v down to a few nodes (its border), by the optimal tree over the
// tables of the border. The nodes of the piece (r.merges, v first) are used again for its new merges. A node is clean if the piece below it
// could not be improved and nothing near has changed since. So the piece's nodes and the nearest ancestors are no longer clean.
func (r *reconfigurer) rebuildPiece(v int32) {
	tree := r.tree
	slices.Sort(r.merges[1:])         // v stays the first
	r.freeNodes = r.merges[1:]        // buildMerge takes the nodes of further merges from this list
	allTables := 1<<len(r.border) - 1 // the bit mask of the whole border
	r.buildMerge(v, allTables)

	// For each merge, setScope goes through the scopes of the border, and buildMerge through those of two children.
	tree.movesSpent += int64(len(r.merges) * (len(r.border) + 2) * tree.network.words)
	for _, x := range r.merges {
		r.isClean[x] = false
	}

	// A piece goes down at most maxTables levels: an ancestor further up has no node of this piece in its own.
	ancestor := v
	for range r.maxTables {
		ancestor = tree.parent[ancestor]
		if ancestor == none {
			break
		}
		r.isClean[ancestor] = false
	}
}

// buildMerge makes node x the merge that multiplies a subset of the border: a bit mask, in which border[j] is bit j. The optimal tree
// splits the subset into firstPart[subset] and the other tables.
func (r *reconfigurer) buildMerge(x int32, subset int) {
	tree := r.tree
	first := int(r.optimal.firstPart[subset])
	tree.setChildren(x, r.buildChild(first), r.buildChild(subset^first))
	if root := r.merges[0]; x != root { // the scope of the root stays
		r.setScope(x, root, subset)
	}

	var unionSize log2Fixed
	p, q := tree.scopeOf(tree.left[x]), tree.scopeOf(tree.right[x])
	for i := range p {
		unionSize += log2Fixed(popCount(p[i]|q[i])) * tree.network.log2Dim[i]
	}
	tree.unionSize[x] = unionSize
}

// buildChild returns the node whose table is the product of a subset of the border: the table itself if there is only one, otherwise a
// merge, for which it uses the next of the free nodes.
func (r *reconfigurer) buildChild(subset int) int32 {
	isSingle := subset&(subset-1) == 0 // nothing is left without the lowest bit
	if isSingle {
		return r.border[lowestBit(uint64(subset))]
	}
	x := r.freeNodes[0]
	r.freeNodes = r.freeNodes[1:]
	r.buildMerge(x, subset)
	return x
}

// setScope sets the scope and the size of node, a merge in the piece below root. The table of node is the product of the tables border[j]
// for which bit j of subset is set. Its scope has the indices of these tables that a table outside the subset has, too; the other indices
// are summed. Scopes are bit sets: index 64·i + b is bit b of word i.
func (r *reconfigurer) setScope(node, root int32, subset int) {
	tree := r.tree
	scope := tree.scopeOf(node)
	clear(scope)

	// scope becomes the union of the subset's scopes, and outside the union of all other scopes. The scope of root stands for the tables
	// outside the piece: it has the indices that they share with the piece.
	copy(r.outside, tree.scopeOf(root))
	for j, table := range r.border {
		target := r.outside
		if subset>>j&1 != 0 {
			target = scope
		}
		for i, word := range tree.scopeOf(table) {
			target[i] |= word
		}
	}

	for i := range scope {
		scope[i] &= r.outside[i]
	}
	tree.size[node] = tree.network.log2Size(scope)
}
