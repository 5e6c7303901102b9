package formula

// One variable of many values that the network holds as many variables of two values.

import (
	"cmp"
	"context"
	"slices"
)

// join replaces the variables of some clauses by one new variable for each clause. The clause must be such that every assignment has
// exactly one true literal of it: clauses of two literals state that any two of its literals exclude each other. Value i of the new
// variable states that literal i is the true one, so the old variables are functions of the new one (replicas).
//
// Longer clauses come first. A variable is joined once at most, and not at all if it has a table or more than two values. If nothing can
// be joined, join returns r.
func join(ctx context.Context, r *Reduced) (*Reduced, error) {
	f := r.Formula
	j := newJoiner(f)
	for _, c := range longClauses(f) {
		if j.isExactlyOne(c) {
			j.joinClause(c)
		}
	}
	newVariables := len(j.extended.Domains) - len(f.Domains)
	if newVariables == 0 {
		return r, nil
	}

	// Rebuild the formula with the new variables: this removes the replicas. New variables are no replicas, and their atoms (values) stand
	// for nothing yet.
	extended, err := New(j.extended)
	if err != nil {
		return nil, err
	}
	found := unchanged(extended)
	found.replicas = append(j.replicas, make([]replica, newVariables)...)
	stands := slices.Clone(r.StandsFor)
	stands = append(stands, make([][]int32, extended.Atoms()-f.Atoms())...)
	return rebuild(ctx, &Reduced{Formula: extended, StandsFor: stands, FixedAtoms: r.FixedAtoms}, found)
}

// joiner looks for clauses of which every assignment has exactly one true literal, and joins the variables of each. Its replicas are the
// joined variables as functions of the new ones.
type joiner struct {
	*simplifier
	extended Formula             // the formula with the new variables at its end
	free     []bool              // by variable: it has two values, no table, and is not joined
	excluded map[[2]Literal]bool // pairs of literals that do not hold together
}

// newJoiner returns a joiner of f that has joined nothing.
func newJoiner(f *Formula) *joiner {
	extended := *f
	extended.offsets = nil // New computes it
	extended.Domains, extended.Functional = slices.Clone(f.Domains), slices.Clone(f.Functional)
	j := &joiner{
		simplifier: &simplifier{f: f, prop: newPropagator(f), replicas: make([]replica, len(f.Domains))},
		extended:   extended, free: make([]bool, len(f.Domains)), excluded: map[[2]Literal]bool{},
	}
	for v, d := range f.Domains {
		j.free[v] = d == 2
	}
	for _, t := range f.Tables {
		for _, v := range t.Scope {
			j.free[v] = false
		}
	}
	for _, c := range f.Clauses {
		if len(c) == 2 { // l or m: their opposites exclude each other
			j.excluded[j.pair(c[0].Not(), c[1].Not())] = true
		}
	}
	return j
}

// longClauses returns the clauses of three literals or more, longer ones first.
func longClauses(f *Formula) (long [][]Literal) {
	for _, c := range f.Clauses {
		if len(c) > 2 {
			long = append(long, c)
		}
	}
	slices.SortStableFunc(long, func(a, b []Literal) int { return cmp.Compare(len(b), len(a)) })
	return long
}

// joinClause adds a variable whose value i states that literal i of clause c is the true one. The variables of the literals become
// functions of it, and are no longer free.
func (j *joiner) joinClause(c []Literal) {
	x := len(j.extended.Domains) // the new variable
	j.extended.Domains = append(j.extended.Domains, len(c))
	isFunctional := false // whether the network's variables determine it, as they do the auxiliary variables that it replaces
	for i, l := range c {
		v := j.prop.variableOf[l.Atom()]
		j.free[v] = false
		isFunctional = isFunctional || int(v) >= j.f.Links && j.f.Functional[int(v)-j.f.Links]
		holdingValue := int32(j.canonical(l).Atom() - j.f.FirstAtom(int(v))) // value 0 or 1 of v, at which l holds
		values := slices.Repeat([]int32{1 - holdingValue}, len(c))
		values[i] = holdingValue
		j.replicas[v] = replica{x: x, valueOf: values}
	}
	j.extended.Functional = append(j.extended.Functional, isFunctional)
}

// pair returns two literals in canonical form, as a key that does not depend on their order.
func (j *joiner) pair(l, m Literal) [2]Literal {
	a, b := j.canonical(l), j.canonical(m)
	return [2]Literal{min(a, b), max(a, b)}
}

// isExactlyOne reports whether the literals of a clause may be joined to one variable. Any two of them have to exclude each other: then
// exactly one holds, since the clause demands one. Their variables have to be free (joiner.free) and of one kind: variables of the network
// (links), or auxiliary variables that these determine (functional), or other auxiliary variables.
func (j *joiner) isExactlyOne(c []Literal) bool {
	type kind struct{ isLink, isFunctional bool }
	kindOf := func(l Literal) kind {
		auxiliary := int(j.prop.variableOf[l.Atom()]) - j.f.Links // its number among the auxiliary variables; below 0 for a link
		return kind{auxiliary < 0, auxiliary >= 0 && j.f.Functional[auxiliary]}
	}
	for i, l := range c {
		if !j.free[j.prop.variableOf[l.Atom()]] || kindOf(l) != kindOf(c[0]) {
			return false
		}
		for _, m := range c[:i] {
			if !j.excluded[j.pair(l, m)] {
				return false
			}
		}
	}
	return true
}
