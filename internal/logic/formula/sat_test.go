package formula

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestSatisfier: many questions to formulas near the threshold, against enumeration.
func TestSatisfier(t *testing.T) {
	const vars = 12
	r := rand.New(rand.NewPCG(1, 17))
	look := pace.New(context.Background())
	verdicts := map[int]int{}
	for range 200 {
		s := newSatisfier(vars)
		s.keep, s.first = 2, 2
		var all [][]bit
		for range 30 + r.IntN(30) {
			var c []bit
			for range 1 + r.IntN(4) {
				c = append(c, bit(r.IntN(2*vars)))
			}
			if len(c) == 1 && r.IntN(8) > 0 {
				continue
			}
			all = append(all, c)
			s.add(c...)
		}
		for range 20 {
			var assumed []bit
			for range r.IntN(5) {
				assumed = append(assumed, bit(r.IntN(2*vars)))
			}
			want := -1
			for x := range 1 << vars {
				if satisfied(x, all, assumed) {
					want = 1
					break
				}
			}
			got := s.solve(1<<30, look, assumed...)
			if got != want {
				t.Fatalf("%v under %v: %d, enumeration gives %d", all, assumed, got, want)
			}
			verdicts[got]++
			if got < 0 {
				continue
			}
			x := 0
			for v := range vars {
				if s.value[2*v] > 0 {
					x |= 1 << v
				}
			}
			if !satisfied(x, all, assumed) {
				t.Fatalf("%v under %v: %b is none of its assignments", all, assumed, x)
			}
		}
	}
	if verdicts[1] < 500 || verdicts[-1] < 500 {
		t.Errorf("answers %v: too few of one kind", verdicts)
	}
}

// TestSatisfierForgets: formulas with an assignment that is known, searched with few learned clauses kept.
func TestSatisfierForgets(t *testing.T) {
	const vars = 60
	r := rand.New(rand.NewPCG(2, 17))
	forgot := 0
	for range 20 {
		hidden := r.IntN(1 << vars)
		s := newSatisfier(vars)
		s.keep, s.first = 2, 2
		var all [][]bit
		for len(all) < 4*vars {
			c := []bit{bit(r.IntN(2 * vars)), bit(r.IntN(2 * vars)), bit(r.IntN(2 * vars))}
			if satisfied(hidden, [][]bit{c}, nil) {
				all = append(all, c)
				s.add(c...)
			}
		}
		for range 20 {
			v := r.IntN(vars)
			assumed := bit(2*v) | bit(1-hidden>>v&1)
			if s.solve(1<<30, pace.New(context.Background()), assumed) != 1 {
				t.Fatal("the assignment that was hidden is not found, nor another")
			}
			x := 0
			for v := range vars {
				if s.value[2*v] > 0 {
					x |= 1 << v
				}
			}
			if !satisfied(x, all, []bit{assumed}) {
				t.Fatalf("%b is no assignment", x)
			}
		}
		if s.keep > 2 {
			forgot++
		}
	}
	if forgot == 0 {
		t.Error("no search forgot a clause")
	}
}

// satisfied reports whether an assignment, a bit per variable, has a literal of every clause and all those assumed.
func satisfied(x int, clauses [][]bit, assumed []bit) bool {
	holds := func(b bit) bool { return x>>b.number()&1 != int(b&1) }
	for _, b := range assumed {
		if !holds(b) {
			return false
		}
	}
	for _, c := range clauses {
		some := false
		for _, b := range c {
			some = some || holds(b)
		}
		if !some {
			return false
		}
	}
	return true
}

// TestSatisfierGivesUp: a question is left without an answer when its work is spent, and answered when there is more.
func TestSatisfierGivesUp(t *testing.T) {
	const holes = 6 // and one pigeon more
	s := newSatisfier((holes + 1) * holes)
	s.keep, s.first = 2, 2
	for p := range holes + 1 {
		var some []bit
		for h := range holes {
			some = append(some, bit(2*(p*holes+h)))
			for q := range p {
				s.add(bit(2*(p*holes+h)+1), bit(2*(q*holes+h)+1))
			}
		}
		s.add(some...)
	}
	look := pace.New(context.Background())
	if got := s.solve(100, look); got != 0 {
		t.Errorf("with little work: %d", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := s.solve(1<<30, pace.New(ctx)); got != 0 {
		t.Errorf("under a context that has ended: %d", got)
	}
	if got := s.solve(1<<40, look); got != -1 {
		t.Errorf("%d pigeons fit into %d holes: %d", holes+1, holes, got)
	}
}

// TestStrengthen: a consequence beyond propagation: each place of a triangle has one of two
// pebbles, because both places below have.
func TestStrengthen(t *testing.T) {
	const rows = 4
	f := Formula{Scale: scaled.One}
	fresh := func() Literal {
		f.Domains = append(f.Domains, 2)
		return Literal(4*len(f.Domains) - 2) // the last one is 1
	}
	var below [][2]Literal
	for i := rows; i > 0; i-- {
		var row [][2]Literal
		for j := range i {
			p := [2]Literal{fresh(), fresh()}
			row = append(row, p)
			if below == nil {
				f.Clauses = append(f.Clauses, p[:])
				continue
			}
			for _, a := range below[j] {
				for _, b := range below[j+1] {
					f.Clauses = append(f.Clauses, []Literal{a.Not(), b.Not(), p[0], p[1]})
				}
			}
		}
		below = row
	}
	f.Links = len(f.Domains)
	of, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	r := simplified(t, of)
	if len(r.Formula.Clauses) != rows*(rows+1)/2 {
		t.Errorf("%d clauses are left of %d, one per place is enough", len(r.Formula.Clauses), len(f.Clauses))
	}
	for _, c := range r.Formula.Clauses {
		if len(c) != 2 {
			t.Errorf("the clause %v is left", c)
		}
	}
	weights := make([]float64, of.Atoms())
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range weights {
		weights[i] = rng.Float64()
	}
	agree(t, of, r, weights)
}
