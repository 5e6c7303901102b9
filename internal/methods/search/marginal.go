package search

// Marginal MAP by search: best first over dives, values of the set in the reverse of an elimination order that sums first. The bound of a
// partial assignment is the product of the mini-buckets' tables and messages over it (Kask and Dechter, A general scheme for automatic
// generation of search heuristics from specification dependencies, 2001; Marinescu, Dechter and Ihler, AND/OR search for marginal MAP,
// 2014).

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Marginal is the search's bound for a marginal MAP assignment.
type Marginal struct {
	Order   []int   `msgpack:"order"`   // elimination order of the indices, those of the set last
	Entries float64 `msgpack:"entries"` // of a product of mini-buckets
}

const (
	// slackShare of Tolerance is the gap up to which nothing better is looked for.
	slackShare = 0.5
	// leafWork is the work of a conditioned network beside its elimination, flops a table. Estimated: a microsecond.
	leafWork = 3000
	// improveShare is the part of the work that changes of single values of the first assignment may take. Chosen.
	improveShare = 1.0 / 4
	// leafShare is the part of the work that a search for a way to sum may take, and the bounds of one assignment where none fits. Chosen.
	leafShare = 1.0 / 64
	// changeWork is the work of the bound of a value. Estimated.
	changeWork = 200
	// openBytes is the memory of an open node, and of a link.
	openBytes = 64
)

// belows are the weights that a bound from below is tried with, see minibuckets.Run.
var belows = []float64{0.1, 1}

// partial is an open node: a value of an index, and those of all before it.
type partial struct {
	ln     float64 // no assignment below it weighs more
	serial int
	last   *link
}

// link is a value of an index of the search, after those before it. Nodes share them.
type link struct {
	before *link
	depth  int // 1 + its index
	value  int
}

// at is the number of values.
func (l *link) at() int {
	if l == nil {
		return 0
	}
	return l.depth
}

type partials []partial

func (p partials) Len() int { return len(p) }
func (p partials) Less(i, j int) bool {
	a, b := p[i], p[j]
	return cmp.Or(cmp.Compare(b.ln, a.ln), cmp.Compare(b.last.at(), a.last.at()), cmp.Compare(a.serial, b.serial)) < 0
}
func (p partials) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *partials) Push(x any)   { *p = append(*p, x.(partial)) }
func (p *partials) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// marginal is the state of a search.
type marginal struct {
	ctx    context.Context
	tables *descent.Prepared
	bound  *minibuckets.Bound
	levels []level
	inner  *descent.Inner // nil: the sums are bounded
	leaf   *minibuckets.Plan

	at     []int // a value per index
	open   partials
	serial int
	bytes  int64 // of open nodes
	memory int64
	left   float64 // flops

	best         []int   // values per index; nil: none yet
	lower, upper float64 // of the best one's weight
	closed       float64 // no assignment that is closed weighs more
}

// level is an index of the search.
type level struct {
	position, index, domain int
}

// newMarginal bounds the network and plans the sums of assignments. Errors: over_budget for mini-buckets beyond the memory.
func newMarginal(ctx context.Context, tables *descent.Prepared, m *Marginal, memory int64, threads int, flops float64) (*marginal, error) {
	h := tables.Hypergraph()
	plan, err := minibuckets.NewPlan(h, m.Order, m.Entries)
	if err != nil {
		return nil, err
	}
	if plan.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget, "search: mini-buckets need %.3g bytes, %d are allowed", plan.Bytes, memory)
	}
	s := &marginal{
		ctx: ctx, tables: tables, memory: memory, left: flops, at: make([]int, len(h.Dims)), lower: math.Inf(-1), closed: math.Inf(-1),
	}
	plan.Maximal = make([]bool, len(h.Dims))
	for _, i := range descent.Free(tables) {
		plan.Maximal[i] = true
	}
	for k := len(plan.Order) - 1; k >= 0; k-- {
		switch i := plan.Order[k]; {
		case plan.Maximal[i]:
			s.levels = append(s.levels, level{k, i, h.Dims[i]})
		case h.Dims[i] > 1 && len(s.levels) < len(descent.Free(tables)):
			return nil, fault.New(fault.Internal, "search: the order sums index %d out after a maximum", i)
		}
	}
	if s.bound, err = minibuckets.Run(ctx, tables.Terms(), plan, 0); err != nil {
		return nil, err
	}
	s.left -= plan.Flops + plan.Matching
	moves := max(1, int64(leafShare*flops/policy.MoveFlops))
	s.inner, err = descent.NewInner(ctx, tables, descent.PlanOptions{Memory: memory / 2, Moves: moves}, threads)
	if err == nil && s.inner.Cost.Flops <= flops/2 || err != nil && fault.CodeOf(err) != fault.OverBudget {
		return s, err
	}
	s.inner = nil
	order, err := descent.Constrained(ctx, tables, policy.MostFill)
	if err != nil {
		return nil, err
	}
	order = slices.DeleteFunc(order, func(i int) bool { return plan.Maximal[i] })
	s.leaf, _, err = buckets(descent.At(tables, s.at).Hypergraph(), order, leafShare*flops, float64(1+len(belows)), float64(memory/2))
	return s, err
}

// run searches until nothing better is left, the work is done or the context ends, and returns ln of a bound of all assignments.
func (s *marginal) run() (bound float64, err error) {
	s.push(s.bound.Ln, nil)
	for dives := 0; len(s.open) > 0; dives++ {
		if s.open[0].ln <= s.enough() || dives > 0 && s.over() {
			break
		}
		n := heap.Pop(&s.open).(partial)
		first := s.best == nil
		if err := s.dive(n); err != nil {
			if s.ctx.Err() != nil && s.best != nil { // the time is over
				s.closed = max(s.closed, n.ln)
				break
			}
			return 0, err
		}
		if first && s.best != nil && s.inner != nil {
			if err := s.improve(); err != nil && s.ctx.Err() == nil {
				return 0, err
			}
		}
	}
	bound = max(s.closed, s.lower)
	if len(s.open) > 0 {
		bound = max(bound, s.open[0].ln)
	}
	return bound, nil
}

// enough is the bound up to which a node is of no interest.
func (s *marginal) enough() float64 { return s.lower + slackShare*btn.Tolerance }

// over reports whether the work, the memory or the time has ended.
func (s *marginal) over() bool { return s.left <= 0 || s.bytes > s.memory/4 || s.ctx.Err() != nil }

func (s *marginal) push(ln float64, last *link) {
	s.serial++
	s.bytes += 2 * openBytes // a link stays where a later node has it
	heap.Push(&s.open, partial{ln, s.serial, last})
}

// dive follows the best value of every index below a node. The others are open then.
func (s *marginal) dive(n partial) error {
	for l := n.last; l != nil; l = l.before {
		s.at[s.levels[l.depth-1].index] = l.value
	}
	ln, last := n.ln, n.last
	for d, l := range s.levels[last.at():] {
		s.left -= changeWork * float64(l.domain)
		best, most := -1, math.Inf(-1)
		lns := make([]float64, l.domain)
		for a := range lns {
			s.at[l.index] = a
			if lns[a] = min(ln, ln+s.bound.Change(l.position, s.at)); lns[a] > most {
				best, most = a, lns[a]
			}
		}
		for a, x := range lns {
			switch {
			case a == best:
			case x <= s.enough():
				s.closed = max(s.closed, x)
			default:
				s.push(x, &link{last, n.last.at() + d + 1, a})
			}
		}
		if ln = most; ln <= s.enough() || best < 0 {
			s.closed = max(s.closed, ln)
			return nil
		}
		s.at[l.index] = best
		last = &link{last, n.last.at() + d + 1, best}
	}
	lower, upper, err := s.weigh()
	if err == nil {
		s.offer(lower, min(upper, max(ln, lower)))
	}
	return err
}

// offer takes the assignment of s.at where it is better than the best.
func (s *marginal) offer(lower, upper float64) bool {
	s.closed = max(s.closed, upper)
	if lower <= s.lower {
		return false
	}
	s.best, s.lower, s.upper = append(s.best[:0], s.at...), lower, upper
	return true
}

// weigh is ln of the weight of the assignment of s.at, or its bounds.
func (s *marginal) weigh() (lower, upper float64, err error) {
	if s.inner != nil {
		s.left -= s.inner.Cost.Flops + leafWork*float64(len(s.tables.Terms().Tables))
		lower, err = s.inner.Ln(s.ctx, s.at)
		return lower, lower, err
	}
	e := descent.At(s.tables, s.at)
	s.left -= float64(1+len(belows))*s.leaf.Flops + s.leaf.Matching + leafWork*float64(len(e.Tables))
	b, err := minibuckets.Run(s.ctx, e, s.leaf, 0)
	if err != nil {
		return 0, 0, err
	}
	upper, lower = b.Ln, math.Inf(-1)
	for _, below := range belows {
		if b, err = minibuckets.Run(s.ctx, e, s.leaf, below); err != nil {
			return 0, 0, err
		}
		if b.Ln > lower { // not where it is no number
			lower = b.Ln
		}
	}
	return min(lower, upper), upper, nil
}

// improve changes one value of the best assignment at a time, as long as that is better, for a part of the work.
func (s *marginal) improve() error {
	reserve := (1 - improveShare) * s.left
	copy(s.at, s.best)
	for better := true; better; {
		better = false
		for _, l := range s.levels {
			for a := range l.domain {
				if s.left <= reserve {
					return nil
				}
				if a == s.best[l.index] {
					continue
				}
				s.at[l.index] = a
				lower, upper, err := s.weigh()
				if err != nil {
					return err
				}
				better = s.offer(lower, upper) || better
			}
			s.at[l.index] = s.best[l.index]
		}
	}
	return nil
}
