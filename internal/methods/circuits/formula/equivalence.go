package formula

// Variables that are functions of others: cycles of implications.

import "slices"

// findReplicas finds variables that are functions of others (replicas), writes them to s.replicas, and reports whether it has found some.
// Literals are equivalent if they imply each other. Implications come from clauses of two literals, and from the values of a variable,
// which exclude each other. A variable of two values is a function of another variable if a literal of the one is equivalent to a literal
// of the other. A variable of more values is a function of another one if each of its values is equivalent to a value of that one. Linear
// time.
func (s *simplifier) findReplicas() bool {
	if s.prop.IsContradictory || s.pace.Over(int64(2*s.f.Atoms())) {
		return false
	}

	// Equivalent literals are the strongly connected components of the graph of implications.
	component := stronglyConnected(s.implications())
	members := map[int32][]Literal{} // by component: its literals that are open
	for l, c := range component {
		if c >= 0 && s.prop.value(Literal(l)) == 0 {
			members[c] = append(members[c], Literal(l))
		}
	}

	// Each component is treated once, at its first literal.
	s.replicas = make([]replica, len(s.f.Domains))
	isRoot := make([]bool, len(s.f.Domains)) // by variable: another one is a function of it
	hasFound := false
	for l := range component {
		equivalent := members[component[l]] // empty for component −1, which stands for none
		if len(equivalent) < 2 || equivalent[0] != Literal(l) {
			continue
		}
		hasFound = s.replaceMembers(equivalent, isRoot) || hasFound
		if s.prop.IsContradictory { // a literal is equivalent to its opposite
			return true
		}
	}
	return s.findBijections(component, isRoot) || hasFound
}

// replaceMembers chooses one of several equivalent literals, the root. It makes the variables of the other literals functions of the root's
// variable, if they may be replaced (mayReplace) and are no functions yet. It marks the root's variable in isRoot, and reports whether it
// has found a function. If a literal is equivalent to its opposite, it marks the formula as contradictory and returns true.
func (s *simplifier) replaceMembers(equivalent []Literal, isRoot []bool) (hasFound bool) {
	root, ok := s.chooseRoot(equivalent)
	if !ok {
		return false
	}
	x := s.prop.variableOf[root.Atom()]
	for _, l := range equivalent {
		y := s.prop.variableOf[l.Atom()]
		if y == x {
			if l == root.Not() {
				s.prop.IsContradictory = true
				return true
			}
			continue
		}
		if s.mayReplace(int(x), int(y)) && s.replicas[y].valueOf == nil {
			s.replicas[y] = replica{int(x), s.valueMap(root, l)}
			isRoot[x] = true
			hasFound = true
		}
	}
	return hasFound
}

// implications returns for each literal the literals that follow from it by a clause of two literals, or because a variable has exactly one
// value. Of a variable with many values only the first mostExclusive exclude each other here: the number of implications is its square.
func (s *simplifier) implications() [][]Literal {
	next := make([][]Literal, 2*s.f.Atoms())
	addImplication := func(from, to Literal) { next[from] = append(next[from], to) }
	for n, c := range s.prop.clauses {
		if !s.prop.removed[n] && len(c) == 2 {
			addImplication(c[0].Not(), c[1])
			addImplication(c[1].Not(), c[0])
		}
	}

	// Values of a variable.
	for v, d := range s.f.Domains {
		if d == 2 { // X = 0 and X ≠ 1 are the same, and so are X ≠ 0 and X = 1
			isZero, isOne := s.f.Literal(v, 0), s.f.Literal(v, 1)
			addImplication(isZero, isOne.Not())
			addImplication(isOne.Not(), isZero)
			addImplication(isOne, isZero.Not())
			addImplication(isZero.Not(), isOne)
			continue
		}
		for a := range min(d, mostExclusive) {
			for b := range min(d, mostExclusive) {
				if a != b {
					addImplication(s.f.Literal(v, a), s.f.Literal(v, b).Not())
				}
			}
		}
	}
	return next
}

// mostExclusive is the largest number of values of a variable whose mutual exclusions are among the implications.
const mostExclusive = 32

// stronglyConnected returns for each node of a graph the number of its strongly connected component: the nodes that lead to it and that it
// leads to. The number is −1 for a node without edges. next lists for each node the nodes that its edges lead to. Source: R. Tarjan,
// Depth-first search and linear graph algorithms (1972).
func stronglyConnected(next [][]Literal) (component []int32) {
	n := len(next)
	t := tarjan{next: next, component: slices.Repeat([]int32{-1}, n), index: make([]int32, n), low: make([]int32, n)}
	for l := range n {
		if isMet := t.index[l] != 0; !isMet && len(next[l]) > 0 {
			t.search(Literal(l))
		}
	}
	return t.component
}

// tarjan is a depth-first search for strongly connected components.
type tarjan struct {
	next      [][]Literal // by node: where its edges lead
	component []int32     // by node: its component; −1 if it is in none yet
	count     int32       // the number of components so far
	met       int32       // the number of nodes that were met so far
	index     []int32     // by node: the value of met when it was met; 0 if it was not
	low       []int32     // by node: the smallest index that it is known to lead to, of nodes that are in no component
	stack     []Literal   // the nodes that were met and are in no component, in the order of index
}

// search visits all nodes that node first leads to, except for nodes that were met before. t.index numbers the nodes as they are met, from
// 1. t.low[l] is the smallest number of a node that l is known to lead to. If it is the number of l itself, l and the nodes met after it
// are a component. search keeps an explicit stack of calls, since the recursion may be as deep as the graph has nodes.
func (t *tarjan) search(first Literal) {
	type call struct {
		node Literal
		edge int // the next edge of node to follow
	}
	t.meet(first)
	calls := []call{{first, 0}}
	for len(calls) > 0 {
		c := &calls[len(calls)-1]
		l := c.node
		if c.edge < len(t.next[l]) {
			m := t.next[l][c.edge]
			c.edge++
			if t.index[m] == 0 {
				t.meet(m)
				calls = append(calls, call{m, 0})
			} else if t.component[m] < 0 {
				t.low[l] = min(t.low[l], t.index[m])
			}
			continue
		}

		// All edges of l are followed: return to its caller.
		calls = calls[:len(calls)-1]
		if len(calls) > 0 {
			caller := calls[len(calls)-1].node
			t.low[caller] = min(t.low[caller], t.low[l])
		}
		if t.low[l] == t.index[l] { // l leads to no node that was met before it and is in no component
			t.closeComponent(l)
		}
	}
}

// meet gives node l its index and puts it onto the stack.
func (t *tarjan) meet(l Literal) {
	t.met++
	t.index[l], t.low[l] = t.met, t.met
	t.stack = append(t.stack, l)
}

// closeComponent takes l and the nodes above it from the stack: they are one component.
func (t *tarjan) closeComponent(l Literal) {
	for t.component[l] < 0 {
		last := len(t.stack) - 1
		t.component[t.stack[last]] = t.count
		t.stack = t.stack[:last]
	}
	t.count++
}

// chooseRoot chooses one of several equivalent literals, the root. The variables of all other literals are to become functions of the
// root's variable. The root is a literal of a variable with more than two values if there is one. Otherwise it is a literal of the variable
// with the lowest number. The opposites of the literals are equivalent, too; by this rule their root is the opposite of this one. ok is
// false if no variable may be replaced.
func (s *simplifier) chooseRoot(equivalent []Literal) (root Literal, ok bool) {
	rank := func(l Literal) int { // below 0 for more than two values
		v := int(s.prop.variableOf[l.Atom()])
		if s.f.Domains[v] > 2 {
			return v - len(s.f.Domains)
		}
		return v
	}
	root = equivalent[0]
	for _, l := range equivalent {
		if rank(l) < rank(root) {
			root = l
		}
	}
	x := s.prop.variableOf[root.Atom()]
	for _, l := range equivalent {
		ok = ok || s.mayReplace(int(x), int(s.prop.variableOf[l.Atom()]))
	}
	return root, ok
}

// mayReplace reports whether variable y may become a function of x: y has two values, and no table would grow, since x has two values, too,
// or no table is over y.
func (s *simplifier) mayReplace(x, y int) bool {
	if x == y || s.f.Domains[y] != 2 {
		return false
	}
	return s.f.Domains[x] == 2 || !slices.ContainsFunc(s.f.Tables, func(t Table) bool { return slices.Contains(t.Scope, int32(y)) })
}

// valueMap returns y as a function of x: for each value of x the value of y. x is the variable of literal root, and y, which has two
// values, is that of the equivalent literal l. At values of x at which root holds, y has the value at which l holds; otherwise it has the
// other one.
func (s *simplifier) valueMap(root, l Literal) []int32 {
	x, y := int(s.prop.variableOf[root.Atom()]), int(s.prop.variableOf[l.Atom()])
	holdingValue := int32(l.Atom() - s.f.FirstAtom(y))
	if l.IsNegative() {
		holdingValue = 1 - holdingValue
	}
	values := make([]int32, s.f.Domains[x])
	for a := range values {
		isAtomOfRoot := s.f.FirstAtom(x)+a == root.Atom() // root states that x is a, or that it is not
		if rootHolds := isAtomOfRoot != root.IsNegative(); rootHolds {
			values[a] = holdingValue
		} else {
			values[a] = 1 - holdingValue
		}
	}
	return values
}

// findBijections finds variables of more than two values each of whose values is equivalent to a value of an earlier variable: they are
// functions of that variable. It records them as replicas, marks the earlier variables in isRoot, and reports whether it has found one. A
// variable in isRoot does not become a replica. component has the component of each literal; equivalent literals have the same component,
// and −1 is none.
func (s *simplifier) findBijections(component []int32, isRoot []bool) (hasFound bool) {
	atomsOf := map[int32][]int{} // by component: the atoms in it, of the variables so far that are no replicas
	for v, d := range s.f.Domains {
		if d < 3 || s.pace.Over(int64(d)) {
			continue
		}
		if values, x := s.bijectionOf(v, component, atomsOf); values != nil && !isRoot[v] {
			s.replicas[v] = replica{x, values}
			isRoot[x] = true
			hasFound = true
			continue
		}
		for a := range d {
			if l := s.f.Literal(v, a); component[l] >= 0 && s.prop.value(l) == 0 {
				atomsOf[component[l]] = append(atomsOf[component[l]], l.Atom())
			}
		}
	}
	return hasFound
}

// bijectionOf looks for an earlier variable x such that each value of y is equivalent to a value of x. It returns x and, for each value
// of x, the value of y; values is nil if there is no such x. An atom states that a variable has a value. component has the component of
// each literal: equivalent literals have the same one, −1 is none. atomsOf has the atoms of earlier variables by component. A value of x
// to which no value of y is equivalent is impossible, since y would have no value: it is excluded, and values has 0 for it.
func (s *simplifier) bijectionOf(y int, component []int32, atomsOf map[int32][]int) (values []int32, x int) {
	for _, atom := range atomsOf[component[s.f.Literal(y, 0)]] {
		x = int(s.prop.variableOf[atom])
		values, matched := s.matchValues(y, x, component, atomsOf) // values has −1 for values of x without an equivalent value of y
		if matched < s.f.Domains[y] {
			continue
		}
		for a, b := range values {
			if b < 0 {
				s.prop.fix(s.f.Literal(x, a).Not())
				values[a] = 0
			}
		}
		return values, x
	}
	return nil, 0
}

// matchValues returns, for each value of x, the value of y that is equivalent to it, −1 if there is none. matched is the number of values
// of y for which it has found a value of x. component and atomsOf are as for bijectionOf.
func (s *simplifier) matchValues(y, x int, component []int32, atomsOf map[int32][]int) (values []int32, matched int) {
	values = slices.Repeat([]int32{-1}, s.f.Domains[x])
	for b := range s.f.Domains[y] {
		l := s.f.Literal(y, b)
		for _, atom := range atomsOf[component[l]] {
			if component[l] >= 0 && int(s.prop.variableOf[atom]) == x {
				values[atom-s.f.FirstAtom(x)] = int32(b)
				matched++
				break
			}
		}
	}
	return values, matched
}
