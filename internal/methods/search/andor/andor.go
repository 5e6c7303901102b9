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

// newEntry returns an entry with the least cost of a tree, or with a lower bound of it if isExact is false.
func newEntry(key uint64, cost int64, isExact bool) entry {
	e := entry{key, 2 * cost}
	if isExact {
		e.value++
	}
	return e
}

// isExact reports whether cost is the least cost of the tree. If not, it is a lower bound.
func (e *entry) isExact() bool { return e.value&1 == 1 }

// cost returns the least cost of the tree, or a lower bound of it.
func (e *entry) cost() int64 { return e.value >> 1 }

// New returns a search for the assignment of least cost, the sum of functions, of variables with dims values each. The search goes along
// the best of several min-fill orders, which take at most work to find, and uses at most memory bytes. It is nil if the work is not enough
// for an order. The only error is that of the context.
func New(ctx context.Context, dims []int, functions []minibuckets.Costs, memory, work int64) (*Search, error) {
	s := &Search{
		dims: dims, functions: functions, memoryLimit: float64(memory), shape: contractionorder.Hypergraph{Dims: dims}, Bound: math.MinInt64,
	}
	for _, f := range functions {
		s.shape.Edges = append(s.shape.Edges, f.Scope)
	}
	// The work in operations on the graph: a quarter is for a first order, which only shows whether that is enough, half for better ones.
	moves := int64(float64(work) / moveShare)
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

// buildPseudoTree sets the separators and children of all nodes, and the roots. A pseudo tree has the variables of each function on one way
// from a root down. The separator of a variable v are the variables above v on which the tree of v depends: all variables of v's functions
// and of its children's separators that are eliminated after v along s.order. The parent of v is the variable of its separator that is
// eliminated first.
func (s *Search) buildPseudoTree() {
	n := len(s.dims)
	position := make([]int, n) // in the order, from 1; 0: not in it
	for k, v := range s.order {
		position[v] = k + 1
	}
	for v, k := range position {
		if k == 0 { // the order leaves out variables of one value: they come last
			s.order = append(s.order, v)
			position[v] = len(s.order)
		}
	}

	s.nodes = make([]node, n)
	s.values = make([]int, n)
	for _, f := range s.functions {
		s.addToSeparator(f.Scope, position) // to the separator of the variable of f that is eliminated first
	}
	for _, v := range s.order {
		separator := s.nodes[v].separator // complete: all that adds to it is eliminated before v
		slices.SortFunc(separator, func(a, b int) int { return position[b] - position[a] })
		s.addToSeparator(separator, position) // to that of its first eliminated variable, the parent
		if k := len(separator); k > 0 {
			parent := &s.nodes[separator[k-1]] // eliminated first
			parent.children = append(parent.children, v)
		} else {
			s.roots = append(s.roots, v)
		}
	}
}

// addToSeparator finds the variable of scope that is eliminated first, and adds all other variables of scope to its separator. It does
// nothing for an empty scope. position has the variables' positions in the order of elimination.
func (s *Search) addToSeparator(scope, position []int) {
	if len(scope) == 0 {
		return
	}
	first := firstEliminated(scope, position)
	n := &s.nodes[first]
	for _, u := range scope {
		if u != first && !slices.Contains(n.separator, u) {
			n.separator = append(n.separator, u)
		}
	}
}

// firstEliminated returns the variable of scope that is eliminated first. position has the variables' positions in the order of
// elimination.
func firstEliminated(scope, position []int) int {
	return slices.MinFunc(scope, func(a, b int) int { return position[a] - position[b] })
}

// WidenMiniBuckets replaces the mini-buckets that bound the search by the largest ones that work and memory allow. A mini-bucket is a
// product of functions with a variable, of which the least cost over the variable is taken: the larger the products, the better the bound.
//
// isWider is false if no larger ones are allowed; then the present ones stay. If the messages (least costs) of the larger ones cannot be
// computed, because of an error or costs that are too large, isWider is false, the search is without mini-buckets from then on, and later
// calls make none. Errors: those of the context and of minibuckets.
func (s *Search) WidenMiniBuckets(ctx context.Context, work int64) (isWider bool, err error) {
	if s.productEntries > 0 && !s.wasSplit { // no bucket is split: larger limits change nothing
		return false, nil
	}
	plan, entries, err := s.planMiniBuckets(work)
	if err != nil || plan == nil {
		return false, err
	}

	s.hasMiniBuckets = false
	for v := range s.nodes { // free the memory of the present mini-buckets
		s.nodes[v].functions, s.nodes[v].messages = nil, nil
	}
	s.Work += int64(plan.LeastWork())
	miniBuckets, err := minibuckets.BoundLeastSum(ctx, s.functions, plan)
	if err != nil || miniBuckets == nil {
		s.productEntries, s.wasSplit = maxEntries, false // no later call tries again
		return false, err
	}
	s.productEntries, s.wasSplit = entries, plan.Split > 0
	s.Bound = max(s.Bound, miniBuckets.Bound)
	s.placeTables(plan.Order, miniBuckets)
	s.hasMiniBuckets = true
	return true, nil
}

// planMiniBuckets returns the plan with the largest products that work and memory allow, and the limit of their entries: at least twice
// the present limit. It doubles that limit until no bucket is split. The plan is nil if work or memory allow none.
func (s *Search) planMiniBuckets(work int64) (best *minibuckets.Plan, entryLimit float64, err error) {
	for limit := max(firstEntries, 2*s.productEntries); limit <= maxEntries; limit *= 2 {
		p, err := minibuckets.NewPlan(s.shape, s.order, limit)
		if err != nil {
			return nil, 0, err
		}
		s.Work += planWork * int64(len(s.order)) // of making the plan
		if p.LeastWork() > float64(work) || p.LeastBytes() > bucketShare*s.memoryLimit {
			break // larger limits take more
		}
		if best, entryLimit = p, limit; p.Split == 0 {
			break
		}
	}
	return best, entryLimit, nil
}

// placeTables gives every node the tables that its search looks at: functions, and messages of mini-buckets. order is the order of
// elimination of the mini-buckets.
func (s *Search) placeTables(order []int, miniBuckets *minibuckets.LowerBound) {
	position := make([]int, len(s.dims)) // by variable, in order
	for k, v := range order {
		position[v] = k
	}
	s.placeFunctions(position, miniBuckets)
	s.placeMessages(order, position, miniBuckets)
}

// placeFunctions gives each function, as a table of the mini-buckets, to the node of its variable that is eliminated first. The search goes
// against the order of elimination, so all other variables of the function have values there. position has the variables' positions in the
// order of elimination.
func (s *Search) placeFunctions(position []int, miniBuckets *minibuckets.LowerBound) {
	for t := range s.functions {
		if scope := s.functions[t].Scope; len(scope) > 0 {
			v := firstEliminated(scope, position)
			s.nodes[v].functions = append(s.nodes[v].functions, s.newTerm(&miniBuckets.Tables[t], v))
		}
	}
}

// placeMessages gives every node the messages that bound the trees of its children, and the constant of the bound of its tree. A message
// is a table over variables that are eliminated later: the least cost of some functions (a mini-bucket) over the variable that was
// eliminated. order lists the variables as they are eliminated, and position has their positions.
//
// A message begins at the node whose variable its mini-buckets eliminate, and goes up from parent to parent. It ends at the first node
// whose variable it has, the one whose mini-buckets contain it. All nodes that it comes to get it. A message without variables is added
// to the constants of its node and of all nodes above.
func (s *Search) placeMessages(order, position []int, miniBuckets *minibuckets.LowerBound) {
	outgoing := make([][]int, len(s.dims)) // by variable: messages (as indices of miniBuckets.Tables) from its tree to variables above
	constant := make([]int64, len(s.dims)) // by variable: sum of the messages without variables in its tree
	for k, v := range order {
		// Messages of the children's trees.
		n := &s.nodes[v]
		n.messages = make([][]term, len(n.children))
		for i, c := range n.children {
			constant[v] += constant[c]
			for _, t := range outgoing[c] {
				n.messages[i] = append(n.messages[i], s.newTerm(&miniBuckets.Tables[t], v))
				if firstEliminated(miniBuckets.Tables[t].Scope, position) != v { // the message goes on upwards
					outgoing[v] = append(outgoing[v], t)
				}
			}
		}

		// Messages of v's own mini-buckets.
		for _, t := range miniBuckets.Messages[k] {
			if len(miniBuckets.Tables[t].Scope) > 0 {
				outgoing[v] = append(outgoing[v], t)
			} else {
				constant[v] = min(constant[v]+miniBuckets.Tables[t].Values[0], minibuckets.Forbidden)
			}
		}

		n.constant = constant[v]
	}
}

// newTerm returns table c as a term of the node of variable v. The last variable of the scope has stride 1. v has its stride in ownStride
// and 0 in strides: so Σ strides · values, whatever value v has, is the index of v's value 0.
func (s *Search) newTerm(c *minibuckets.Costs, v int) term {
	t := term{table: c.Values, strides: make([]int, len(c.Scope)), vars: c.Scope}
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

// baseIndex returns the index in the table of t for value 0 of the node's variable and the present values of all others.
func (s *Search) baseIndex(t *term) (index int) {
	for i, v := range t.vars {
		index += s.values[v] * t.strides[i]
	}
	return index
}

// pushBounds pushes lower bounds for a node whose variable has d values to costStack, given the present values of its separator, the
// variables above on which its tree depends. It returns the index of the first bound. With m children, costStack[start+a] bounds the cost
// of the node's tree if its variable has value a, and costStack[start + d + a·m + i] bounds the cost of the i-th child's tree under it. It
// sets stopped if the work or the context has ended.
//
// The bounds come from messages: tables from mini-bucket elimination. The messages of a child together bound the cost of the child's tree;
// its constant is the sum of the messages that have no variables.
func (s *Search) pushBounds(n *node, d int) (start int) {
	start = len(s.costStack)
	children := len(n.children)
	s.costStack = slices.Grow(s.costStack, d*(1+children))[:start+d*(1+children)]
	bounds, childBounds := s.costStack[start:start+d], s.costStack[start+d:]
	clear(bounds)
	for k := range childBounds {
		childBounds[k] = s.nodes[n.children[k%children]].constant // k = a·children + i, for value a and child i
	}

	// The functions of the node bound its values.
	work := d // table entries looked at, and variables of their indices
	for k := range n.functions {
		t := &n.functions[k]
		table := t.table[s.baseIndex(t):]
		for a := range bounds {
			bounds[a] = min(bounds[a]+table[a*t.ownStride], minibuckets.Forbidden)
		}
		work += d + len(t.vars)
	}

	// The messages of each child bound the child's tree, and so the values.
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
