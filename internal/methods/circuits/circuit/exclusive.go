package circuit

// Determinism: children of a sum that exclude each other.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// verdict is what is known of a circuit's determinism.
type verdict uint8

const (
	unknown     verdict = iota
	excluding           // children of every sum exclude each other
	overlapping         // some are not seen to exclude each other
)

// IsDeterministic reports whether any two children of every sum exclude each other on some variable: no leaf of the variable, which stands
// for one of its values, is below both children. That is sufficient for determinism, and true of every sum that decides on a variable.
//
// Sums whose children show the decision (isDecision) cost linear time. The other sums cost a pass for each 64 values of variables, and a
// variable of more than 64 values does not distinguish their children. The answer is kept. The error is the context's.
func (c *Circuit) IsDeterministic(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.determinism == unknown {
		ok, err := c.isDeterministic(ctx)
		if err != nil {
			return false, err
		}
		c.determinism = overlapping
		if ok {
			c.determinism = excluding
		}
	}
	return c.determinism == excluding, nil
}

// openPairs are the pairs of children of a sum that are not yet known to exclude each other.
type openPairs [][2]int32

// manyChildren is the largest number of children of a sum whose pairs may be distinguished by different variables.
const manyChildren = 64

// isDeterministic reports whether any two children of every sum exclude each other on some variable. It is false, too, if that would take
// too much to find out. The error is the context's.
func (c *Circuit) isDeterministic(ctx context.Context) (bool, error) {
	look := pace.New(ctx)
	undecided, ok := c.undecidedPairs(look)
	if !ok {
		return false, look.Err()
	}

	// Remove the pairs that variables distinguish, in groups of variables with at most 64 values together: a bit of a mask for each.
	for end := 0; end < len(c.domains) && len(undecided) > 0; {
		start := end
		for end < len(c.domains) && c.offsets[end+1]-c.offsets[start] <= 64 {
			end++
		}
		if end == start {
			end++ // the variable alone has more values: it distinguishes nothing
			continue
		}
		if !c.removeDistinguished(look, start, end, &undecided) {
			return false, look.Err()
		}
	}
	return len(undecided) == 0, nil
}

// undecidedPairs returns, for each sum that is no decision (isDecision), all pairs of its children. ok is false if such a sum has more than
// manyChildren children, or if the context has ended, which look records.
func (c *Circuit) undecidedPairs(look *pace.Pace) (undecided []openPairs, ok bool) {
	for i := range c.ends {
		children := c.childrenOf(i)
		if look.Over(int64(len(children))) {
			return nil, false
		}
		if c.products[i] || c.isDecision(look, children) {
			continue
		}
		if len(children) > manyChildren {
			return nil, false
		}
		var pairs openPairs
		for k, n := range children {
			for _, m := range children[:k] {
				pairs = append(pairs, [2]int32{m, n})
			}
		}
		undecided = append(undecided, pairs)
	}
	return undecided, true
}

// isDecision reports whether the sum of the given children decides on a variable. It does so if each child is a leaf of the variable, or a
// product with a leaf of the variable among its factors, and no two children have the same leaf. The variables to try are those of the
// leaves of the first child. The result is false if the context has ended, which look records.
func (c *Circuit) isDecision(look *pace.Pace, children []int32) bool {
	for _, candidate := range c.factorsOf(children[0]) {
		isLeaf := int(candidate) < c.leaves()
		if isLeaf && c.decidesOn(look, c.variable(candidate), children) {
			return true
		}
	}
	return false
}

// decidesOn reports whether the sum of the given children decides on variable v: each child has a leaf of v, and no two have the same one.
// The result is false if the context has ended, which look records.
func (c *Circuit) decidesOn(look *pace.Pace, v int, children []int32) bool {
	isLeafOfV := func(n int32) bool { return c.offsets[v] <= n && n < c.offsets[v+1] }
	isUsed := make([]bool, c.domains[v]) // by value of v: a child has its leaf
	for _, child := range children {
		factors := c.factorsOf(child)
		if look.Over(int64(len(factors))) {
			return false
		}
		i := slices.IndexFunc(factors, isLeafOfV) // −1: none
		if i < 0 || isUsed[factors[i]-c.offsets[v]] {
			return false
		}
		isUsed[factors[i]-c.offsets[v]] = true
	}
	return true
}

// factorsOf returns the children of node n if it is a product. Otherwise it returns the node itself. Values are numbered: leaves, then
// numbers, then sums and products.
func (c *Circuit) factorsOf(n int32) []int32 {
	if i := int(n) - c.firstNode(); i >= 0 && c.products[i] {
		return c.childrenOf(i)
	}
	return []int32{n}
}

// variable returns the variable of a leaf.
func (c *Circuit) variable(leaf int32) int {
	v, isFirst := slices.BinarySearch(c.offsets, leaf) // isFirst: it is the leaf of value 0
	if !isFirst {
		v--
	}
	return v
}

// removeDistinguished removes the pairs of children of sums that one of the variables start ≤ v < end distinguishes. v distinguishes two
// nodes if leaves of v are below each of them, and no leaf of v is below both. Sums that have no pair left are removed, too. The variables
// have at most 64 values together: bit l − offsets[start] of a mask stands for leaf l. It returns false if the context has ended.
func (c *Circuit) removeDistinguished(look *pace.Pace, start, end int, undecided *[]openPairs) bool {
	masks, ok := c.leafMasks(look, start, end)
	if !ok {
		return false
	}
	first := c.offsets[start]
	var domains []uint64 // by variable: the mask of all its leaves
	for v := start; v < end; v++ {
		domains = append(domains, (1<<c.domains[v]-1)<<(c.offsets[v]-first))
	}

	// Keep the pairs that no variable distinguishes.
	remainingSums := (*undecided)[:0]
	for _, pairs := range *undecided {
		remaining := pairs[:0]
		for _, p := range pairs {
			if look.Over(int64(len(domains))) {
				return false
			}
			if !areExclusive(masks[p[0]], masks[p[1]], domains) {
				remaining = append(remaining, p)
			}
		}
		if len(remaining) > 0 {
			remainingSums = append(remainingSums, remaining)
		}
	}
	*undecided = remainingSums
	return true
}

// leafMasks returns for each value (leaf, number, sum or product) the mask of the leaves of the variables start ≤ v < end that are it or
// below it. ok is false if the context has ended.
func (c *Circuit) leafMasks(look *pace.Pace, start, end int) (masks []uint64, ok bool) {
	first := c.offsets[start]
	masks = make([]uint64, c.values())
	for l := first; l < c.offsets[end]; l++ {
		masks[l] = 1 << (l - first)
	}
	for i := range c.ends {
		children := c.childrenOf(i)
		if look.Over(int64(len(children))) {
			return nil, false
		}
		var m uint64
		for _, n := range children {
			m |= masks[n]
		}
		masks[c.firstNode()+i] = m
	}
	return masks, true
}

// areExclusive reports whether some variable distinguishes two children of a sum: each child has leaves of the variable, that is values
// that the variable can take there, and no leaf of the variable is in both. a and b are bit masks of the leaves below the two children.
// domains has, for each variable, the mask of all its leaves.
func areExclusive(a, b uint64, domains []uint64) bool {
	common := a & b
	for _, values := range domains {
		// b needs no test: the children of a sum are over the same variables, so b has a value of every variable that a has one of.
		if a&values != 0 && common&values == 0 {
			return true
		}
	}
	return false
}
