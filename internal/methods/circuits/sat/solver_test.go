package sat

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// models are the assignments, a bit per variable, of formulas whose groups are one variable each but for some at the beginning.
func models(first []int32, clauses [][]Literal) (out []int) {
	vars := int(first[len(first)-1])
	for x := range 1 << vars {
		fits := satisfied(x, clauses, nil)
		for g := range len(first) - 1 {
			ones := 0
			for v := first[g]; v < first[g+1]; v++ {
				ones += x >> v & 1
			}
			fits = fits && (ones == 1 || first[g+1]-first[g] == 1)
		}
		if fits {
			out = append(out, x)
		}
	}
	return out
}

// TestSolverAgainstEnumeration: a search that decides at random counts the assignments of random clauses over groups; all that is
// propagated, and every lemma of both kinds, follows from the formula; forgetting changes none of it.
func TestSolverAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	lemmas, forgot := 0, 0
	for range 150 {
		first := []int32{0}
		for first[len(first)-1] < 10 {
			first = append(first, first[len(first)-1]+[]int32{1, 1, 2, 3, 4}[r.IntN(5)])
		}
		vars := first[len(first)-1]
		var clauses [][]Literal
		s := New(first)
		s.LearnedLimit = 2
		for range 15 + r.IntN(30) {
			c := []Literal{}
			for _, v := range r.Perm(int(vars))[:2+r.IntN(3)] {
				c = append(c, Literal(2*v+r.IntN(2)))
			}
			reason := s.Attach(slices.Clone(c), 0)
			switch r.IntN(8) {
			case 0:
				s.Detach(c, reason)
				continue
			case 1:
				s.Detach(c, reason)
				s.Reattach(c, reason)
			}
			clauses = append(clauses, c)
		}
		all := models(first, clauses)
		w := walk{t: t, r: r, s: s, all: all}
		if !s.Propagate() {
			if len(all) > 0 {
				t.Fatalf("%v with groups %v: no assignment is left of %d", clauses, first, len(all))
			}
			continue
		}
		if got := max(w.count(), 0); got != len(all) {
			t.Fatalf("%v with groups %v: %d assignments, enumeration gives %d", clauses, first, got, len(all))
		}
		lemmas += w.lemmas
		if s.LearnedLimit > 2 {
			forgot++
		}
	}
	if lemmas < 500 || forgot == 0 {
		t.Errorf("%d lemmas, %d searches that forgot: too few", lemmas, forgot)
	}
}

// walk is a search for all assignments, which are known.
type walk struct {
	t      *testing.T
	r      *rand.Rand
	s      *Solver
	all    []int
	lemmas int
}

// count returns the number of assignments under the present one, which has no contradiction; −1 where a conflict is left to the
// levels below.
func (w *walk) count() int {
	w.follows()
	var open []Literal
	for l := range Literal(len(w.s.Value)) {
		if w.s.Value[l] == 0 {
			open = append(open, l)
		}
	}
	if len(open) == 0 {
		return 1
	}
	sum, l, reason := 0, open[w.r.IntN(len(open))], Decided
	for range 2 {
		w.s.OpenLevel()
		w.s.Assign(l, reason)
		n := -1
		if w.s.Propagate() {
			n = w.count()
		}
		reason = Decided
		if n >= 0 {
			sum += n
		} else {
			early := slices.Clone(w.s.conflict)
			w.s.Analyse(true)
			w.implied(w.s.lemma)
			w.s.conflict = early
			left := w.s.Analyse(false)
			w.implied(w.s.lemma)
			if !left {
				w.s.CloseLevel()
				return -1
			}
			if w.s.lemma[0] != l.Not() {
				w.t.Fatalf("the lemma %v does not begin with the opposite of the decision %d", w.s.lemma, l)
			}
			w.s.Forget()
			reason = w.s.Learn()
		}
		w.s.CloseLevel()
		l = l.Not()
	}
	return sum
}

// implied fails where an assignment has no literal of a clause.
func (w *walk) implied(c []Literal) {
	w.lemmas++
	for _, x := range w.all {
		if !satisfied(x, [][]Literal{c}, nil) {
			w.t.Fatalf("the lemma %v does not hold in %b", c, x)
		}
	}
}

// follows fails where an assignment has all decisions and not all of the trail.
func (w *walk) follows() {
	var decisions []Literal
	for _, at := range w.s.marks {
		decisions = append(decisions, w.s.Trail[at])
	}
	for _, x := range w.all {
		if satisfied(x, nil, decisions) && !satisfied(x, nil, w.s.Trail) {
			w.t.Fatalf("%v does not follow from %v: %b", w.s.Trail, decisions, x)
		}
	}
}
