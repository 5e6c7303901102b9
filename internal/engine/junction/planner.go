package junction

// The merges of a tree, their scopes and their price, before anything is laid out.

import (
	"math"
	"slices"
)

// planner is a list of tables and merges, with their price.
type planner struct {
	dims        []int   // by index: the number of its values
	scopes      [][]int // by table: its indices
	uses        []int   // by index: the number of tables that have it and are not merged yet
	merges      []merge
	flops       float64 // of all merges
	log2Largest float64 // log2 of the entries of the largest table
	entries     float64 // of all tables together
	width       int     // the largest number of indices in a merge, less one
}

// newPlanner returns a planner with some tables, given by their scopes, and no merges.
func newPlanner(dims []int, tables [][]int) *planner {
	p := &planner{dims: dims, uses: make([]int, len(dims))}
	for _, scope := range tables {
		p.add(scope)
	}
	return p
}

// add appends a table over scope that is not merged yet.
func (p *planner) add(scope []int) {
	for _, i := range scope {
		p.uses[i]++
	}
	p.scopes = append(p.scopes, scope)
	size := 1.0
	for _, i := range scope {
		size *= float64(p.dims[i])
	}
	p.log2Largest, p.entries = max(p.log2Largest, math.Log2(size)), p.entries+size
}

// hasPrivateIndex reports whether a table that is not merged yet has an index that no other such table has.
func (p *planner) hasPrivateIndex(table int) bool {
	return slices.ContainsFunc(p.scopes[table], func(i int) bool { return p.uses[i] == 1 })
}

// merge replaces two tables by their product, in which the indices that no other table has are summed out, and returns its number. It takes
// a multiplication and an addition for each combination of values of the indices of both.
func (p *planner) merge(left, right int) int {
	union := slices.Concat(p.scopes[left], p.scopes[right])
	for _, i := range union { // uses: by index, the number of tables that are not merged yet; add counts the result again
		p.uses[i]-- // twice for an index that both tables have: it is twice in union so far
	}
	slices.Sort(union)
	union = slices.Compact(union)
	combinations := 1.0
	var out []int
	for _, i := range union {
		combinations *= float64(p.dims[i])
		if p.uses[i] > 0 {
			out = append(out, i)
		}
	}
	p.flops, p.width = p.flops+2*combinations, max(p.width, len(union)-1)
	p.merges = append(p.merges, merge{left: left, right: right, flops: 2 * combinations})
	p.add(out)
	return len(p.scopes) - 1
}
