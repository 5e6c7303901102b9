package branching

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Options bound a search. The zero value of every field is its default.
type Options struct {
	Work  int64 // entries of tables that are looked at; 0: no limit. The search may exceed it by what one variable takes.
	Open  int64 // bytes of open nodes, default 256 MiB: beyond, the search is a depth-first one; and as many of mini-buckets
	Best  int   // assignments of least cost that are looked for; 0: one
	Start []int // an assignment that is known before the search; nil: none
}

// Result is what a search has found.
type Result struct {
	Values []int   // nil where no assignment was found
	Cost   float64 // of Values, nats
	// Others are the next ones in the order of their costs, where more than one was looked for.
	Others [][]int
	// Bound in nats: no assignment costs less, and where more than one was looked for, none that is not listed; +Inf where none is possible.
	Bound float64
	// Proved says that the search is complete: the cost of the last one listed less Bound is rounding alone.
	Proved bool
	Stats  Stats
}

// Solve looks for an assignment of least cost. For the same network and options, and a context that does not end, the result is the same.
// When the context ends, the result is what is known by then, without an error.
//
// Errors: bad_input for a network that is none and for a start of another one, over_budget for tables beyond MostEntries.
func Solve(ctx context.Context, n *Network, o Options) (*Result, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if o.Start != nil && !n.has(o.Start) {
		return nil, fault.New(fault.BadInput, "search: the assignment to start from is none of the network")
	}
	if o.Open <= 0 {
		o.Open = 256 << 20
	}
	s, isPossible := newSolver(ctx, n)
	if !isPossible {
		return &Result{Cost: math.Inf(1), Bound: math.Inf(1), Proved: true}, nil
	}
	s.most, s.room, s.count = o.Work, o.Open, o.Best
	if o.Start != nil {
		s.offer(o.Start)
	}
	s.enter()
	return s.result(), nil
}

// result searches what is open, and returns what was found.
func (s *solver) result() *Result {
	s.search()
	lower := min(s.ub, s.floor)
	for _, n := range s.open {
		lower = min(lower, n.bound)
	}
	lower = max(lower, min(s.below, s.ub))
	r := &Result{Values: s.best, Cost: s.bestReal, Bound: s.base + float64(lower)*s.unit, Proved: lower >= s.bestCost, Stats: s.stats}
	r.Stats.Work = s.work
	if lower >= s.forbidden {
		r.Bound = math.Inf(1)
	}
	if s.count < 2 {
		r.Bound = min(r.Bound, r.Cost)
		return r
	}
	slices.SortFunc(s.top, func(a, b listed) int {
		return cmp.Or(cmp.Compare(a.real, b.real), slices.Compare(a.values, b.values))
	})
	for k, l := range s.top {
		if k == 0 {
			r.Values, r.Cost = l.values, l.real
		} else {
			r.Others = append(r.Others, l.values)
		}
	}
	return r
}

// step is a decision: values of x kept or taken out.
type step struct {
	x      int32
	out    bool
	values []int32
}

// frame is a decision of a dive whose other side is to be done.
type frame struct {
	path  int   // steps before it
	bound int64 // of the node before it
	other step
}

// node is an open one.
type node struct {
	bound  int64
	serial int64
	path   []step
}

type openNodes []*node

func (o openNodes) Len() int { return len(o) }
func (o openNodes) Less(i, j int) bool {
	a, b := o[i], o[j]
	return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.serial, b.serial)) < 0
}
func (o openNodes) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *openNodes) Push(x any)   { *o = append(*o, x.(*node)) }
func (o *openNodes) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// Limits of a dive in backtracks: doubled where more than a tenth of the nodes are restored ones, halved where less than a twentieth is.
const mostDive = 1 << 14

// enter makes the root an open node, unless that is the whole search.
func (s *solver) enter() {
	s.floor = math.MaxInt64
	s.begin()
	if s.root() {
		heap.Push(&s.open, &node{bound: s.mem[s.bound]})
	}
	s.limit, s.explored = 1, s.work
}

// search goes on until nothing is open.
func (s *solver) search() {
	for len(s.open) > 0 && !s.stopped {
		if s.work >= 2*s.explored {
			s.explored = s.work
			s.explore()
			explored := s.work
			decompose(s)
			s.explored += s.work - explored
		}
		least := s.open[0]
		if max(least.bound, s.below) >= s.ub {
			s.open = s.open[:0]
			return
		}
		heap.Pop(&s.open)
		s.used -= least.bytes()
		s.dive(least, s.limit)
		switch {
		case s.stats.Restored > s.stats.Nodes/10 && s.limit < mostDive:
			s.limit *= 2
		case s.stats.Restored < s.stats.Nodes/20 && s.limit > 1:
			s.limit /= 2
		}
	}
}

// root makes the network consistent, and its costs such that the bound is high.
func (s *solver) root() bool {
	top := int64(0)
	for x := range s.vars {
		for _, c := range s.mem[s.vars[x].unary:][:s.vars[x].d] {
			if c < s.forbidden {
				top = max(top, c)
			}
		}
	}
	for k := range s.arcs {
		for _, c := range s.arcs[k].table {
			if c < s.forbidden {
				top = max(top, c)
			}
		}
	}
	for k := range s.wides {
		for _, c := range s.wides[k].table {
			if c < s.forbidden {
				top = max(top, c)
			}
		}
	}
	s.small = top >> 10
	for x := range s.vars {
		if !s.settle(int32(x)) {
			return false
		}
		if s.vars[x].d == 1 {
			s.fixed = append(s.fixed, int32(x))
		}
		s.lost.add(x)
		s.check.add(x)
		s.loose.add(x)
	}
	if !s.propagate() {
		return false
	}
	for range 2 {
		if !s.turn() {
			return false
		}
	}
	before, raised := s.mem[s.bound], int64(0)
	if !aside(s, func() bool {
		possible := s.raiseVirtually()
		raised = s.mem[s.bound]
		return possible
	}) {
		return false
	}
	if raised-before > (s.ub-raised)/virtualLead && !s.raiseVirtually() {
		return false
	}
	s.trail = s.trail[:0]
	if !s.spread() {
		return false
	}
	if raised-s.mem[s.bound] > (s.ub-raised)/virtualLead && (!s.raiseVirtually() || !s.spread()) {
		return false
	}
	if !s.everywhere() {
		return false
	}
	s.round()
	s.explore()
	ok := s.propagate()
	s.trail = s.trail[:0]
	return ok
}

// everywhere makes the network consistent as if every variable had lost values.
func (s *solver) everywhere() bool {
	for x := range s.vars {
		s.lost.add(x)
		s.check.add(x)
	}
	return s.propagate()
}

func (n *node) bytes() int64 {
	size := int64(64)
	for _, p := range n.path {
		size += 40 + 4*int64(len(p.values))
	}
	return size
}

// apply makes a decision. It reports false where no value is left.
func (s *solver) apply(d step) bool {
	v := &s.vars[d.x]
	if d.out {
		for _, a := range d.values {
			if s.isLive(d.x, a) && !s.remove(d.x, a) {
				return false
			}
		}
	} else {
		for k := int(s.mem[v.size]) - 1; k >= 0; k-- {
			if a := v.live[k]; !slices.Contains(d.values, a) && !s.remove(d.x, a) {
				return false
			}
		}
	}
	return s.settle(d.x)
}

// again makes a decision of an open node. The variable may have been fixed by then, or eliminated: that it does for all of its values.
func (s *solver) again(d step) bool {
	switch s.mem[s.vars[d.x].state] {
	case open:
		return s.apply(d)
	case assigned:
		return slices.Contains(d.values, s.vars[d.x].live[0]) != d.out
	}
	return true
}

// dive searches below an open node, depth first, for at most limit backtracks. What is left becomes open.
func (s *solver) dive(from *node, limit int64) {
	s.push()
	path := append(s.path[:0], from.path...)
	ok := true
	for _, d := range path {
		s.stats.Restored++
		if s.stopped {
			s.keep(from.path, from.bound)
			s.pop()
			return
		}
		if ok = s.again(d); ok {
			ok = s.propagate()
		}
		if !ok {
			break
		}
	}
	if ok {
		s.deepen(path, limit, math.MaxInt64, func(path []step, bound int64) { s.keep(path, max(bound, from.bound)) })
	}
	s.pop()
}

// deepen searches below a consistent node, depth first, for at most limit backtracks. keep takes the paths left, with their bounds.
// Without keep the search ends there, or where the work reaches end. complete reports that nothing is left.
func (s *solver) deepen(path []step, limit, end int64, keep func(path []step, bound int64)) (complete bool) {
	base := len(s.marks)
	frames := s.frames[:0]
	left, ok := limit, true
	for {
		if keep == nil && (s.stopped || s.work > end) {
			break
		}
		if ok && s.stopped {
			keep(path, s.mem[s.bound])
			ok = false
		}
		if ok && s.mem[s.openVars] == 0 {
			s.leaf()
			ok = false
		}
		if ok {
			one, other := s.branch()
			frames = append(frames, frame{len(path), s.mem[s.bound], other})
			path = append(path, one)
			s.push()
			s.stats.Nodes++
			ok = s.apply(one) && s.propagate()
			continue
		}
		if len(frames) == 0 {
			complete = true
			break
		}
		// back
		s.stats.Backtracks++
		left--
		f := frames[len(frames)-1]
		frames = frames[:len(frames)-1]
		s.pop()
		path = append(path[:f.path], f.other)
		s.last = f.other.x
		if f.bound >= s.ub {
			continue
		}
		if s.stopped || left < 0 && (keep == nil || s.used < s.room) {
			if keep == nil {
				break
			}
			keep(path, f.bound)
			continue
		}
		s.stats.Nodes++
		ok = s.apply(f.other) && s.propagate()
	}
	s.path, s.frames = path, frames
	for len(s.marks) > base {
		s.pop()
	}
	return complete
}

// keep makes a path an open node.
func (s *solver) keep(path []step, bound int64) {
	s.serial++
	n := &node{bound: bound, serial: s.serial, path: slices.Clone(path)}
	s.used += n.bytes()
	heap.Push(&s.open, n)
	s.stats.Open = max(s.stats.Open, len(s.open))
}

// leaf takes the assignment of a node without open variables.
func (s *solver) leaf() {
	s.stats.Leaves++
	if s.count > 1 {
		s.completions()
	}
	s.complete()
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
	if s.count < 2 && s.mem[s.bound] < s.ub { // costs that were too far to be moved
		s.floor = min(s.floor, s.mem[s.bound])
	}
}

// offer takes an assignment that is better than the best.
func (s *finder) offer(values []int) {
	real := s.net.Cost(values)
	if math.IsInf(real, 1) {
		return
	}
	if real < s.bestReal {
		s.bestReal = real
		s.best = append(s.best[:0], values...)
	}
	cost := s.costOfAll(values)
	switch {
	case cost >= s.ub:
	case s.count < 2:
		s.ub, s.bestCost = cost, cost
	default:
		s.enlist(listed{slices.Clone(values), cost, real})
	}
}

// costOfAll is the cost of an assignment in units, as rounded.
func (s *finder) costOfAll(values []int) int64 {
	cost := int64(0)
	for x, a := range values {
		cost += s.given[x][a]
	}
	for k := 0; k < s.wideAt; k++ {
		e := &s.arcs[2*k]
		cost += e.table[values[e.from]*s.vars[e.to].d+values[e.to]]
	}
	for k := range s.wides[:s.nWide] {
		w := &s.wides[k]
		at := 0
		for i, x := range w.scope {
			at += values[x] * int(w.stride[i])
		}
		cost += w.table[at]
	}
	return cost
}

// fewValues is the number of live values up to which one value is tried, beyond half of them.
const fewValues = 10

// branch chooses a variable, and two sets of its values.
func (s *solver) branch() (one, other step) {
	x := s.last
	if x < 0 || !s.isOpen(x) {
		x = s.heaviest()
	}
	v := &s.vars[x]
	live := s.alive(x)
	if len(live) <= fewValues {
		a := v.best
		if !s.isLive(x, a) || s.mem[v.unary+int(a)] > 0 {
			for _, b := range live {
				if s.mem[v.unary+int(b)] == 0 {
					a = b
					break
				}
			}
		}
		values := []int32{a}
		return step{x, false, values}, step{x, true, values}
	}
	values := slices.Clone(live)
	slices.SortFunc(values, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.mem[v.unary+int(a)], s.mem[v.unary+int(b)]), cmp.Compare(a, b))
	})
	values = values[:len(values)/2]
	return step{x, false, values}, step{x, true, values}
}

// weightOf is the number of conflicts of a function of the network, and 1 for one made on the way, which all count theirs together.
func (s *solver) weightOf(k int) int64 {
	if k == len(s.weight)-1 {
		return 1
	}
	return s.weight[k]
}

// heaviest is the open variable with the fewest values for the weight of its functions.
func (s *solver) heaviest() int32 {
	best, least := int32(-1), math.Inf(1)
	s.work += int64(len(s.vars))
	for x := range s.vars {
		v := &s.vars[x]
		if s.mem[v.state] != open {
			continue
		}
		sum := int64(1)
		for _, id := range v.arcs {
			if s.mem[s.arcs[id].on] != 0 {
				sum += s.weightOf(s.pair(id))
			}
		}
		for _, id := range v.wide {
			if s.mem[s.wides[id].on] != 0 {
				sum += s.weightOf(s.group(id))
			}
		}
		if r := float64(s.mem[v.size]) / float64(sum); r < least {
			best, least = int32(x), r
		}
	}
	return best
}
