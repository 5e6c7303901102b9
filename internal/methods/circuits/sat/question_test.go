package sat

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// TestSatisfier: many questions to formulas near the threshold, against enumeration.
func TestSatisfier(t *testing.T) {
	const vars = 12
	r := rand.New(rand.NewPCG(1, 17))
	look := pace.New(context.Background())
	verdicts := map[int]int{}
	for range 200 {
		s := NewSatisfier(alone(vars))
		s.LearnedLimit, s.restart = 2, 2
		var all [][]Literal
		for range 30 + r.IntN(30) {
			var c []Literal
			for range 1 + r.IntN(4) {
				c = append(c, Literal(r.IntN(2*vars)))
			}
			if len(c) == 1 && r.IntN(8) > 0 {
				continue
			}
			all = append(all, c)
			s.Add(c...)
		}
		for range 20 {
			var assumed []Literal
			for range r.IntN(5) {
				assumed = append(assumed, Literal(r.IntN(2*vars)))
			}
			want := -1
			for x := range 1 << vars {
				if satisfied(x, all, assumed) {
					want = 1
					break
				}
			}
			got := s.Solve(1<<30, look, assumed...)
			if got != want {
				t.Fatalf("%v under %v: %d, enumeration gives %d", all, assumed, got, want)
			}
			verdicts[got]++
			if got < 0 {
				continue
			}
			x := 0
			for v := range vars {
				if s.Value[2*v] > 0 {
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
		s := NewSatisfier(alone(vars))
		s.LearnedLimit, s.restart = 2, 2
		var all [][]Literal
		for len(all) < 4*vars {
			c := []Literal{Literal(r.IntN(2 * vars)), Literal(r.IntN(2 * vars)), Literal(r.IntN(2 * vars))}
			if satisfied(hidden, [][]Literal{c}, nil) {
				all = append(all, c)
				s.Add(c...)
			}
		}
		for range 20 {
			v := r.IntN(vars)
			assumed := Literal(2*v) | Literal(1-hidden>>v&1)
			if s.Solve(1<<30, pace.New(context.Background()), assumed) != 1 {
				t.Fatal("the assignment that was hidden is not found, nor another")
			}
			x := 0
			for v := range vars {
				if s.Value[2*v] > 0 {
					x |= 1 << v
				}
			}
			if !satisfied(x, all, []Literal{assumed}) {
				t.Fatalf("%b is no assignment", x)
			}
		}
		if s.LearnedLimit > 2 {
			forgot++
		}
	}
	if forgot == 0 {
		t.Error("no search forgot a clause")
	}
}

// satisfied reports whether an assignment, a bit per variable, has a literal of every clause and all those assumed.
func satisfied(x int, clauses [][]Literal, assumed []Literal) bool {
	holds := func(b Literal) bool { return x>>b.Variable()&1 != int(b&1) }
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
	s := NewSatisfier(alone((holes + 1) * holes))
	s.LearnedLimit, s.restart = 2, 2
	for p := range holes + 1 {
		var some []Literal
		for h := range holes {
			some = append(some, Literal(2*(p*holes+h)))
			for q := range p {
				s.Add(Literal(2*(p*holes+h)+1), Literal(2*(q*holes+h)+1))
			}
		}
		s.Add(some...)
	}
	look := pace.New(context.Background())
	if got := s.Solve(100, look); got != 0 {
		t.Errorf("with little work: %d", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := s.Solve(1<<30, pace.New(ctx)); got != 0 {
		t.Errorf("under a context that has ended: %d", got)
	}
	if got := s.Solve(1<<40, look); got != -1 {
		t.Errorf("%d pigeons fit into %d holes: %d", holes+1, holes, got)
	}
}

// alone are groups of one variable each.
func alone(vars int) []int32 {
	first := make([]int32, vars+1)
	for v := range first {
		first[v] = int32(v)
	}
	return first
}
