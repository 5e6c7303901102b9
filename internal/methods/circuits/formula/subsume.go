package formula

// Subsumption, and literals that resolution with one other clause takes away.

import (
	"cmp"
	"slices"
)

// subsume removes clauses that contain another one, and the literal ¬l from clauses that contain ¬l and the rest of a clause with l.
// Source: N. Eén and A. Biere, Effective preprocessing in SAT through variable and clause elimination (2005), section 4.
func (s *simplifier) subsume() bool {
	until, from := s.budget(subsumeShare), s.p.Work
	all := &occurrences{s: s, at: make([][]int32, 2*s.f.Atoms()), marks: make([]uint64, 0, len(s.p.clauses))}
	var queue []int32
	for n, c := range s.p.clauses {
		all.marks = append(all.marks, 0)
		if !s.p.gone[n] {
			all.add(int32(n), c)
			queue = append(queue, int32(n))
		}
	}
	slices.SortStableFunc(queue, func(m, n int32) int { return cmp.Compare(len(s.p.clauses[m]), len(s.p.clauses[n])) })

	found := false
	for len(queue) > 0 && !s.over(until, &from) {
		n := queue[0]
		queue = queue[1:]
		if s.p.gone[n] {
			continue
		}
		c := slices.Clone(s.p.clauses[n])
		found = all.within(n, c, -1) || found
		for k := range c {
			before := len(s.p.clauses)
			if all.within(n, c, k) {
				found = true
			}
			for m := before; m < len(s.p.clauses); m++ { // shorter ones
				all.marks = append(all.marks, 0)
				if !s.p.gone[m] {
					all.add(int32(m), s.p.clauses[m])
					queue = append(queue, int32(m))
				}
			}
			if s.p.gone[n] || s.p.False {
				break
			}
		}
	}
	return found
}

// occurrences are clauses by literal, and a 64-bit signature of each clause's literals.
type occurrences struct {
	s     *simplifier
	at    [][]int32
	marks []uint64
}

func (o *occurrences) add(n int32, c []Literal) {
	for _, l := range c {
		o.at[o.s.normal(l)] = append(o.at[o.s.normal(l)], n)
		o.marks[n] |= o.mark(l)
	}
}

func (o *occurrences) mark(l Literal) uint64 { return 1 << (uint32(o.s.normal(l)) * 2654435761 >> 26) }

// normal is a literal among those that say the same: X = 1 for X ≠ 0 where there are two values.
func (s *simplifier) normal(l Literal) Literal {
	v := int(s.p.variable[l.Atom()])
	if l.Negative() && s.f.Domains[v] == 2 {
		return s.f.Literal(v, 1-(l.Atom()-s.f.Offset(v)))
	}
	return l
}

// within looks for clauses that contain c, literal flip (−1: none) being the opposite: they are removed, or lose that literal.
func (o *occurrences) within(n int32, c []Literal, flip int) bool {
	s := o.s
	want := slices.Clone(c)
	best := -1
	var marks uint64
	for k := range want {
		if k == flip {
			want[k] = want[k].Not()
		}
		want[k] = s.normal(want[k])
		marks |= o.mark(want[k])
		if best < 0 || len(o.at[want[k]]) < len(o.at[want[best]]) {
			best = k
		}
	}
	if best < 0 {
		return false
	}

	found := false
	for _, m := range o.at[want[best]] {
		s.p.Work++
		if m == n || s.p.gone[m] || marks&^o.marks[m] != 0 || len(s.p.clauses[m]) < len(want) || !o.contains(m, want) {
			continue
		}
		found = true
		if flip < 0 {
			s.p.gone[m] = true
			continue
		}
		var shorter []Literal
		for _, l := range s.p.clauses[m] {
			if s.normal(l) != want[flip] {
				shorter = append(shorter, l)
			}
		}
		s.p.replace(int(m), shorter)
	}
	return found
}

// contains reports whether clause m has all of these literals.
func (o *occurrences) contains(m int32, want []Literal) bool {
	c := o.s.p.clauses[m]
	o.s.p.Work += int64(len(c))
	for _, l := range want {
		if !slices.ContainsFunc(c, func(k Literal) bool { return o.s.normal(k) == l }) {
			return false
		}
	}
	return true
}
