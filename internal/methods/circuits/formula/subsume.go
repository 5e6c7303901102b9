package formula

// Subsumption, and literals that resolution with one other clause removes.

import (
	"cmp"
	"slices"
)

// subsume removes clauses that contain another clause. If clause C has literal l, and clause D contains ¬l and all other literals of C,
// it removes ¬l from D. It reports whether it has found any. It compares the shorter clauses first, and then the clauses that it has
// shortened, within its share of the work. Source: N. Eén and A. Biere, Effective preprocessing in SAT through variable and clause
// elimination (2005), section 4.
func (s *simplifier) subsume() bool {
	workEnd, workBefore := s.workEndFor(subsumeShare), s.prop.Work

	// List all clauses under their literals.
	index := &occurrences{s: s, clausesOf: make([][]int32, 2*s.f.Atoms()), signatures: make([]uint64, 0, len(s.prop.clauses))}
	queue := index.addNew()
	slices.SortStableFunc(queue, func(m, n int32) int { return cmp.Compare(len(s.prop.clauses[m]), len(s.prop.clauses[n])) })

	hasFound := false
	for len(queue) > 0 && !s.isOver(workEnd, &workBefore) {
		n := queue[0]
		queue = queue[1:]
		if s.prop.removed[n] {
			continue
		}

		c := slices.Clone(s.prop.clauses[n])
		hasFound = index.reduceSupersets(n, c, noFlip) || hasFound // with c as it is
		for k := range c {                                         // with c[k] replaced by its opposite
			hasFound = index.reduceSupersets(n, c, k) || hasFound
			queue = append(queue, index.addNew()...) // the clauses that became shorter
			if s.prop.removed[n] || s.prop.IsContradictory {
				break
			}
		}
	}
	return hasFound
}

// addNew lists the clauses that the propagator has got since the last call under their literals. It returns those that are not removed.
func (o *occurrences) addNew() (added []int32) {
	clauses := o.s.prop.clauses
	for n := len(o.signatures); n < len(clauses); n++ {
		o.signatures = append(o.signatures, 0) // add computes it
		if !o.s.prop.removed[n] {
			o.add(int32(n), clauses[n])
			added = append(added, int32(n))
		}
	}
	return added
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

// signature returns a set of 64 bits that has one bit, which depends on the literal.
func (o *occurrences) signature(l Literal) uint64 {
	return 1 << (uint32(o.s.canonical(l)) * 2654435761 >> 26)
}

// canonical returns the literal that stands for all literals with the same meaning: for X ≠ 0 it is X = 1 if X has two values. All others
// stand for themselves.
func (s *simplifier) canonical(l Literal) Literal {
	v := int(s.prop.variableOf[l.Atom()])
	if l.IsNegative() && s.f.Domains[v] == 2 {
		return s.f.Literal(v, 1-(l.Atom()-s.f.FirstAtom(v)))
	}
	return l
}

// noFlip tells reduceSupersets to replace no literal.
const noFlip = -1

// reduceSupersets uses clause n, whose literals are c, to reduce other clauses, and reports whether it has reduced any. If flip is
// noFlip, it removes the clauses that contain all of c: they follow from c. Otherwise it looks for clauses that contain c with c[flip]
// replaced by its opposite, and removes that opposite from them: such a clause and c together imply what remains of it (resolution). The
// signature of a clause is the set of its literals, hashed to 64 bits.
func (o *occurrences) reduceSupersets(n int32, c []Literal, flip int) bool {
	s := o.s
	subset, signature, rarest := o.subsetFor(c, flip)
	if rarest < 0 { // c is empty
		return false
	}

	// Among the clauses that have the rarest literal, find the clauses that contain all of subset. Signatures rule out most of them quickly.
	hasFound := false
	for _, m := range o.clausesOf[subset[rarest]] {
		s.prop.Work++
		isSubset := signature&^o.signatures[m] == 0 // clause m has all bits of subset's signature
		mayContain := isSubset && len(s.prop.clauses[m]) >= len(subset)
		if m == n || s.prop.removed[m] || !mayContain || !o.contains(m, subset) {
			continue
		}
		hasFound = true
		if flip == noFlip {
			s.prop.removed[m] = true
			continue
		}
		var shorter []Literal
		for _, l := range s.prop.clauses[m] {
			if s.canonical(l) != subset[flip] {
				shorter = append(shorter, l)
			}
		}
		s.prop.replace(int(m), shorter) // removes m: shorter gets a number of its own
	}
	return hasFound
}

// subsetFor returns the literals of c, with c[flip] replaced by its opposite unless flip is noFlip, in canonical form: one literal for all
// with the same meaning. signature is their signature, and rarest the position of the one that is in the fewest clauses, −1 if c is empty.
func (o *occurrences) subsetFor(c []Literal, flip int) (subset []Literal, signature uint64, rarest int) {
	subset, rarest = slices.Clone(c), -1
	for k := range subset {
		if k == flip {
			subset[k] = subset[k].Not()
		}
		subset[k] = o.s.canonical(subset[k])
		signature |= o.signature(subset[k])
		if rarest < 0 || len(o.clausesOf[subset[k]]) < len(o.clausesOf[subset[rarest]]) {
			rarest = k
		}
	}
	return subset, signature, rarest
}

// contains reports whether clause m has all of these literals, which are canonical.
func (o *occurrences) contains(m int32, subset []Literal) bool {
	c := o.s.prop.clauses[m]
	o.s.prop.Work += int64(len(c))
	for _, l := range subset {
		if !slices.ContainsFunc(c, func(k Literal) bool { return o.s.canonical(k) == l }) {
			return false
		}
	}
	return true
}
