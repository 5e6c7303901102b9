// Package andor finds the least sum of costs over a network of moderate width: depth-first branch and bound along a pseudo tree, with what
// was found below a variable remembered by the values of its separator. Mini-buckets bound the rest.
//
// Marinescu and Dechter, AND/OR branch-and-bound search for combinatorial optimization in graphical models, Artificial Intelligence 2009;
// Kask and Dechter, A general scheme for automatic generation of search heuristics from specification dependencies, 2001; Ihler, Flerova,
// Dechter and Otten, Join-graph based cost-shifting schemes, UAI 2012.
package andor

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

const (
	firstEntries = 16.0 // of the least products
	mostEntries  = 1 << 27
	entryBytes   = 16
	mostShare    = 3.0 / 4 // of the memory for mini-buckets; the rest remembers
	planWork     = 16      // of a plan of mini-buckets, per variable. Chosen.
	moveShare    = 2.0 / 3 // of an entry looked at in the time of an operation on a graph. Measured elsewhere: 10 ns of 16.
)

// Search is a network, a pseudo tree of it and what was found so far. The zero values of its results say nothing.
type Search struct {
	Work  int64 // entries of tables looked at so far
	Nodes int64 // variables looked at under a separator's values that were not remembered
	Bound int64 // no assignment costs less

	dims      []int
	functions []minibuckets.Costs
	shape     contractionorder.Hypergraph
	room      float64 // bytes
	entries   float64 // of a product; 0: no mini-buckets yet
	split     bool    // products were divided: larger ones may bound better
	ready     bool    // there are mini-buckets

	order   []int
	nodes   []node // by variable
	roots   []int
	values  []int
	memory  [][]entry // by variable; nil: nothing is remembered
	costs   []int64   // stack of the levels' costs
	end     int64     // of the work
	pace    *pace.Pace
	stopped bool
}

// node is a variable of the pseudo tree.
type node struct {
	separator []int // its ancestors that it or a descendant shares a function with, the root first
	children  []int
	own       []term   // functions whose last variable it is, on the way down
	below     [][]term // by child: messages out of the child's tree
	constant  int64    // of the bound of its tree
}

// term is a table whose variables have values.
type term struct {
	of     []int64
	vars   []int
	stride []int
	at     int // stride of the node's own variable, 0 for none
}

// entry is what is known below a variable: its least cost, or a bound of it.
type entry struct {
	key   uint64 // 1 + the separator's values; 0: nothing
	known int64  // 2·cost, and 1 for a cost that is reached
}

// New plans a search along the best of some min-fill orders, for some operations on the graph. It returns nil where that is too little.
// The search keeps room bytes at most. The only error is the context's.
func New(ctx context.Context, dims []int, functions []minibuckets.Costs, room, work int64) (*Search, error) {
	s := &Search{dims: dims, functions: functions, room: float64(room), shape: contractionorder.Hypergraph{Dims: dims}, Bound: math.MinInt64}
	for _, f := range functions {
		s.shape.Edges = append(s.shape.Edges, f.Scope)
	}
	moves := int64(float64(work) / moveShare)
	_, within, err := contractionorder.MinFillWithin(ctx, s.shape, math.MaxInt32, moves/4)
	if err != nil || !within {
		return nil, err
	}
	order, moves, err := contractionorder.BestWithin(ctx, s.shape, moves/2)
	if err != nil {
		return nil, err
	}
	s.Work += int64(float64(moves) * moveShare)
	s.order = order
	s.grow()
	return s, nil
}

// grow makes the pseudo tree: the parent of a variable is the first of its neighbours to be eliminated after it.
func (s *Search) grow() {
	n := len(s.dims)
	place := make([]int, n)
	for k, v := range s.order {
		place[v] = k + 1
	}
	for v, k := range place {
		if k == 0 { // of one value
			s.order = append(s.order, v)
			place[v] = len(s.order)
		}
	}
	s.nodes = make([]node, n)
	s.values = make([]int, n)
	add := func(scope []int) {
		if len(scope) == 0 {
			return
		}
		v := &s.nodes[earliest(scope, place)]
		for _, u := range scope {
			if v != &s.nodes[u] && !slices.Contains(v.separator, u) {
				v.separator = append(v.separator, u)
			}
		}
	}
	for _, f := range s.functions {
		add(f.Scope)
	}
	for _, v := range s.order {
		own := &s.nodes[v]
		slices.SortFunc(own.separator, func(a, b int) int { return place[b] - place[a] })
		add(own.separator)
		if k := len(own.separator); k > 0 {
			parent := &s.nodes[own.separator[k-1]]
			parent.children = append(parent.children, v)
		} else {
			s.roots = append(s.roots, v)
		}
	}
}

// earliest is the variable of a scope that is eliminated first.
func earliest(scope, place []int) int {
	return slices.MinFunc(scope, func(a, b int) int { return place[a] - place[b] })
}

// Widen bounds the network by the largest mini-buckets that so much work and the memory allow. It reports false where that are none larger
// than before. Errors: the context's, and minibuckets'.
func (s *Search) Widen(ctx context.Context, work int64) (wider bool, err error) {
	var best *minibuckets.Plan
	size := s.entries
	if s.entries > 0 && !s.split {
		return false, nil
	}
	for next := max(firstEntries, 2*size); next <= mostEntries; next *= 2 {
		p, err := minibuckets.NewPlan(s.shape, s.order, next)
		if err != nil {
			return false, err
		}
		s.Work += planWork * int64(len(s.order))
		if p.LeastWork() > float64(work) || p.LeastBytes() > mostShare*s.room {
			break
		}
		if best, size = p, next; p.Split == 0 {
			break
		}
	}
	if best == nil {
		return false, nil
	}
	s.ready = false
	for v := range s.nodes { // the old ones make room
		s.nodes[v].own, s.nodes[v].below = nil, nil
	}
	s.Work += int64(best.LeastWork())
	least, err := minibuckets.RunLeast(ctx, s.functions, best)
	if err != nil || least == nil {
		s.entries, s.split = mostEntries, false
		return false, err
	}
	s.entries, s.split = size, best.Split > 0
	s.Bound = max(s.Bound, least.Bound)
	s.hang(best.Order, least)
	s.ready = true
	return true, nil
}

// hang gives the tables to the variables that look at them.
func (s *Search) hang(order []int, least *minibuckets.Least) {
	place := make([]int, len(s.dims))
	for k, v := range order {
		place[v] = k
	}
	table := func(t, v int) term {
		c := &least.Tables[t]
		x := term{of: c.Of, stride: make([]int, len(c.Scope)), vars: c.Scope}
		step := 1
		for i := len(c.Scope) - 1; i >= 0; i-- {
			if c.Scope[i] == v {
				x.at = step
			} else {
				x.stride[i] = step
			}
			step *= s.dims[c.Scope[i]]
		}
		return x
	}
	for t := range s.functions {
		if scope := s.functions[t].Scope; len(scope) > 0 {
			v := earliest(scope, place)
			s.nodes[v].own = append(s.nodes[v].own, table(t, v))
		}
	}
	out := make([][]int, len(s.dims)) // messages out of the tree below a variable
	constant := make([]int64, len(s.dims))
	for k, v := range order {
		n := &s.nodes[v]
		n.below = make([][]term, len(n.children))
		for i, c := range n.children {
			constant[v] += constant[c]
			for _, t := range out[c] {
				n.below[i] = append(n.below[i], table(t, v))
				if earliest(least.Tables[t].Scope, place) != v {
					out[v] = append(out[v], t)
				}
			}
		}
		for _, t := range least.Messages[k] {
			if len(least.Tables[t].Scope) > 0 {
				out[v] = append(out[v], t)
			} else {
				constant[v] = min(constant[v]+least.Tables[t].Of[0], minibuckets.Forbidden)
			}
		}
		n.constant = constant[v]
	}
}

// base is where a table is looked at for the first value of the node's variable.
func (s *Search) base(t *term) (at int) {
	for i, v := range t.vars {
		at += s.values[v] * t.stride[i]
	}
	return at
}

// look appends to the stack, for the variable under its separator's values: a bound of every value's cost, then by value and child a bound
// of the tree below the child. It returns where they begin.
func (s *Search) look(n *node, d int) (at int) {
	at = len(s.costs)
	kids := len(n.children)
	s.costs = slices.Grow(s.costs, d*(1+kids))[:at+d*(1+kids)]
	bounds, below := s.costs[at:at+d], s.costs[at+d:]
	clear(bounds)
	for k := range below {
		below[k] = s.nodes[n.children[k%kids]].constant
	}
	work := d
	for k := range n.own {
		t := &n.own[k]
		from := t.of[s.base(t):]
		for a := range bounds {
			bounds[a] = min(bounds[a]+from[a*t.at], minibuckets.Forbidden)
		}
		work += d + len(t.vars)
	}
	for i := range n.below {
		for k := range n.below[i] {
			t := &n.below[i][k]
			from := t.of[s.base(t):]
			for a := range bounds {
				x := &below[a*kids+i]
				*x = min(*x+from[a*t.at], minibuckets.Forbidden)
			}
			work += d + len(t.vars)
		}
		for a := range bounds {
			bounds[a] = min(bounds[a]+below[a*kids+i], minibuckets.Forbidden)
		}
	}
	s.Work += int64(work)
	if s.Work > s.end || s.pace.Over(int64(work)) {
		s.stopped = true
	}
	return at
}

// Dive returns the assignment that follows the bounds, the root first. Mini-buckets have to be there.
func (s *Search) Dive() []int {
	s.end = math.MaxInt64
	for k := len(s.order) - 1; k >= 0; k-- {
		v := s.order[k]
		at := s.look(&s.nodes[v], s.dims[v])
		best := 0
		for a, c := range s.costs[at : at+s.dims[v]] {
			if c < s.costs[at+best] {
				best = a
			}
		}
		s.values[v] = best
		s.costs = s.costs[:at]
	}
	return slices.Clone(s.values)
}

// Solve looks for an assignment that costs less than so much, for so much work, and raises Bound to that where there is none. values is the
// one of least cost, nil where there is none or it was not found; what was found stays for the next time.
func (s *Search) Solve(ctx context.Context, below, work int64) (values []int) {
	if !s.ready {
		return nil
	}
	s.remember()
	s.end, s.pace, s.stopped, s.costs = s.Work+work/2, pace.New(ctx), false, s.costs[:0]
	sum := int64(0)
	for _, f := range s.functions {
		if len(f.Scope) == 0 {
			sum += f.Of[0]
		}
	}
	for _, v := range s.roots {
		sum += s.nodes[v].constant
	}
	costs := make([]int64, len(s.roots))
	for i, v := range s.roots {
		if sum >= below {
			break
		}
		bound := s.nodes[v].constant
		costs[i] = max(bound, s.solve(v, below-sum+bound))
		if s.stopped {
			return nil
		}
		sum += costs[i] - bound
	}
	s.Bound = max(s.Bound, min(sum, below))
	if sum >= below {
		return nil
	}
	s.end += work / 2
	for i, v := range s.roots {
		if !s.assign(v, costs[i]) {
			return nil
		}
	}
	return slices.Clone(s.values)
}

// solve returns the least cost of the tree of a variable under its separator's values where that is less than below, or else a bound of it
// that is not. When the search stops it returns nothing of use.
func (s *Search) solve(v int, below int64) int64 {
	known, key := s.recall(v)
	if known != nil && known.key == key && (known.known&1 == 1 || known.known>>1 >= below) {
		return known.known >> 1
	}
	n, d := &s.nodes[v], s.dims[v]
	s.Nodes++
	at := s.look(n, d)
	least, best := int64(minibuckets.Forbidden), below
	for range d {
		a := cheapest(s.costs[at : at+d])
		sum := s.costs[at+a]
		if sum >= best || s.stopped {
			least = min(least, sum)
			break
		}
		s.costs[at+a] = math.MaxInt64
		sum, _ = s.children(v, a, at+d, sum, best, nil)
		least, best = min(least, sum), min(best, sum)
	}
	s.costs = s.costs[:at]
	if known != nil && !s.stopped {
		*known = entry{key, 2 * least}
		if least < below {
			known.known++
		}
	}
	return least
}

// cheapest is the first of the least costs.
func cheapest(costs []int64) (best int) {
	for a, c := range costs {
		if c < costs[best] {
			best = a
		}
	}
	return best
}

// children gives v its value a and searches the trees below, whose bounds begin at a place of the stack: sum is the cost so far with them.
// It ends where that reaches below. each takes the trees' costs.
func (s *Search) children(v, a, at int, sum, below int64, each []int64) (cost int64, whole bool) {
	s.values[v] = a
	kids := s.nodes[v].children
	for i, c := range kids {
		bound := s.costs[at+a*len(kids)+i]
		own := max(bound, s.solve(c, below-sum+bound))
		if sum += own - bound; s.stopped || sum >= below {
			return sum, false
		}
		if each != nil {
			each[i] = own
		}
	}
	return sum, true
}

// assign gives values to the tree of a variable whose least cost is known. It reports false where the search stops before.
func (s *Search) assign(v int, cost int64) bool {
	n, d := &s.nodes[v], s.dims[v]
	at := s.look(n, d)
	each := make([]int64, len(n.children))
	found := false
	for range d {
		a := cheapest(s.costs[at : at+d])
		sum := s.costs[at+a]
		if sum > cost || s.stopped {
			break
		}
		s.costs[at+a] = math.MaxInt64
		if _, found = s.children(v, a, at+d, sum, cost+1, each); found {
			break
		}
	}
	s.costs = s.costs[:at]
	for i, c := range n.children {
		found = found && s.assign(c, each[i])
	}
	return found && !s.stopped
}

// remember makes the tables of what was found below a variable: for all but those whose parent has the same separator but for itself, where
// nothing is met again. They take what mini-buckets leave of the memory, in equal parts.
func (s *Search) remember() {
	if s.memory != nil {
		return
	}
	s.memory = make([][]entry, len(s.nodes))
	var list []int
	for v := range s.nodes {
		sep := s.nodes[v].separator
		if k := len(sep); k > 0 && len(s.nodes[sep[k-1]].separator) != k-1 && s.separators(v) < 1<<62 {
			list = append(list, v)
		}
	}
	for _, v := range list {
		size := 1
		for most := min((1-mostShare)*s.room/entryBytes/float64(len(list)), s.separators(v)); 2*float64(size) <= most; {
			size *= 2
		}
		s.memory[v] = make([]entry, size)
	}
}

// separators is the number of values of a variable's separator.
func (s *Search) separators(v int) float64 {
	n := 1.0
	for _, u := range s.nodes[v].separator {
		n *= float64(s.dims[u])
	}
	return n
}

// recall returns the place of what is known below v under its separator's values, nil for none, and their key.
func (s *Search) recall(v int) (known *entry, key uint64) {
	m := s.memory[v]
	if m == nil {
		return nil, 0
	}
	s.Work += int64(len(s.nodes[v].separator))
	for _, u := range s.nodes[v].separator {
		key = key*uint64(s.dims[u]) + uint64(s.values[u])
	}
	h := key * 0x9e3779b97f4a7c15
	h = (h ^ h>>29) * 0xbf58476d1ce4e5b9
	return &m[(h^h>>32)&uint64(len(m)-1)], key + 1
}
