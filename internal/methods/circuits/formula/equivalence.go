package formula

// Variables that are functions of others: cycles of implications.

import "slices"

// equivalences finds the literals that imply each other by clauses of two literals, and that a value excludes the variable's
// others. A variable of two values with a literal equivalent to another variable's is a function of that variable; so is one of
// more values if each is equivalent to a value of the other. Linear time.
func (s *simplifier) equivalences() bool {
	if s.p.False || s.pace.Over(int64(2*s.f.Atoms())) {
		return false
	}
	component := s.components(s.implications())
	members := map[int32][]Literal{} // of components with literals of several variables, by number
	for l, c := range component {
		if c >= 0 && s.p.value(Literal(l)) == 0 {
			members[c] = append(members[c], Literal(l))
		}
	}

	s.same = make([]replica, len(s.f.Domains))
	isRoot := make([]bool, len(s.f.Domains))
	found := false
	for l := range component { // in the order of literals
		c := component[l]
		list := members[c]
		if len(list) < 2 || list[0] != Literal(l) {
			continue
		}
		root, ok := s.root(list)
		if !ok {
			continue
		}
		x := s.p.variable[root.Atom()]
		for _, k := range list {
			y := s.p.variable[k.Atom()]
			if y == x {
				if k == root.Not() {
					s.p.False = true
					return true
				}
				continue
			}
			if s.replaceable(int(x), int(y)) && s.same[y].of == nil {
				s.same[y] = replica{int(x), s.function(root, k)}
				isRoot[x] = true
				found = true
			}
		}
	}
	return s.bijections(component, isRoot) || found
}

// implications are the literals that follow from every literal by a clause of two.
func (s *simplifier) implications() [][]Literal {
	next := make([][]Literal, 2*s.f.Atoms())
	edge := func(from, to Literal) { next[from] = append(next[from], to) }
	for n, c := range s.p.clauses {
		if !s.p.gone[n] && len(c) == 2 {
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

// mostExclusive is the maximum number of values of a variable whose implications are
// written down.
const mostExclusive = 32

// components numbers the strongly connected components of a graph (Tarjan, Depth-first search and linear graph algorithms, 1972); −1 for
// nodes without edges.
func (s *simplifier) components(next [][]Literal) []int32 {
	n := len(next)
	component, index, low := make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range component {
		component[i] = -1
	}
	type call struct {
		node Literal
		edge int
	}
	var stack []Literal
	var calls []call
	onStack := make([]bool, n)
	count, numbered := int32(0), int32(0)
	for first := range n {
		if index[first] != 0 || len(next[first]) == 0 {
			continue
		}
		calls = append(calls[:0], call{Literal(first), 0})
		for len(calls) > 0 {
			c := &calls[len(calls)-1]
			l := c.node
			if c.edge == 0 {
				count++
				index[l], low[l] = count, count
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
				up := calls[len(calls)-1].node
				low[up] = min(low[up], low[l])
			}
			if low[l] == index[l] {
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

// root chooses the literal that stands for its component: of a variable with more than two values
// where there is one, else of the first. The component of their opposites is written as the
// opposite then.
func (s *simplifier) root(list []Literal) (best Literal, ok bool) {
	rank := func(l Literal) int {
		v := int(s.p.variable[l.Atom()])
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
	x := s.p.variable[best.Atom()]
	for _, l := range list {
		ok = ok || s.replaceable(int(x), int(s.p.variable[l.Atom()]))
	}
	return best, ok
}

// replaceable reports whether y may become a function of x: tables do not grow.
func (s *simplifier) replaceable(x, y int) bool {
	if x == y || s.f.Domains[y] != 2 {
		return false
	}
	return s.f.Domains[x] == 2 || !slices.ContainsFunc(s.f.Tables, func(t Table) bool { return slices.Contains(t.Scope, int32(y)) })
}

// function maps values of root's variable to values of k's, where the two literals hold together.
func (s *simplifier) function(root, k Literal) []int32 {
	x, y := int(s.p.variable[root.Atom()]), int(s.p.variable[k.Atom()])
	holds := int32(k.Atom() - s.f.Offset(y))
	if k.Negative() {
		holds = 1 - holds
	}
	of := make([]int32, s.f.Domains[x])
	for a := range of {
		if of[a] = 1 - holds; (s.f.Offset(x)+a == root.Atom()) != root.Negative() {
			of[a] = holds
		}
	}
	return of
}

// bijections finds variables of more than two values, each equivalent to a value of one earlier variable. Values of that one which
// no value of the other is equivalent to are impossible.
func (s *simplifier) bijections(component []int32, isRoot []bool) bool {
	at := map[int32][]int{} // atoms of values by component
	found := false
	for v, d := range s.f.Domains {
		if d < 3 || s.pace.Over(int64(d)) {
			continue
		}
		if of, x := s.bijection(v, component, at); of != nil && !isRoot[v] {
			s.same[v] = replica{x, of}
			isRoot[x] = true
			found = true
			continue
		}
		for a := range d {
			if l := s.f.Literal(v, a); component[l] >= 0 && s.p.value(l) == 0 {
				at[component[l]] = append(at[component[l]], l.Atom())
			}
		}
	}
	return found
}

// bijection returns y's values by the value of the variable x that determines it, nil where there
// is none.
func (s *simplifier) bijection(y int, component []int32, at map[int32][]int) (of []int32, x int) {
	for _, atom := range at[component[s.f.Literal(y, 0)]] {
		x = int(s.p.variable[atom])
		image := make([]int32, s.f.Domains[x])
		for a := range image {
			image[a] = -1
		}
		matched := 0
		for b := range s.f.Domains[y] {
			l := s.f.Literal(y, b)
			for _, atom := range at[component[l]] {
				if component[l] >= 0 && int(s.p.variable[atom]) == x {
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
