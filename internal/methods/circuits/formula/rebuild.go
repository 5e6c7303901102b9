package formula

// The formula after a round of simplification, over the variables that remain.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
)

// rebuilding writes a formula again, without the values and variables that a round of simplification has removed.
type rebuilding struct {
	f           *Formula // before
	found       result
	rootOf      []int     // by variable: the variable that it is a function of, or itself (a root)
	valuesOf    [][]int32 // by root: the values that it may still have
	newVariable []int     // by root with several values: its number in the rebuilt formula; −1 for other variables
	b           *builder  // of the rebuilt formula
}

// rebuild writes the formula of r again, with what a round of simplification has found: facts, variables that are functions of others, and
// clauses. Its variables are those that have two values or more and are no functions of others; those that stand for variables of the
// network (links) come first. Clauses get their normal form:
// a clause has, for each variable, the values that satisfy it, or the negation of the one value that does not. The result stands for the
// same original formula as r.
func rebuild(ctx context.Context, r *Reduced, found result) (*Reduced, error) {
	// Variables.
	g := &rebuilding{f: r.Formula, found: found}
	order, links := g.chooseVariables()
	domains := make([]int, len(order))
	for i, v := range order {
		domains[i] = len(g.valuesOf[v])
	}
	g.b = newBuilder(ctx, domains, query.DefaultMemory)
	g.b.f.Links, g.b.f.Functional = links, g.functionalOf(order[links:])
	g.b.multiplyScale(g.f.Scale)

	// Clauses and tables.
	seen := map[string]bool{} // by the bytes of a clause that was added
	for _, c := range found.clauses {
		if g.b.isOver(1 + len(c)) {
			break
		}
		g.addClause(c, seen)
	}
	for _, t := range g.f.Tables {
		if g.b.isOver(1 + len(t.Values)) {
			break
		}
		g.addTable(t)
	}
	if g.b.err != nil {
		return nil, g.b.err
	}

	f, err := New(g.b.f)
	if err != nil {
		return nil, err
	}
	rebuilt := &Reduced{Formula: f, FixedAtoms: slices.Clone(r.FixedAtoms)}
	g.translate(r, rebuilt)
	return rebuilt, nil
}

// valueOf returns the value that variable v has if its root, the variable that it is a function of, has the value a. v may be the root
// itself.
func (g *rebuilding) valueOf(v int, a int32) int32 {
	if g.rootOf[v] != v {
		return g.found.replicas[v].valueOf[a]
	}
	return a
}

// chooseVariables fills in, by variable of the old formula, rootOf (the variable that it is a function of, or itself), valuesOf (the values
// that a root may still have) and newVariable (its new number; −1: none). It returns the variables that the rebuilt formula has, in their
// new order: the roots of two values or more. Those that stand for variables of the network come first; links is their number.
func (g *rebuilding) chooseVariables() (order []int, links int) {
	n := len(g.f.Domains)
	g.rootOf, g.newVariable = make([]int, n), slices.Repeat([]int{-1}, n)
	isLink := make([]bool, n) // by root: it or a function of it is a link
	for v := range n {
		g.rootOf[v] = v
		if g.found.replicas != nil && g.found.replicas[v].valueOf != nil {
			g.rootOf[v] = g.found.replicas[v].x
		}
		isLink[g.rootOf[v]] = isLink[g.rootOf[v]] || v < g.f.Links
	}

	// New numbers: links first, then auxiliary variables.
	g.findValues()
	for _, areLinks := range []bool{true, false} {
		for v, values := range g.valuesOf {
			if len(values) > 1 && isLink[v] == areLinks {
				g.newVariable[v] = len(order)
				order = append(order, v)
			}
		}
		if areLinks {
			links = len(order)
		}
	}
	return order, links
}

// findValues fills in g.valuesOf, the values that roots may still have. Variables that are no roots or were summed out have none.
func (g *rebuilding) findValues() {
	g.valuesOf = make([][]int32, len(g.f.Domains))
	for v, d := range g.f.Domains {
		if g.rootOf[v] != v || g.found.eliminated[v] {
			continue
		}
		for a := range d {
			if isExcluded := g.found.truth[g.f.FirstAtom(v)+a] < 0; !isExcluded {
				g.valuesOf[v] = append(g.valuesOf[v], int32(a))
			}
		}
	}
}

// functionalOf reports for each of the given roots, variables that are no functions of others, whether it is functional: the network's
// variables determine its value (Formula.Functional). It is so if it, or a variable that is a function of it, was functional before.
func (g *rebuilding) functionalOf(roots []int) []bool {
	isFunctional := make([]bool, len(g.f.Domains)) // by root
	for i, wasFunctional := range g.f.Functional { // by auxiliary variable
		root := g.rootOf[g.f.Links+i]
		isFunctional[root] = isFunctional[root] || wasFunctional
	}
	functional := make([]bool, len(roots))
	for i, v := range roots {
		functional[i] = isFunctional[v]
	}
	return functional
}

// addClause adds a clause of the old formula in the new variables, unless it always holds, or an equal one was added before. A variable of
// the old formula is a function of its root (another variable, or itself), so each literal becomes the set of the root's values at which it
// holds; g.valuesOf[x] has the values that root x may still have. seen has the clauses so far by their bytes.
func (g *rebuilding) addClause(c []Literal, seen map[string]bool) {
	roots, allowed := g.satisfyingValues(c)
	clause := []Literal{}
	for _, x := range roots {
		literals, holds := g.literalsOf(x, allowed[x])
		if holds { // every value of x satisfies the clause
			return
		}
		clause = append(clause, literals...)
	}
	slices.Sort(clause)

	key := make([]byte, 0, 4*len(clause)) // 4 bytes a literal
	for _, l := range clause {
		key = append(key, byte(l), byte(l>>8), byte(l>>16), byte(l>>24))
	}
	if !seen[string(key)] {
		seen[string(key)] = true
		g.b.addClause(clause)
	}
}

// satisfyingValues returns the roots of the variables of a clause, the variables that these are functions of, in ascending order.
// allowed[x][a] reports whether value a of root x makes a literal of the clause true.
func (g *rebuilding) satisfyingValues(c []Literal) (roots []int, allowed map[int][]bool) {
	allowed = map[int][]bool{}
	for _, l := range c {
		v := g.variableOf(l)
		x := g.rootOf[v]
		values := allowed[x]
		if values == nil {
			values = make([]bool, g.f.Domains[x])
			allowed[x] = values
			roots = append(roots, x)
		}
		value := int32(l.Atom() - g.f.FirstAtom(v)) // the value of v that l is about
		for _, a := range g.valuesOf[x] {
			if hasValue := g.valueOf(v, a) == value; hasValue != l.IsNegative() { // l holds
				values[a] = true
			}
		}
	}
	slices.Sort(roots)
	return roots, allowed
}

// variableOf returns the variable of a literal: the last one whose first atom is not above that of the literal.
func (g *rebuilding) variableOf(l Literal) int {
	v, isFirst := slices.BinarySearch(g.f.offsets, int32(l.Atom())) // isFirst: it is the first atom of v
	if !isFirst {
		return v - 1
	}
	return v
}

// literalsOf returns literals of the rebuilt formula whose disjunction states that variable x, which is no function of another one (a
// root), has one of the old values a with isAllowed[a].
// g.valuesOf[x] are the values that x may still have; the new value i is the i-th of them. If exactly one of more than two values is not
// allowed, the result is the single literal that x has not that value. alwaysHolds is true if all values of x are allowed.
func (g *rebuilding) literalsOf(x int, isAllowed []bool) (list []Literal, alwaysHolds bool) {
	allowed, excluded := 0, 0 // the number of allowed values, and the last one that is not, by its new number
	for i, a := range g.valuesOf[x] {
		if isAllowed[a] {
			allowed++
		} else {
			excluded = i
		}
	}
	d := len(g.valuesOf[x])
	if allowed == d {
		return nil, true
	}
	if v := g.newVariable[x]; v >= 0 && allowed == d-1 && d > 2 {
		return []Literal{g.b.isNot(v, excluded)}, false
	}
	for i, a := range g.valuesOf[x] {
		if isAllowed[a] {
			list = append(list, g.b.is(g.newVariable[x], i)) // a root with one value has returned above, or adds nothing
		}
	}
	return list, false
}

// addTable adds a table of the old formula over the roots of its variables, which are functions of the roots. It has an entry for each
// combination of values that the roots may still have. The builder fails if these are more than maxEntries.
func (g *rebuilding) addTable(t Table) {
	// The roots. By root, dims has its number of values, and scope its number in the new formula (−1: it has one value).
	var roots, dims, scope []int
	size := 1
	for _, v := range t.Scope {
		x := g.rootOf[v]
		if slices.Contains(roots, x) {
			continue
		}
		d := len(g.valuesOf[x])
		if size > maxEntries/d {
			g.b.fail(overBudget())
			return
		}
		size *= d
		roots, dims, scope = append(roots, x), append(dims, d), append(scope, g.newVariable[x])
	}
	values := g.copyEntries(t, roots, dims, size)
	scope, dims = withoutConstants(scope, dims)
	g.b.addEntries(scope, dims, values)
}

// copyEntries returns the entries of table t for each combination of values that the roots of its variables may still have, the last root
// fastest. dims has the number of these values by root, size the number of combinations.
func (g *rebuilding) copyEntries(t Table, roots, dims []int, size int) []float64 {
	values := make([]float64, size)
	digits := make([]int, len(roots)) // by root: the position of its value among valuesOf
	for i := range values {
		cell := 0 // in the old table
		for _, v := range t.Scope {
			k := slices.Index(roots, g.rootOf[v])
			cell = cell*g.f.Domains[v] + int(g.valueOf(int(v), g.valuesOf[roots[k]][digits[k]]))
		}
		values[i] = t.Values[cell]
		for k := len(digits) - 1; k >= 0; k-- { // the next combination
			if digits[k]++; digits[k] < dims[k] {
				break
			}
			digits[k] = 0
		}
	}
	return values
}

// maxEntries is the largest number of entries of a table in which variables were replaced.
const maxEntries = 1 << 26

// translate fills in rebuilt.StandsFor, the atoms of the original formula that each atom of the rebuilt one stands for. An atom states
// that a variable has a value. Value a of a root stands for itself, and for the values that the root's functions have if the root has
// value a. Atoms of roots with one value hold always: what they stand for goes to rebuilt.FixedAtoms. r is the reduced formula before it
// was rebuilt.
func (g *rebuilding) translate(r, rebuilt *Reduced) {
	rebuilt.StandsFor = make([][]int32, rebuilt.Formula.Atoms())
	for v, x := range g.rootOf {
		for i, a := range g.valuesOf[x] {
			original := r.StandsFor[g.f.FirstAtom(v)+int(g.valueOf(v, a))]
			if u := g.newVariable[x]; u >= 0 {
				atom := rebuilt.Formula.FirstAtom(u) + i
				rebuilt.StandsFor[atom] = append(rebuilt.StandsFor[atom], original...)
			} else {
				rebuilt.FixedAtoms = append(rebuilt.FixedAtoms, original...)
			}
		}
	}
	for _, atoms := range rebuilt.StandsFor {
		slices.Sort(atoms)
	}
	slices.Sort(rebuilt.FixedAtoms)
}
