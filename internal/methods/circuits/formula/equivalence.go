package formula

// Variables that are functions of others: cycles of implications.

import "slices"

// equivalences finds variables that are functions of others, as replicas, and reports whether it has found some. Literals are equivalent if
// they imply each other, by clauses of two literals and since a value of a variable excludes the other values. A variable of two values
// with a literal equivalent to another variable's is a function of that variable. A variable of more values is one if each of its values is
// equivalent to a value of the other variable. Linear time.
func (s *simplifier) equivalences() bool {
	if s.p.False || s.pace.Over(int64(2*s.f.Atoms())) {
		return false
	}
	component := s.components(s.implications())
	members := map[int32][]Literal{} // by component: its literals that are open
	for l, c := range component {
		if c >= 0 && s.p.value(Literal(l)) == 0 {
			members[c] = append(members[c], Literal(l))
		}
	}

	s.replicas = make([]replica, len(s.f.Domains))
	isRoot := make([]bool, len(s.f.Domains)) // by variable: another one is a function of it
	hasFound := false
	for l := range component { // in the order of literals
		list := members[component[l]]
		if len(list) < 2 || list[0] != Literal(l) {
			continue // each component once, at its first literal
		}
		hasFound = s.replaceMembers(list, isRoot) || hasFound
		if s.p.False {
			return true
		}
	}
	return s.findBijections(component, isRoot) || hasFound
}

// replaceMembers makes the variables of equivalent literals functions of one of them, as far as they may be replaced, and marks that one in
// isRoot. It reports whether it has found a function. If a literal is equivalent to its opposite, the formula is contradictory.
func (s *simplifier) replaceMembers(list []Literal, isRoot []bool) (hasFound bool) {
	root, ok := s.chooseRoot(list)
	if !ok {
		return false
	}
	x := s.p.variableOf[root.Atom()]
	for _, l := range list {
		y := s.p.variableOf[l.Atom()]
		if y == x {
			if l == root.Not() {
				s.p.False = true
				return true
			}
			continue
		}
		if s.mayReplace(int(x), int(y)) && s.replicas[y].of == nil {
			s.replicas[y] = replica{int(x), s.valueMap(root, l)}
			isRoot[x] = true
			hasFound = true
		}
	}
	return hasFound
}

// implications returns for each literal those that follow from it by a clause of two literals, or by the values of its variable. Of a
// variable with many values only the first mostExclusive exclude each other here.
func (s *simplifier) implications() [][]Literal {
	next := make([][]Literal, 2*s.f.Atoms())
	edge := func(from, to Literal) { next[from] = append(next[from], to) }
	for n, c := range s.p.clauses {
		if !s.p.removed[n] && len(c) == 2 {
			edge(c[0].Not(), c[1])
			edge(c[1].Not(), c[0])
		}
	}
	for v, d := range s.f.Domains {
		if d == 2 { // X = 0 and X ≠ 1 are the same, and so are X ≠ 0 and X = 1
			l, m := s.f.Literal(v, 0), s.f.Literal(v, 1)
			edge(l, m.Not())
			edge(m.Not(), l)
			edge(m, l.Not())
			edge(l.Not(), m)
			continue
		}
		for a := range min(d, mostExclusive) {
			for b := range min(d, mostExclusive) {
				if a != b {
					edge(s.f.Literal(v, a), s.f.Literal(v, b).Not())
				}
			}
		}
	}
	return next
}

// mostExclusive is the largest number of values of a variable whose mutual exclusions are among the implications.
const mostExclusive = 32

// components returns for each node of a graph the number of its strongly connected component, −1 for a node that no edge leads to or from.
// next lists the edges from each node. It is Tarjan's algorithm (Depth-first search and linear graph algorithms, 1972) with an explicit
// stack of calls: index is the order in which nodes are met, from 1 on, and low is the smallest index that a node is known to lead back to.
func (s *simplifier) components(next [][]Literal) []int32 {
	n := len(next)
	component, index, low := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range component {
		component[i] = -1
	}
	type call struct {
		node Literal
		edge int // the next edge of node to follow
	}
	var stack []Literal
	var calls []call
	onStack := make([]bool, n)
	met, numbered := int32(0), int32(0) // nodes, components
	for first := range n {
		if index[first] != 0 || len(next[first]) == 0 {
			continue
		}
		calls = append(calls[:0], call{Literal(first), 0})
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			l := c.node
			if c.edge == 0 {
				met++
				index[l], low[l] = met, met
				stack = append(stack, l)
				onStack[l] = true
			}
			if c.edge < len(next[l]) {
				m := next[l][c.edge]
				c.edge++
				if index[m] == 0 {
					calls = append(calls, call{m, 0})
				} else if onStack[m] {
					low[l] = min(low[l], index[m])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				caller := calls[len(calls)-1].node
				low[caller] = min(low[caller], low[l])
			}
			if low[l] == index[l] { // the nodes met since l are one component
				for {
					m := stack[len(stack)-1]
					stack = stack[:len(stack)-1]
					onStack[m] = false
					component[m] = numbered
					if m == l {
						break
					}
				}
				numbered++
			}
		}
	}
	return component
}

// chooseRoot returns the literal of whose variable the other variables of equivalent literals become functions: one of a variable with more
// than two values if there is one, otherwise one of the first variable. The same choice is made among the opposite literals. ok is
// false if no variable may be replaced.
func (s *simplifier) chooseRoot(list []Literal) (best Literal, ok bool) {
	rank := func(l Literal) int {
		v := int(s.p.variableOf[l.Atom()])
		if s.f.Domains[v] > 2 {
			return v - len(s.f.Domains)
		}
		return v
	}
	best = list[0]
	for _, l := range list {
		if rank(l) < rank(best) {
			best = l
		}
	}
	x := s.p.variableOf[best.Atom()]
	for _, l := range list {
		ok = ok || s.mayReplace(int(x), int(s.p.variableOf[l.Atom()]))
	}
	return best, ok
}

// mayReplace reports whether variable y may become a function of x: y has two values, and no table would grow.
func (s *simplifier) mayReplace(x, y int) bool {
	if x == y || s.f.Domains[y] != 2 {
		return false
	}
	return s.f.Domains[x] == 2 || !slices.ContainsFunc(s.f.Tables, func(t Table) bool { return slices.Contains(t.Scope, int32(y)) })
}

// valueMap returns the value of l's variable y for each value of root's variable x, if the two literals are equivalent. y has two values: l
// holds at one of them, and y has that value if root holds.
func (s *simplifier) valueMap(root, l Literal) []int32 {
	x, y := int(s.p.variableOf[root.Atom()]), int(s.p.variableOf[l.Atom()])
	holds := int32(l.Atom() - s.f.Offset(y)) // the value of y at which l holds
	if l.Negative() {
		holds = 1 - holds
	}
	values := make([]int32, s.f.Domains[x])
	for a := range values {
		if values[a] = 1 - holds; (s.f.Offset(x)+a == root.Atom()) != root.Negative() {
			values[a] = holds
		}
	}
	return values
}

// findBijections makes variables of more than two values functions of an earlier variable, if each of their values is equivalent to one of
// that variable. It reports whether it has found one.
func (s *simplifier) findBijections(component []int32, isRoot []bool) (hasFound bool) {
	atomsOf := map[int32][]int{} // by component: the values in it, of the variables so far that are no replicas
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
			if l := s.f.Literal(v, a); component[l] >= 0 && s.p.value(l) == 0 {
				atomsOf[component[l]] = append(atomsOf[component[l]], l.Atom())
			}
		}
	}
	return hasFound
}

// bijectionOf looks for a variable x such that each value of y is equivalent to one of its values. It returns x, and the value of y for
// each value of x; nil if there is none. A value of x that no value of y is equivalent to is impossible, and excluded.
func (s *simplifier) bijectionOf(y int, component []int32, atomsOf map[int32][]int) (values []int32, x int) {
	for _, atom := range atomsOf[component[s.f.Literal(y, 0)]] {
		x = int(s.p.variableOf[atom])
		image := make([]int32, s.f.Domains[x]) // by value of x: the value of y; −1 if there is none
		for a := range image {
			image[a] = -1
		}
		matched := 0 // values of y
		for b := range s.f.Domains[y] {
			l := s.f.Literal(y, b)
			for _, atom := range atomsOf[component[l]] {
				if component[l] >= 0 && int(s.p.variableOf[atom]) == x {
					image[atom-s.f.Offset(x)] = int32(b)
					matched++
					break
				}
			}
		}
		if matched < s.f.Domains[y] {
			continue
		}
		for a, b := range image {
			if b < 0 {
				s.p.fix(s.f.Literal(x, a).Not())
				image[a] = 0
			}
		}
		return image, x
	}
	return nil, 0
}
