package formula

// Consequences of the formula as a whole: literals that every assignment has, superfluous literals
// of clauses, and equivalent values, each found by asking for an assignment that shows the
// opposite.
//
// Source: T. Korhonen and M. Järvisalo, SharpSAT-TD in Model Counting Competitions 2021–2023, arXiv:2308.15819, section 3.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

const (
	firstShare   = 4       // of the work, for the question whether there is an assignment: without one no other is asked
	questionWork = 1 << 15 // steps that one further question may take
	pictures     = 64      // assignments that are kept
)

// strengthener asks about one formula. It keeps the last assignments that it met: most questions are answered by them.
type strengthener struct {
	*simplifier
	met   []uint64 // by Boolean variable: its value in each of those assignments
	count int      // of them, ever
	until int64
	// question bounds the steps of one question.
	question int64
	found    bool
	doubt    int                     // questions that were not answered within their work
	binary   map[[2]sat.Literal]bool // clauses of two literals
}

// strengthen removes values and literals that no assignment needs. It reports whether it
// found something.
func (s *simplifier) strengthen() bool {
	if s.p.False || len(s.p.clauses) == 0 {
		return false
	}
	g := &strengthener{simplifier: s, met: make([]uint64, len(s.p.Value)/2), binary: map[[2]sat.Literal]bool{}}
	for n, c := range s.p.clauses {
		if !s.p.gone[n] {
			g.note(c)
		}
	}
	g.until = s.budget(strengthenShare)
	g.question = (g.until - s.p.Work) / firstShare
	if g.ask() < 0 {
		return true
	}
	if g.question = questionWork; g.count > 0 {
		g.backbone()
		g.shorten()
		g.merge()
	}
	return g.found
}

// note takes down a clause that is added, if it has two literals.
func (g *strengthener) note(c []Literal) {
	if len(c) == 2 {
		g.binary[pair(g.p.bit(c[0]), g.p.bit(c[1]))] = true
	}
}

func pair(a, b sat.Literal) [2]sat.Literal { return [2]sat.Literal{min(a, b), max(a, b)} }

// over reports whether there is no more work to do, or no answers are to be had.
func (g *strengthener) over() bool {
	return g.p.Work >= g.until || g.p.False || g.pace.Over(1) || g.doubt > pictures
}

// ask is Satisfier.Solve; an assignment that it finds is kept.
func (g *strengthener) ask(assumptions ...sat.Literal) int {
	verdict := g.p.Solve(min(g.question, max(g.until-g.p.Work, 1)), g.pace, assumptions...)
	switch verdict {
	case 0:
		g.doubt++
	case 1:
		at := uint64(1) << (g.count % pictures)
		for v := range g.met {
			if g.met[v] &^= at; g.p.Value[2*v] > 0 {
				g.met[v] |= at
			}
		}
		g.count++
	}
	g.p.Backtrack(0)
	return verdict
}

// filled are the assignments that are kept, a bit each.
func (g *strengthener) filled() uint64 { return ^uint64(0) >> (pictures - min(g.count, pictures)) }

// impossible reports whether no assignment has all of some literals; false where that is not found out.
func (g *strengthener) impossible(literals []sat.Literal) bool {
	shown := g.filled()
	for _, b := range literals {
		if word := g.met[b.Variable()]; b&1 == 0 {
			shown &= word
		} else {
			shown &^= word
		}
	}
	g.p.Work += int64(len(literals))
	return shown == 0 && g.ask(literals...) < 0
}

// backbone fixes the literals that all assignments have.
func (g *strengthener) backbone() {
	for a := range g.p.bits {
		for _, l := range [2]Literal{Literal(2 * a), Literal(2*a + 1)} {
			if g.over() {
				return
			}
			if g.p.value(l) == 0 && g.impossible([]sat.Literal{g.p.bit(l)}) {
				g.found = true
				g.p.fix(l.Not())
			}
		}
	}
}

// shorten takes literals out of clauses that no assignment needs to satisfy them.
func (g *strengthener) shorten() {
	for _, n := range g.longest() {
		if g.over() {
			return
		}
		kept := slices.Clone(g.p.clauses[n])
		before := len(kept)
		for at := 0; at < len(kept) && len(kept) > 1; {
			if g.over() || g.p.value(kept[at]) > 0 {
				break
			}
			assumed := make([]sat.Literal, 0, len(kept)-1)
			for k, l := range kept {
				if k != at {
					assumed = append(assumed, g.p.bit(l).Not())
				}
			}
			if !g.impossible(assumed) {
				at++
				continue
			}
			kept = append(kept[:at], kept[at+1:]...)
		}
		if len(kept) < before {
			g.found = true
			g.note(kept)
			g.p.replace(n, kept)
		}
	}
}

// merge finds values of variables that share a clause and are taken together, or just one of them always is, and says so in
// clauses of two literals.
func (g *strengthener) merge() {
	seen := map[[2]sat.Literal]bool{}
	for n := 0; n < len(g.p.clauses); n++ { // its own clauses have nothing new
		if g.p.gone[n] {
			continue
		}
		c := slices.Clone(g.p.clauses[n])
		for i, k := range c {
			for _, l := range c[:i] {
				if g.over() {
					return
				}
				a, b := g.p.bit(k), g.p.bit(l)
				g.p.Work++
				if both := pair(a&^1, b&^1); a.Variable() != b.Variable() && !seen[both] {
					seen[both] = true
					g.compare(k, l)
				}
			}
		}
	}
}

// compare finds out whether two literals are equivalent, or opposite.
func (g *strengthener) compare(k, l Literal) {
	if g.p.value(k) != 0 || g.p.value(l) != 0 {
		return
	}
	a, b := g.p.bit(k), g.p.bit(l)
	switch differ := g.met[a.Variable()] ^ g.met[b.Variable()] ^ -uint64((a^b)&1); differ & g.filled() {
	case 0:
	case g.filled():
		l, b = l.Not(), b.Not()
	default:
		return
	}
	if g.p.variable[k.Atom()] == g.p.variable[l.Atom()] ||
		!g.impossible([]sat.Literal{a, b.Not()}) || !g.impossible([]sat.Literal{a.Not(), b}) {
		return
	}
	for _, c := range [][]Literal{{k.Not(), l}, {k, l.Not()}} {
		if !g.binary[pair(g.p.bit(c[0]), g.p.bit(c[1]))] {
			g.found = true
			g.note(c)
			g.p.add(c)
		}
	}
}
