package formula

import (
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

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
