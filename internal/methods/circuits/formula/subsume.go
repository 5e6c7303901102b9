package formula

// Subsumption, and literals that resolution with one other clause removes.

import (
	"cmp"
	"slices"
)

// subsume removes clauses that contain another clause. From clauses that contain ¬l and all of a clause with l except l it removes ¬l. It
// reports whether it has found any. Shorter clauses come first, and each new clause is tried, too.
// Source: N. Eén and A. Biere, Effective preprocessing in SAT through variable and clause elimination (2005), section 4.
func (s *simplifier) subsume() bool {
	until, workBefore := s.budget(subsumeShare), s.p.Work
	all := &occurrences{s: s, clausesOf: make([][]int32, 2*s.f.Atoms()), signatures: make([]uint64, 0, len(s.p.clauses))}
	var queue []int32
	for n, c := range s.p.clauses {
		all.signatures = append(all.signatures, 0)
		if !s.p.removed[n] {
			all.add(int32(n), c)
			queue = append(queue, int32(n))
		}
	}
	slices.SortStableFunc(queue, func(m, n int32) int { return cmp.Compare(len(s.p.clauses[m]), len(s.p.clauses[n])) })

	hasFound := false
	for len(queue) > 0 && !s.over(until, &workBefore) {
		n := queue[0]
		queue = queue[1:]
		if s.p.removed[n] {
			continue
		}
		c := slices.Clone(s.p.clauses[n])
		hasFound = all.reduceSupersets(n, c, -1) || hasFound
		for k := range c {
			clausesBefore := len(s.p.clauses)
			if all.reduceSupersets(n, c, k) {
				hasFound = true
			}
			for m := clausesBefore; m < len(s.p.clauses); m++ { // the clauses that became shorter
				all.signatures = append(all.signatures, 0)
				if !s.p.removed[m] {
					all.add(int32(m), s.p.clauses[m])
					queue = append(queue, int32(m))
				}
			}
			if s.p.removed[n] || s.p.False {
				break
			}
		}
	}
	return hasFound
}

// occurrences lists the clauses of each literal. A clause has a signature, a set of 64 bits with one bit for each literal: a clause can
// contain another one only if its signature contains that of the other.
type occurrences struct {
	s          *simplifier
	clausesOf  [][]int32 // by canonical literal: the clauses that have it
	signatures []uint64  // by clause: the union of the signatures of its literals
}

// add lists clause c, number n, under its literals.
func (o *occurrences) add(n int32, c []Literal) {
	for _, l := range c {
		o.clausesOf[o.s.canonical(l)] = append(o.clausesOf[o.s.canonical(l)], n)
		o.signatures[n] |= o.signature(l)
	}
}

// signature returns the bit of a literal.
func (o *occurrences) signature(l Literal) uint64 {
	return 1 << (uint32(o.s.canonical(l)) * 2654435761 >> 26)
}

// canonical returns the one of the literals with the same meaning that stands for them: X = 1 for X ≠ 0, if X has two values.
func (s *simplifier) canonical(l Literal) Literal {
	v := int(s.p.variableOf[l.Atom()])
	if l.Negative() && s.f.Domains[v] == 2 {
		return s.f.Literal(v, 1-(l.Atom()-s.f.Offset(v)))
	}
	return l
}

// reduceSupersets looks for other clauses that contain clause n, whose literals are c, and reports whether there are any. If flip is −1, it
// removes them. Otherwise it looks for clauses that contain c with literal flip replaced by its opposite, and removes that opposite from
// them.
func (o *occurrences) reduceSupersets(n int32, c []Literal, flip int) bool {
	s := o.s
	want := slices.Clone(c)
	rarest := -1 // the literal of want with the fewest clauses
	var signature uint64
	for k := range want {
		if k == flip {
			want[k] = want[k].Not()
		}
		want[k] = s.canonical(want[k])
		signature |= o.signature(want[k])
		if rarest < 0 || len(o.clausesOf[want[k]]) < len(o.clausesOf[want[rarest]]) {
			rarest = k
		}
	}
	if rarest < 0 {
		return false
	}

	hasFound := false
	for _, m := range o.clausesOf[want[rarest]] {
		s.p.Work++
		if m == n || s.p.removed[m] || signature&^o.signatures[m] != 0 || len(s.p.clauses[m]) < len(want) || !o.contains(m, want) {
			continue
		}
		hasFound = true
		if flip < 0 {
			s.p.removed[m] = true
			continue
		}
		var shorter []Literal
		for _, l := range s.p.clauses[m] {
			if s.canonical(l) != want[flip] {
				shorter = append(shorter, l)
			}
		}
		s.p.replace(int(m), shorter)
	}
	return hasFound
}

// contains reports whether clause m has all of these literals, which are canonical.
func (o *occurrences) contains(m int32, want []Literal) bool {
	c := o.s.p.clauses[m]
	o.s.p.Work += int64(len(c))
	for _, l := range want {
		if !slices.ContainsFunc(c, func(k Literal) bool { return o.s.canonical(k) == l }) {
			return false
		}
	}
	return true
}
