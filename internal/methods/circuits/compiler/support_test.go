package compiler

import (
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestPropagationIsArcConsistent: value 0 of x excludes two values of y; without the third one it is excluded.
func TestPropagationIsArcConsistent(t *testing.T) {
	f := formula.Formula{Domains: []int{3, 4}, Links: 2, Functional: []bool{}, Scale: scaled.One}
	g, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []int{0, 1} {
		g.Clauses = append(g.Clauses, []formula.Literal{g.Literal(0, 0).Not(), g.Literal(1, b).Not()})
	}
	p, err := encode(g, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	s, ok, err := prepare(t.Context(), p, Options{Memory: defaultMemory})
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.solver.OpenLevel()
	s.solver.Assign(p.literalOf(1, 2).Not(), sat.Decided)
	if !s.solver.Propagate() || s.residual.value[p.literalOf(0, 0)] != 0 {
		t.Fatal("value 0 of x has a support, and is excluded")
	}
	s.solver.OpenLevel()
	s.solver.Assign(p.literalOf(1, 3).Not(), sat.Decided)
	if !s.solver.Propagate() || s.residual.value[p.literalOf(0, 0)] != -1 {
		t.Error("value 0 of x has no support, and is not excluded")
	}
}
