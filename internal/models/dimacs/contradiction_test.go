package dimacs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/uai"
)

// holds reports by enumeration whether some clauses have a solution with observations.
func holds(variables int, clauses [][]int, observed []factorgraph.Observation) bool {
	for x := range 1 << variables {
		isTrue := func(l int) bool { return (x>>(max(l, -l)-1)&1 == 1) == (l > 0) }
		if !slices.ContainsFunc(clauses, func(c []int) bool { return !slices.ContainsFunc(c, isTrue) }) &&
			!slices.ContainsFunc(observed, func(o factorgraph.Observation) bool { return x>>o.Var&1 != o.Value }) {
			return true
		}
	}
	return false
}

// TestContradiction: of random formulas with observations the clauses that are named have no solution, and all but any one of them have
// one; of formulas with at most one positive literal per clause, for which propagation is complete, there are such clauses if and only if
// there is no solution. By enumeration.
func TestContradiction(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	impossible, possible := 0, 0
	for round := range 600 {
		const variables = 7
		isHorn := round%2 == 0
		var b strings.Builder
		clauses := make([][]int, 6+rng.IntN(14))
		fmt.Fprintf(&b, "p cnf %d %d\n", variables, len(clauses))
		for j := range clauses {
			for k, v := range rng.Perm(variables)[:1+rng.IntN(3)] {
				if l := v + 1; rng.IntN(2) == 0 && (k == 0 || !isHorn) {
					clauses[j] = append(clauses[j], l)
				} else {
					clauses[j] = append(clauses[j], -l)
				}
			}
			fmt.Fprintln(&b, strings.Trim(fmt.Sprint(clauses[j]), "[]"), 0)
		}
		m, err := Read(strings.NewReader(b.String()), uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		observed := []factorgraph.Observation{{Var: rng.IntN(variables), Value: rng.IntN(2)}}[:rng.IntN(2)]
		named := Contradiction(m, observed)
		if isHorn && (named == nil) != holds(variables, clauses, observed) {
			t.Errorf("round %d: %v, with %v", round, named, observed)
		}
		if named == nil {
			possible++
			continue
		}
		impossible++
		var contradicting [][]int
		for _, j := range named {
			literals, ok := Literals(m.Factors[j])
			if line := m.Lines[j]; !ok || !slices.Equal(literals, clauses[line-2]) {
				t.Errorf("round %d: factor %d on line %d has the literals %v, %t", round, j, line, literals, ok)
			}
			contradicting = append(contradicting, literals)
		}
		if holds(variables, contradicting, observed) {
			t.Errorf("round %d: %v have a solution with %v", round, contradicting, observed)
		}
		for k := range contradicting {
			if isHorn && !holds(variables, slices.Delete(slices.Clone(contradicting), k, k+1), observed) {
				t.Errorf("round %d: %v of %v can be spared", round, contradicting[k], contradicting)
			}
		}
	}
	if impossible < 100 || possible < 100 {
		t.Errorf("%d contradictions, %d others", impossible, possible)
	}
}

// TestLongContradiction: a chain of a million implications between two literals is followed.
func TestLongContradiction(t *testing.T) {
	const variables = 1_000_000
	var b strings.Builder
	fmt.Fprintf(&b, "p cnf %d %d\n%d 0\n", variables, variables+1, 1)
	for v := 1; v < variables; v++ {
		fmt.Fprintf(&b, "-%d %d 0\n", v, v+1)
	}
	fmt.Fprintf(&b, "-%d 0\n", variables)
	m, err := Read(strings.NewReader(b.String()), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if named := Contradiction(m, nil); len(named) != variables+1 {
		t.Errorf("%d clauses", len(named))
	}
}

// TestObservedTwice: an observation that is said twice contradicts nothing.
func TestObservedTwice(t *testing.T) {
	m, err := Read(strings.NewReader("p cnf 2 1\n1 2 0\n"), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if conflict := Contradiction(m, []factorgraph.Observation{{Var: 0, Value: 0}, {Var: 0, Value: 0}}); conflict != nil {
		t.Errorf("clauses %v", conflict)
	}
}
