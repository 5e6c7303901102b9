package formula

// Values of one variable that the network holds as many of two values.

import (
	"cmp"
	"context"
	"slices"
)

// join puts one variable in the place of literals of which every assignment has exactly one: those of a clause that exclude each other in
// pairs by clauses of two literals. Its values are the literals. Longer clauses come first; a variable is joined once, and none
// that has a table is.
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
	found := nothing(f)
	found.same = make([]replica, len(f.Domains))
	for _, c := range long {
		if !j.exactlyOne(c) {
			continue
		}
		x := len(g.Domains)
		g.Domains = append(g.Domains, len(c))
		functional := false
		for i, l := range c {
			v := j.p.variable[l.Atom()]
			j.free[v] = false
			functional = functional || int(v) >= f.Links && f.Functional[int(v)-f.Links]
			is := int32(j.normal(l).Atom() - f.Offset(int(v)))
			of := slices.Repeat([]int32{1 - is}, len(c))
			of[i] = is
			found.same[v] = replica{x: x, of: of}
		}
		g.Functional = append(g.Functional, functional)
	}
	if len(g.Domains) == len(f.Domains) {
		return r, nil
	}
	joined, err := New(g)
	if err != nil {
		return nil, err
	}
	with := nothing(joined)
	with.same = append(found.same, make([]replica, len(g.Domains)-len(f.Domains))...)
	stands := slices.Clone(r.Stands)
	stands = append(stands, make([][]int32, joined.Atoms()-f.Atoms())...)
	return rebuild(ctx, &Reduced{Formula: joined, Stands: stands, Fixed: r.Fixed}, with)
}

// joiner looks for such clauses.
type joiner struct {
	*simplifier
	free     []bool              // by variable: it has two values, no table, and is not joined
	excluded map[[2]Literal]bool // pairs of literals of which one is false
}

func (j *joiner) pair(l, m Literal) [2]Literal {
	a, b := j.normal(l), j.normal(m)
	return [2]Literal{min(a, b), max(a, b)}
}

// exactlyOne reports whether the literals of a clause are of variables that are free, exclude each other in pairs, and are links, or are
// all determined by links, or none.
func (j *joiner) exactlyOne(c []Literal) bool {
	kind := func(l Literal) (link, functional bool) {
		v := int(j.p.variable[l.Atom()]) - j.f.Links
		return v < 0, v >= 0 && j.f.Functional[v]
	}
	link, functional := kind(c[0])
	for i, l := range c {
		if isLink, is := kind(l); !j.free[j.p.variable[l.Atom()]] || isLink != link || is != functional {
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
