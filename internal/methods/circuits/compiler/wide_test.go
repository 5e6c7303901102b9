package compiler

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestWideFormulas: at most one of n variables, a clause for every pair, has n + 1 assignments, however wide its tree is.
func TestWideFormulas(t *testing.T) {
	const n = 90
	f := formula.Formula{Domains: slices.Repeat([]int{2}, n), Links: n, Functional: []bool{}, Scale: scaled.One}
	for i := range n {
		for j := range i {
			f.Clauses = append(f.Clauses, []formula.Literal{formula.Literal(2 * (2*i + 1)).Not(), formula.Literal(2 * (2*j + 1)).Not()})
		}
	}
	of, err := formula.New(f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(context.Background(), of, Options{Work: 1 << 24})
	if err != nil || math.Abs(r.Z.Float64()-(n+1)) > 1e-9 {
		t.Errorf("%v, %v, want %d", r.Z, err, n+1)
	}
}
