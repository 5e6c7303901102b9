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

// project replaces the clauses by those of the shown variables alone: they hold for the values of these for which the hidden ones have a
// solution. Source: M. Davis, H. Putnam, A computing procedure for quantification theory (J. ACM 1960).
func (f *reader) project() {
	if len(f.shown) == f.variables {
		return
	}
	hidden := make([]bool, f.variables+1)
	for n := range hidden {
		hidden[n] = n > 0
	}
	for _, n := range f.shown {
		hidden[n] = false
	}
	for v, w := range f.byVariable() {
		if hidden[v+1] && w != [2]float64{1, 1} {
			f.Line = f.shows
			f.Fail(fault.Unsupported, uai.ErrModel, "projected counting: variable %d is not shown and has the weights %v and %v: 1 and 1 are read",
				v+1, w[1], w[0])
			return
		}
	}
	p := newProjection(f, hidden)
	for p.queue.Len() > 0 {
		v := heap.Pop(&p.queue).(candidate)
		if v.cost != p.cost(v.variable) {
			continue // a newer one is there
		}
		if p.eliminate(v.variable); p.isExhausted() {
			f.Line = f.shows
			f.Fail(fault.Unsupported, uai.ErrModel, "projected counting: %d of %d variables are shown, and to eliminate the others takes more than "+
				"%d steps, or clauses of more than %d literals", len(f.shown), f.variables, mostWork, f.Read+spareLiterals)
			return
		}
	}
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
	clauses [][]int32 // nil for one that is gone, and empty, not nil, for the one that never holds
	// clausesWith has the clauses with a literal, by its side, some of them gone.
	clausesWith  [][]int
	hidden       []bool // by variable, from 1 on; an eliminated one is not hidden any more
	queue        candidates
	marked       []bool // by side, for comparisons
	work         int    // literals that were looked at
	literalsLeft int64  // that may be added
}

// candidate is a variable with the number of pairs of clauses that its elimination resolves.
type candidate struct {
	variable int32
	cost     int
}

// candidates are a heap, the cheapest first.
type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].cost < c[j].cost || c[i].cost == c[j].cost && c[i].variable < c[j].variable
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push is for package heap.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) }

// Pop is for package heap.
func (c *candidates) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// side is the place of a literal in lists.
func side(l int32) int {
	if l > 0 {
		return 2 * int(l)
	}
	return 1 - 2*int(l)
}

// newProjection returns the clauses of a file, and its hidden variables, which are numbered from 1, by the cost of their elimination.
// Linear time: clauses that follow from others stay until they are resolved.
func newProjection(f *reader, hidden []bool) *projection {
	sides := 2*f.variables + 2
	p := &projection{hidden: hidden, clausesWith: make([][]int, sides), marked: make([]bool, sides), literalsLeft: f.Read + spareLiterals}
	for _, literals := range f.eachClause() {
		if clause, isTautology := distinctLiterals(literals); !isTautology {
			p.add(clause)
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

// add adds a clause.
func (p *projection) add(clause []int32) {
	p.literalsLeft -= int64(len(clause))
	for _, l := range clause {
		p.clausesWith[side(l)] = append(p.clausesWith[side(l)], len(p.clauses))
	}
	p.clauses = append(p.clauses, clause)
}

// isExhausted reports whether the elimination has reached a bound of its work or of its literals.
func (p *projection) isExhausted() bool { return p.work > mostWork || p.literalsLeft < 0 }

// isImplied reports whether a clause follows from another one.
func (p *projection) isImplied(c []int32) bool {
	for _, l := range c {
		p.marked[side(l)] = true
	}
	defer func() {
		for _, l := range c {
			p.marked[side(l)] = false
		}
	}()
	for _, l := range c {
		for _, j := range p.clausesWith[side(l)] {
			other := p.clauses[j]
			p.work += 1 + len(other)
			if other != nil && len(other) <= len(c) && !slices.ContainsFunc(other, func(m int32) bool { return !p.marked[side(m)] }) {
				return true
			}
		}
	}
	return false
}

// live returns the clauses with a literal.
func (p *projection) live(l int32) []int {
	s := side(l)
	p.work += len(p.clausesWith[s])
	p.clausesWith[s] = slices.DeleteFunc(p.clausesWith[s], func(j int) bool { return p.clauses[j] == nil })
	return p.clausesWith[s]
}

// cost is the number of pairs of clauses that the elimination of a variable resolves.
func (p *projection) cost(n int32) int { return len(p.live(n)) * len(p.live(-n)) }

// eliminate replaces the clauses with a variable by the resolvents of every two that disagree in it.
func (p *projection) eliminate(n int32) {
	positive, negative := slices.Clone(p.live(n)), slices.Clone(p.live(-n))
	affected := map[int32]bool{}
	for _, i := range positive {
		for _, j := range negative {
			if clause, isTautology := p.resolvent(p.clauses[i], p.clauses[j], n); !isTautology && !p.isImplied(clause) {
				p.add(clause)
			}
			if p.isExhausted() {
				return
			}
		}
	}
	for _, i := range append(positive, negative...) {
		for _, l := range p.clauses[i] {
			affected[max(l, -l)] = true
		}
		p.clauses[i] = nil
	}
	delete(affected, n)
	p.hidden[n] = false
	for _, v := range sorted(affected) {
		if p.hidden[v] {
			heap.Push(&p.queue, candidate{v, p.cost(v)})
		}
	}
}

func sorted(set map[int32]bool) []int32 {
	list := make([]int32, 0, len(set))
	for v := range set {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// resolvent is the clause that follows from two that disagree in variable n, of which a has n itself and b its negation.
func (p *projection) resolvent(a, b []int32, n int32) (clause []int32, isTautology bool) {
	p.work += len(a) + len(b)
	clause = make([]int32, 0, len(a)+len(b)-2)
	for _, l := range a {
		if l != n {
			clause = append(clause, l)
			p.marked[side(l)] = true
		}
	}
	for _, l := range b {
		isTautology = isTautology || p.marked[side(-l)]
		if l != -n && !p.marked[side(l)] {
			clause = append(clause, l)
		}
	}
	for _, l := range a {
		p.marked[side(l)] = false
	}
	return clause, isTautology
}
