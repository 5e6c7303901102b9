package formula

// The formula after a round of simplification, over the variables that are left.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
)

// rebuilding maps the variables of a formula to the rebuilt one's.
type rebuilding struct {
	f     *Formula
	r     result
	root  []int     // by variable: the one that it is a function of, or itself
	alive [][]int32 // by variable that is its own root: values that are left
	place []int     // by variable that is its own root, and has several values: its number in the new formula; −1 for none
	b     *builder
}

// rebuild writes a formula in the remaining variables: of two values and more, no function of
// others, links first. Clauses get their normal form: of a variable they have the values that
// satisfy them, or the one that does not.
func rebuild(ctx context.Context, r *Reduced, found result) (*Reduced, error) {
	g := &rebuilding{f: r.Formula, r: found}
	order, links := g.variables()
	domains := make([]int, len(order))
	for i, v := range order {
		domains[i] = len(g.alive[v])
	}
	g.b = newBuilder(ctx, domains, query.DefaultMemory)
	g.b.f.Links, g.b.f.Functional = links, g.functional(order[links:])
	g.b.scale(g.f.Scale)

	seen := map[string]bool{}
	for _, c := range found.clauses {
		if g.b.over(1 + len(c)) {
			break
		}
		g.clause(c, seen)
	}
	for _, t := range g.f.Tables {
		if g.b.over(1 + len(t.Values)) {
			break
		}
		g.table(t)
	}
	if g.b.err != nil {
		return nil, g.b.err
	}
	f, err := New(g.b.f)
	if err != nil {
		return nil, err
	}
	out := &Reduced{Formula: f, Fixed: slices.Clone(r.Fixed)}
	g.wayBack(r, out)
	return out, nil
}

// at is the value of a variable where its root has value a.
func (g *rebuilding) at(v int, a int32) int32 {
	if g.root[v] != v {
		return g.r.same[v].of[a]
	}
	return a
}

// variables finds the variables of the new formula in their order, and the number of them that
// stand for links.
func (g *rebuilding) variables() (order []int, links int) {
	n := len(g.f.Domains)
	g.root, g.alive, g.place = make([]int, n), make([][]int32, n), slices.Repeat([]int{-1}, n)
	isLink := make([]bool, n)
	for v := range n {
		g.root[v] = v
		if g.r.same != nil && g.r.same[v].of != nil {
			g.root[v] = g.r.same[v].x
		}
		isLink[g.root[v]] = isLink[g.root[v]] || v < g.f.Links
	}
	for v, d := range g.f.Domains {
		if g.root[v] != v || g.r.drop[v] {
			continue
		}
		for a := range d {
			if g.r.truth[g.f.Offset(v)+a] >= 0 {
				g.alive[v] = append(g.alive[v], int32(a))
			}
		}
	}
	for _, link := range []bool{true, false} {
		for v, values := range g.alive {
			if len(values) > 1 && isLink[v] == link {
				g.place[v] = len(order)
				order = append(order, v)
			}
		}
		if link {
			links = len(order)
		}
	}
	return order, links
}

// functional says of auxiliary variables whether one of those that they stand for is determined by the links.
func (g *rebuilding) functional(order []int) []bool {
	of := make([]bool, len(g.f.Domains))
	for i, is := range g.f.Functional {
		v := g.f.Links + i
		of[g.root[v]] = of[g.root[v]] || is
	}
	out := make([]bool, len(order))
	for i, v := range order {
		out[i] = of[v]
	}
	return out
}

// clause adds a clause that does not always hold, once.
func (g *rebuilding) clause(c []Literal, seen map[string]bool) {
	allowed := map[int][]bool{} // by root: values that satisfy the clause
	var roots []int
	for _, l := range c {
		v := g.variable(l)
		x := g.root[v]
		values := allowed[x]
		if values == nil {
			values = make([]bool, g.f.Domains[x])
			allowed[x] = values
			roots = append(roots, x)
		}
		value := int32(l.Atom() - g.f.Offset(v))
		for _, a := range g.alive[x] {
			if (g.at(v, a) == value) != l.Negative() {
				values[a] = true
			}
		}
	}
	slices.Sort(roots)
	out := []Literal{}
	for _, x := range roots {
		literals, holds := g.literals(x, allowed[x])
		if holds {
			return
		}
		out = append(out, literals...)
	}
	slices.Sort(out)
	key := make([]byte, 0, 4*len(out))
	for _, l := range out {
		key = append(key, byte(l), byte(l>>8), byte(l>>16), byte(l>>24))
	}
	if !seen[string(key)] {
		seen[string(key)] = true
		g.b.clause(out)
	}
}

// variable returns the variable of a literal.
func (g *rebuilding) variable(l Literal) int {
	v, found := slices.BinarySearch(g.f.offsets, int32(l.Atom()))
	if !found {
		return v - 1
	}
	return v
}

// literals say that a root has one of these values, in the new formula; true where it has one in any case.
func (g *rebuilding) literals(x int, values []bool) (list []Literal, holds bool) {
	n, other := 0, 0
	for i, a := range g.alive[x] {
		if values[a] {
			n++
		} else {
			other = i
		}
	}
	d := len(g.alive[x])
	if n == d {
		return nil, true
	}
	if v := g.place[x]; v >= 0 && n == d-1 && d > 2 {
		return []Literal{g.b.not(v, other)}, false
	}
	for i, a := range g.alive[x] {
		if values[a] {
			list = append(list, g.b.is(g.place[x], i)) // of several values: one of them has been left
		}
	}
	return list, false
}

// table adds the remaining entries of a table.
func (g *rebuilding) table(t Table) {
	var roots, dims, scope []int
	size := 1
	for _, v := range t.Scope {
		if x := g.root[v]; !slices.Contains(roots, x) {
			if roots = append(roots, x); size > maxEntries/len(g.alive[x]) {
				g.b.fail(overBudget())
				return
			}
			size *= len(g.alive[x])
			dims = append(dims, len(g.alive[x]))
			scope = append(scope, g.place[x])
		}
	}
	values := make([]float64, size)
	at := make([]int, len(roots))
	for i := range values {
		cell := 0
		for _, v := range t.Scope {
			k := slices.Index(roots, g.root[v])
			cell = cell*g.f.Domains[v] + int(g.at(int(v), g.alive[roots[k]][at[k]]))
		}
		values[i] = t.Values[cell]
		for k := len(at) - 1; k >= 0; k-- {
			if at[k]++; at[k] < dims[k] {
				break
			}
			at[k] = 0
		}
	}
	scope, dims = choices(scope, dims)
	g.b.entries(scope, dims, values)
}

// maxEntries bounds a table that variables were replaced in.
const maxEntries = 1 << 26

// wayBack writes the old literals of every new atom, and the fixed ones.
func (g *rebuilding) wayBack(r, out *Reduced) {
	out.Stands = make([][]int32, out.Formula.Atoms())
	add := func(v, x int) {
		for i, a := range g.alive[x] {
			of := r.Stands[g.f.Offset(v)+int(g.at(v, a))]
			if u := g.place[x]; u >= 0 {
				out.Stands[out.Formula.Offset(u)+i] = append(out.Stands[out.Formula.Offset(u)+i], of...)
			} else {
				out.Fixed = append(out.Fixed, of...)
			}
		}
	}
	for v, x := range g.root {
		add(v, x)
	}
	for _, list := range out.Stands {
		slices.Sort(list)
	}
	slices.Sort(out.Fixed)
}
