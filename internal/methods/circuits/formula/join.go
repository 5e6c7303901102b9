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
	j := &joiner{&simplifier{f: f, prop: newPropagator(f)}, make([]bool, len(f.Domains)), map[[2]Literal]bool{}}

	// The variables that may be joined.
	for v, d := range f.Domains {
		j.free[v] = d == 2
	}
	for _, t := range f.Tables {
		for _, v := range t.Scope {
			j.free[v] = false
		}
	}

	// The pairs of literals that exclude each other, and the clauses to look at.
	var long [][]Literal
	for _, c := range f.Clauses {
		if len(c) == 2 {
			j.excluded[j.pair(c[0].Not(), c[1].Not())] = true
		} else if len(c) > 2 {
			long = append(long, c)
		}
	}
	slices.SortStableFunc(long, func(a, b []Literal) int { return cmp.Compare(len(b), len(a)) })

	// A formula with the new variables at its end. The old ones are replicas of them.
	g := Formula{Links: f.Links, Scale: f.Scale, Clauses: f.Clauses, Tables: f.Tables}
	g.Domains, g.Functional = slices.Clone(f.Domains), slices.Clone(f.Functional)
	replicas := make([]replica, len(f.Domains)) // the old variables as functions of the new ones
	for _, c := range long {
		if !j.isExactlyOne(c) {
			continue
		}
		x := len(g.Domains)
		g.Domains = append(g.Domains, len(c))
		isFunctional := false
		for i, l := range c {
			v := j.prop.variableOf[l.Atom()]
			j.free[v] = false
			isFunctional = isFunctional || int(v) >= f.Links && f.Functional[int(v)-f.Links]
			holdingValue := int32(j.canonical(l).Atom() - f.FirstAtom(int(v))) // value 0 or 1 of v, at which l holds
			values := slices.Repeat([]int32{1 - holdingValue}, len(c))
			values[i] = holdingValue
			replicas[v] = replica{x: x, valueOf: values}
		}
		g.Functional = append(g.Functional, isFunctional)
	}
	if len(g.Domains) == len(f.Domains) {
		return r, nil
	}

	// Rebuilding replaces the replicas by functions of the new variables.
	joined, err := New(g)
	if err != nil {
		return nil, err
	}
	found := unchanged(joined)
	found.replicas = append(replicas, make([]replica, len(g.Domains)-len(f.Domains))...)
	stands := slices.Clone(r.StandsFor)
	stands = append(stands, make([][]int32, joined.Atoms()-f.Atoms())...)
	return rebuild(ctx, &Reduced{Formula: joined, StandsFor: stands, FixedAtoms: r.FixedAtoms}, found)
}

// joiner looks for clauses of which every assignment has exactly one literal.
type joiner struct {
	*simplifier
	free     []bool              // by variable: it has two values, no table, and is not joined
	excluded map[[2]Literal]bool // pairs of literals that do not hold together
}

// pair returns two literals in canonical form, as a key that does not depend on their order.
func (j *joiner) pair(l, m Literal) [2]Literal {
	a, b := j.canonical(l), j.canonical(m)
	return [2]Literal{min(a, b), max(a, b)}
}

// isExactlyOne reports whether the literals of a clause may be joined to one variable. Any two of them have to exclude each other, so
// that exactly one holds. Their variables have to be free and of one kind: links, or functional auxiliary ones, or auxiliary ones that
// are not functional.
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
