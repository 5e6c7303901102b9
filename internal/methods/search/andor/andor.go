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
	firstEntries = 16.0 // entries of a product in the smallest mini-buckets
	maxEntries   = 1 << 27
	entryBytes   = 16
	bucketShare  = 3.0 / 4 // of the memory, for mini-buckets; the remainder is for what is remembered
	planWork     = 16      // of a plan of mini-buckets, per variable. Chosen.
	moveShare    = 2.0 / 3 // time of an operation on a graph, in that of an entry looked at. Measured elsewhere: 10 ns of 16.
)

// Search is a network, a pseudo tree of it and what was found so far. The results of its zero value mean nothing.
type Search struct {
	Work  int64 // entries of tables looked at so far
	Nodes int64 // variables searched under separator values that were not remembered
	Bound int64 // no assignment costs less

	dims           []int
	functions      []minibuckets.Costs
	shape          contractionorder.Hypergraph
	memoryLimit    float64 // bytes
	productEntries float64 // limit of the present mini-buckets' products; 0: there are none yet
	wasSplit       bool    // buckets were split into several products: larger ones may bound better
	hasMiniBuckets bool

	order     []int     // of elimination; the way down is the other way round
	nodes     []node    // by variable
	roots     []int     // variables
	values    []int     // assignment under way, by variable
	memory    [][]entry // by variable: a hash table of what is known below it; nil: nothing is remembered
	costStack []int64   // costs of all levels on the way down, as pushBounds writes them
	workEnd   int64     // Work at which the search stops
	pace      *pace.Pace
	stopped   bool
}

// node is a variable of the pseudo tree.
type node struct {
	separator []int    // its ancestors that it or a descendant shares a function with, the root first
	children  []int    // variables
	functions []term   // whose last variable on the way down it is
	messages  [][]term // by child: tables that bound the child's tree
	constant  int64    // of the bound of its tree
}

// term is a table whose variables all have values when its node is searched.
type term struct {
	table     []int64
	vars      []int
	strides   []int // by place in vars; 0 for the node's variable
	ownStride int   // of the node's variable; 0: the table does not depend on it
}

// entry is what is known of the tree below a variable under the values of its separator.
type entry struct {
	key   uint64 // number of the separator's values as digits, from 1; 0: nothing is known
	value int64  // twice a lower bound of the least cost, plus 1 if the bound is the least cost
}

// isExact reports whether cost is the least cost of the tree, and not only a bound.
func (e *entry) isExact() bool { return e.value&1 == 1 }

// cost returns the least cost of the tree, or a lower bound of it.
func (e *entry) cost() int64 { return e.value >> 1 }

// New plans a search along the best of several min-fill orders, for which it takes that work. It returns nil if the work is not enough for
// an order. The search takes memory of at most room bytes. The only error is that of the context.
func New(ctx context.Context, dims []int, functions []minibuckets.Costs, room, work int64) (*Search, error) {
	s := &Search{
		dims: dims, functions: functions, memoryLimit: float64(room), shape: contractionorder.Hypergraph{Dims: dims}, Bound: math.MinInt64,
	}
	for _, f := range functions {
		s.shape.Edges = append(s.shape.Edges, f.Scope)
	}
	moves := int64(float64(work) / moveShare) // operations on the graph
	_, isWithin, err := contractionorder.MinFillWithin(ctx, s.shape, math.MaxInt32, moves/4)
	if err != nil || !isWithin {
		return nil, err
	}
	order, moves, err := contractionorder.BestWithin(ctx, s.shape, moves/2)
	if err != nil {
		return nil, err
	}
	s.Work += int64(float64(moves) * moveShare)
	s.order = order
	s.buildPseudoTree()
	return s, nil
}

// buildPseudoTree sets separators, children and roots. The parent of a variable is the first of its neighbours to be eliminated after it,
// in the graph where the neighbours of an eliminated variable are joined. Variables that the order leaves out come last in it.
func (s *Search) buildPseudoTree() {
	n := len(s.dims)
	place := make([]int, n) // in the order, from 1; 0: not in it
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
	for _, f := range s.functions {
		s.addToSeparator(f.Scope, place)
	}
	for _, v := range s.order {
		separator := s.nodes[v].separator
		slices.SortFunc(separator, func(a, b int) int { return place[b] - place[a] })
		s.addToSeparator(separator, place)
		if k := len(separator); k > 0 {
			parent := &s.nodes[separator[k-1]]
			parent.children = append(parent.children, v)
		} else {
			s.roots = append(s.roots, v)
		}
	}
}

// addToSeparator adds the variables of a scope to the separator of the one that is eliminated first. It does nothing for an empty scope.
func (s *Search) addToSeparator(scope, place []int) {
	if len(scope) == 0 {
		return
	}
	first := firstEliminated(scope, place)
	n := &s.nodes[first]
	for _, u := range scope {
		if u != first && !slices.Contains(n.separator, u) {
			n.separator = append(n.separator, u)
		}
	}
}

// firstEliminated returns the variable of a scope that is eliminated first. place has the places in the order of elimination.
func firstEliminated(scope, place []int) int {
	return slices.MinFunc(scope, func(a, b int) int { return place[a] - place[b] })
}

// Widen bounds the network by the largest mini-buckets that work and memory allow. It returns false if none are larger than those before;
// after an error or if costs are too large for mini-buckets there are none. Errors: those of the context and of minibuckets.
func (s *Search) Widen(ctx context.Context, work int64) (wider bool, err error) {
	if s.productEntries > 0 && !s.wasSplit {
		return false, nil
	}
	plan, entries, err := s.planMiniBuckets(work)
	if err != nil || plan == nil {
		return false, err
	}
	s.hasMiniBuckets = false
	for v := range s.nodes { // free the memory of the mini-buckets before
		s.nodes[v].functions, s.nodes[v].messages = nil, nil
	}
	s.Work += int64(plan.LeastWork())
	least, err := minibuckets.RunLeast(ctx, s.functions, plan)
	if err != nil || least == nil {
		s.productEntries, s.wasSplit = maxEntries, false
		return false, err
	}
	s.productEntries, s.wasSplit = entries, plan.Split > 0
	s.Bound = max(s.Bound, least.Bound)
	s.placeTables(plan.Order, least)
	s.hasMiniBuckets = true
	return true, nil
}

// planMiniBuckets returns the plan with the largest products that work and memory allow, at least twice as large as the present ones, and
// the limit of their entries. It stops at products that need no split. The plan is nil if there is none.
func (s *Search) planMiniBuckets(work int64) (best *minibuckets.Plan, entries float64, err error) {
	for next := max(firstEntries, 2*s.productEntries); next <= maxEntries; next *= 2 {
		p, err := minibuckets.NewPlan(s.shape, s.order, next)
		if err != nil {
			return nil, 0, err
		}
		s.Work += planWork * int64(len(s.order))
		if p.LeastWork() > float64(work) || p.LeastBytes() > bucketShare*s.memoryLimit {
			break
		}
		if best, entries = p, next; p.Split == 0 {
			break
		}
	}
	return best, entries, nil
}

// placeTables gives every node the tables that its search looks at: functions, and messages of mini-buckets. order is the order of
// elimination of the mini-buckets.
func (s *Search) placeTables(order []int, least *minibuckets.Least) {
	place := make([]int, len(s.dims))
	for k, v := range order {
		place[v] = k
	}
	s.placeFunctions(place, least)
	s.placeMessages(order, place, least)
}

// placeFunctions gives each function to the node of its variable that is eliminated first: the last one to get a value on the way down.
// place has the places in the order of elimination.
func (s *Search) placeFunctions(place []int, least *minibuckets.Least) {
	for t := range s.functions {
		if scope := s.functions[t].Scope; len(scope) > 0 {
			v := firstEliminated(scope, place)
			s.nodes[v].functions = append(s.nodes[v].functions, s.newTerm(&least.Tables[t], v))
		}
	}
}

// placeMessages gives every node the messages that bound the trees of its children, and the constant of the bound of its tree. A message
// of a node's mini-buckets goes up from parent to parent, and every node on the way gets it. It stops at the node of its variable that is
// eliminated first, since the mini-buckets of that node contain it. A message without variables is added to the constants of its node and
// of all nodes above.
func (s *Search) placeMessages(order, place []int, least *minibuckets.Least) {
	outgoing := make([][]int, len(s.dims)) // by variable: messages out of its tree, to variables above it
	constant := make([]int64, len(s.dims)) // by variable: sum of the messages without variables in its tree
	for k, v := range order {
		n := &s.nodes[v]
		n.messages = make([][]term, len(n.children))
		for i, c := range n.children {
			constant[v] += constant[c]
			for _, t := range outgoing[c] {
				n.messages[i] = append(n.messages[i], s.newTerm(&least.Tables[t], v))
				if firstEliminated(least.Tables[t].Scope, place) != v { // the message goes on upwards
					outgoing[v] = append(outgoing[v], t)
				}
			}
		}
		for _, t := range least.Messages[k] {
			if len(least.Tables[t].Scope) > 0 {
				outgoing[v] = append(outgoing[v], t)
			} else {
				constant[v] = min(constant[v]+least.Tables[t].Of[0], minibuckets.Forbidden)
			}
		}
		n.constant = constant[v]
	}
}

// newTerm returns a table for the node of variable v.
func (s *Search) newTerm(c *minibuckets.Costs, v int) term {
	t := term{table: c.Of, strides: make([]int, len(c.Scope)), vars: c.Scope}
	stride := 1
	for i := len(c.Scope) - 1; i >= 0; i-- {
		if c.Scope[i] == v {
			t.ownStride = stride
		} else {
			t.strides[i] = stride
		}
		stride *= s.dims[c.Scope[i]]
	}
	return t
}

// baseIndex returns the index in a table for the first value of the node's variable and the present values of the others.
func (s *Search) baseIndex(t *term) (index int) {
	for i, v := range t.vars {
		index += s.values[v] * t.strides[i]
	}
	return index
}

// pushBounds pushes d·(1 + number of children) costs to the stack, for a node of d values under the values of its separator, and returns
// the index of the first: a lower bound of the cost of each value with all trees below, then by value and child a lower bound of the
// child's tree. It stops the search if the work or the context has ended.
func (s *Search) pushBounds(n *node, d int) (start int) {
	start = len(s.costStack)
	children := len(n.children)
	s.costStack = slices.Grow(s.costStack, d*(1+children))[:start+d*(1+children)]
	bounds, childBounds := s.costStack[start:start+d], s.costStack[start+d:]
	clear(bounds)
	for k := range childBounds {
		childBounds[k] = s.nodes[n.children[k%children]].constant
	}
	work := d
	for k := range n.functions {
		t := &n.functions[k]
		table := t.table[s.baseIndex(t):]
		for a := range bounds {
			bounds[a] = min(bounds[a]+table[a*t.ownStride], minibuckets.Forbidden)
		}
		work += d + len(t.vars)
	}
	for i := range n.messages {
		for k := range n.messages[i] {
			t := &n.messages[i][k]
			table := t.table[s.baseIndex(t):]
			for a := range bounds {
				bound := &childBounds[a*children+i]
				*bound = min(*bound+table[a*t.ownStride], minibuckets.Forbidden)
			}
			work += d + len(t.vars)
		}
		for a := range bounds {
			bounds[a] = min(bounds[a]+childBounds[a*children+i], minibuckets.Forbidden)
		}
	}
	s.Work += int64(work)
	if s.Work > s.workEnd || s.pace.Over(int64(work)) {
		s.stopped = true
	}
	return start
}
