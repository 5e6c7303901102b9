package formula

// One variable of many values that the network holds as many variables of two values.

import (
	"cmp"
	"context"
	"slices"
)

// join replaces the literals of a clause by one variable if every assignment has exactly one of them: they exclude each other in pairs, by
// clauses of two literals. The values of the new variable are the literals. Longer clauses come first. A variable is joined once at most,
// and not at all if it has a table.
func join(ctx context.Context, r *Reduced) (*Reduced, error) {
	f := r.Formula
	j := &joiner{&simplifier{f: f, p: newPropagator(f)}, make([]bool, len(f.Domains)), map[[2]Literal]bool{}}
	for v, d := range f.Domains {
		j.free[v] = d == 2
	}
	for _, t := range f.Tables {
		for _, v := range t.Scope {
			j.free[v] = false
		}
	}
	var long [][]Literal
	for _, c := range f.Clauses {
		if len(c) == 2 {
			j.excluded[j.pair(c[0].Not(), c[1].Not())] = true
		} else if len(c) > 2 {
			long = append(long, c)
		}
	}
	slices.SortStableFunc(long, func(a, b []Literal) int { return cmp.Compare(len(b), len(a)) })

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
			v := j.p.variableOf[l.Atom()]
			j.free[v] = false
			isFunctional = isFunctional || int(v) >= f.Links && f.Functional[int(v)-f.Links]
			holds := int32(j.canonical(l).Atom() - f.Offset(int(v))) // the value of v at which l holds
			values := slices.Repeat([]int32{1 - holds}, len(c))
			values[i] = holds
			replicas[v] = replica{x: x, of: values}
		}
		g.Functional = append(g.Functional, isFunctional)
	}
	if len(g.Domains) == len(f.Domains) {
		return r, nil
	}
	joined, err := New(g)
	if err != nil {
		return nil, err
	}
	found := unchanged(joined)
	found.replicas = append(replicas, make([]replica, len(g.Domains)-len(f.Domains))...)
	stands := slices.Clone(r.Stands)
	stands = append(stands, make([][]int32, joined.Atoms()-f.Atoms())...)
	return rebuild(ctx, &Reduced{Formula: joined, Stands: stands, Fixed: r.Fixed}, found)
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

// isExactlyOne reports whether the literals of a clause may be joined: their variables are free, they exclude each other in pairs, and
// their variables are all of one kind: links, or auxiliary and functional, or auxiliary and not functional.
func (j *joiner) isExactlyOne(c []Literal) bool {
	type kind struct{ isLink, isFunctional bool }
	kindOf := func(l Literal) kind {
		v := int(j.p.variableOf[l.Atom()]) - j.f.Links
		return kind{v < 0, v >= 0 && j.f.Functional[v]}
	}
	for i, l := range c {
		if !j.free[j.p.variableOf[l.Atom()]] || kindOf(l) != kindOf(c[0]) {
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
