package dimacs

// Projected counting: hidden variables are eliminated before the formula becomes a model.

import (
	"container/heap"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// The elimination of hidden variables looks at so many literals at most, about a second, and adds at most the bytes of the file and
// spareLiterals.
const (
	mostWork      = 1 << 28
	spareLiterals = 1 << 22
)

// eliminateHidden replaces the clauses by clauses of the shown variables alone, which hold if and only if the hidden variables, those that
// are not shown, can be given values so that all clauses hold. It is an error if a hidden variable has weights other than 1, or if this
// takes too much work. Source: M. Davis, H. Putnam, A computing procedure for quantification theory (J. ACM 1960).
func (f *reader) eliminateHidden() {
	if len(f.shown) == f.variables {
		return
	}
	hidden := make([]bool, f.variables+1) // by the number of a variable, from 1 on
	for n := range hidden {
		hidden[n] = n > 0 // numbers begin at 1
	}
	for _, n := range f.shown {
		hidden[n] = false
	}
	for v, w := range f.weightsByVariable() {
		if hidden[v+1] && w != [2]float64{1, 1} {
			f.Line = f.shownLine
			f.Fail(fault.Unsupported, uai.ErrModel, "projected counting: variable %d is not shown and has the weights %v and %v: 1 and 1 are read",
				v+1, w[1], w[0])
			return
		}
	}

	p := newProjection(f, hidden)
	if isComplete := p.eliminateAll(); !isComplete {
		f.Line = f.shownLine
		f.Fail(fault.Unsupported, uai.ErrModel, "projected counting: %d of %d variables are shown, and to eliminate the others takes more than "+
			"%d steps, or clauses of more than %d literals", len(f.shown), f.variables, mostWork, f.BytesRead+spareLiterals)
		return
	}

	// The clauses that were not removed take the place of those of the file, and have no lines there.
	f.literals, f.ends, f.lines = f.literals[:0], f.ends[:0], nil
	for _, c := range p.clauses {
		if c != nil {
			f.literals = append(f.literals, c...)
			f.ends = append(f.ends, len(f.literals))
		}
	}
}

// projection is a set of clauses from which variables are eliminated.
type projection struct {
	// clauses has the literals of each clause; nil for one that was removed, and empty, not nil, for the one that never holds.
	clauses [][]int32
	// clausesWith[literalIndex(l)] has the clauses with literal l, some of which may have been removed.
	clausesWith  [][]int
	hidden       []bool     // by variable, from 1 on; false once it is eliminated
	queue        candidates // hidden variables, the cheapest first; one whose cost changed is there several times
	marked       []bool     // by literalIndex, a set of literals for comparisons; empty between them
	work         int        // the number of literals that were looked at
	literalsLeft int64      // the number of literals that may still be added
}

// candidate is a hidden variable with the cost of its elimination: the number of pairs of clauses that it resolves.
type candidate struct {
	variable int32
	cost     int
}

// candidates are a heap, the cheapest first.
type candidates []candidate

// Len is for package heap.
func (c candidates) Len() int { return len(c) }

// Less orders by cost, then by variable.
func (c candidates) Less(i, j int) bool {
	return c[i].cost < c[j].cost || c[i].cost == c[j].cost && c[i].variable < c[j].variable
}

// Swap is for package heap.
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push is for package heap.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop is for package heap.
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// literalIndex returns the index of a literal in lists by literal: 2v for variable v, and 2v + 1 for its negation.
func literalIndex(l int32) int {
	if l > 0 {
		return 2 * int(l)
	}
	return 1 - 2*int(l)
}

// newProjection returns the clauses of a file, and a queue of the hidden variables, which are to be eliminated. The variable whose
// elimination resolves the fewest pairs of clauses comes first. hidden is indexed by the variables' numbers, from 1 on. It takes linear
// time: a clause that follows from others is not removed here.
func newProjection(f *reader, hidden []bool) *projection {
	size := 2*f.variables + 2
	p := &projection{
		hidden: hidden, clausesWith: make([][]int, size), marked: make([]bool, size),
		literalsLeft: f.BytesRead + spareLiterals, // new clauses may have about as many literals as the file has bytes
	}
	for _, literals := range f.eachClause() {
		if clause, isTautology := distinctLiterals(literals); !isTautology {
			p.addClause(clause)
		}
	}
	for n := int32(1); int(n) < len(hidden); n++ {
		if hidden[n] {
			p.queue = append(p.queue, candidate{variable: n, cost: p.cost(n)})
		}
	}
	heap.Init(&p.queue)
	return p
}

// addClause adds a clause to the list and to the lists of its literals.
func (p *projection) addClause(clause []int32) {
	p.literalsLeft -= int64(len(clause))
	for _, l := range clause {
		p.clausesWith[literalIndex(l)] = append(p.clausesWith[literalIndex(l)], len(p.clauses))
	}
	p.clauses = append(p.clauses, clause)
}

// isExhausted reports whether the elimination has reached a bound of its work or of its literals.
func (p *projection) isExhausted() bool { return p.work > mostWork || p.literalsLeft < 0 }

// isImplied reports whether a clause follows from another one, whose literals are a subset of its own.
func (p *projection) isImplied(c []int32) bool {
	// Mark the literals of c: another clause is a subset of c if all of its literals are marked.
	for _, l := range c {
		p.marked[literalIndex(l)] = true
	}
	defer func() {
		for _, l := range c {
			p.marked[literalIndex(l)] = false
		}
	}()
	for _, l := range c {
		for _, j := range p.clausesWith[literalIndex(l)] {
			clause := p.clauses[j] // nil if it was removed
			p.work += 1 + len(clause)
			isUnmarked := func(m int32) bool { return !p.marked[literalIndex(m)] }
			if isSubset := clause != nil && len(clause) <= len(c) && !slices.ContainsFunc(clause, isUnmarked); isSubset {
				return true
			}
		}
	}
	return false
}

// liveClauses returns the clauses with a literal that were not removed. It drops the removed ones from the literal's
// list.
func (p *projection) liveClauses(l int32) []int {
	index := literalIndex(l)
	p.work += len(p.clausesWith[index])
	p.clausesWith[index] = slices.DeleteFunc(p.clausesWith[index], func(j int) bool { return p.clauses[j] == nil })
	return p.clausesWith[index]
}

// eliminateAll eliminates the hidden variables, the cheapest first. It returns false, and stops halfway, if the work or the literals that
// it may use are used up.
func (p *projection) eliminateAll() (isComplete bool) {
	for p.queue.Len() > 0 {
		c := heap.Pop(&p.queue).(candidate)
		if c.cost != p.cost(c.variable) {
			continue // the cost has changed, and the variable is in the queue with its new one, too
		}
		p.eliminate(c.variable)
		if p.isExhausted() {
			return false
		}
	}
	return true
}

// cost returns the number of pairs of clauses that the elimination of variable n resolves.
func (p *projection) cost(n int32) int { return len(p.liveClauses(n)) * len(p.liveClauses(-n)) }

// eliminate removes variable n: it replaces the clauses with n by the resolvents of each clause that has n and each
// that has its negation. It stops halfway if the work or the literals of the whole elimination are used up (isExhausted).
func (p *projection) eliminate(n int32) {
	// add the resolvents
	positive, negative := slices.Clone(p.liveClauses(n)), slices.Clone(p.liveClauses(-n))
	affected := map[int32]bool{} // variables whose cost changes
	for _, i := range positive {
		for _, j := range negative {
			if clause, isTautology := p.resolvent(p.clauses[i], p.clauses[j], n); !isTautology && !p.isImplied(clause) {
				p.addClause(clause)
			}
			if p.isExhausted() {
				return
			}
		}
	}

	// remove the clauses with the variable
	for _, i := range append(positive, negative...) {
		for _, l := range p.clauses[i] {
			affected[max(l, -l)] = true
		}
		p.clauses[i] = nil
	}

	// queue the other variables of these clauses with their new costs
	delete(affected, n)
	p.hidden[n] = false // it is eliminated, and not queued again
	for _, v := range sorted(affected) {
		if p.hidden[v] {
			heap.Push(&p.queue, candidate{v, p.cost(v)})
		}
	}
}

// sorted returns the elements of a set, ascending.
func sorted(set map[int32]bool) []int32 {
	list := make([]int32, 0, len(set))
	for v := range set {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// resolvent returns the clause (a without n) or (b without −n), which follows from a, with literal n, and b, with its
// negation. isTautology is true if the clause always holds.
func (p *projection) resolvent(a, b []int32, n int32) (clause []int32, isTautology bool) {
	p.work += len(a) + len(b)
	clause = make([]int32, 0, len(a)+len(b)-2) // without n and −n
	for _, l := range a {
		if l != n {
			clause = append(clause, l)
			p.marked[literalIndex(l)] = true
		}
	}
	for _, l := range b {
		isTautology = isTautology || p.marked[literalIndex(-l)]
		if l != -n && !p.marked[literalIndex(l)] {
			clause = append(clause, l)
		}
	}
	for _, l := range a {
		p.marked[literalIndex(l)] = false
	}
	return clause, isTautology
}
