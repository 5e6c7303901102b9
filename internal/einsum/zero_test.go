package einsum_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestConfirmZero: a total of 0 holds where every term is 0 or terms cancel, and not where all terms above 0 were lost.
func TestConfirmZero(t *testing.T) {
	const small, large = 5e-324, 1.7e308
	for _, c := range []struct {
		name        string
		scale       scaled.Number
		left, right []float64 // two tables over the same two indices, their supports disjoint or not
		lost        bool
	}{
		{"disjoint", scaled.One, []float64{1, 0, 0, 1}, []float64{0, 1, 1, 0}, false},
		{"cancelling", scaled.One, []float64{1, -1, 1, -1}, []float64{1, 1, 1, 1}, false},
		{"known", scaled.Number{}, []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, false},
		{"lost", scaled.One, []float64{large, small, 0, 0}, []float64{0, 1, 1, 1}, true},
	} {
		e := &einsum.Expression{Dims: []int{2, 2}, Scale: c.scale, Tables: []einsum.Table{{Scope: []int{0, 1}, Data: c.left}, {Scope: []int{0, 1}, Data: c.right}}}
		z, _, err := einsum.Contract(context.Background(), e, []int{0, 1}, einsum.Options{})
		if err != nil || !z.IsZero() {
			t.Fatalf("%s: the contraction gives %v, %v; this is about 0", c.name, z, err)
		}
		err = einsum.ConfirmZero(e, func(pattern *einsum.Expression) (scaled.Number, error) {
			terms, _, err := einsum.Contract(context.Background(), pattern, []int{0, 1}, einsum.Options{})
			if want, _ := enumerate(pattern); terms.Float64() != want {
				t.Errorf("%s: %v terms, enumeration counts %v", c.name, terms.Float64(), want)
			}
			return terms, err
		})
		if lost := errors.Is(err, einsum.ErrSpan); lost != c.lost || lost != (fault.CodeOf(err) == fault.Unsupported && err != nil) || !lost && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	refused := errors.New("refused")
	e := &einsum.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []einsum.Table{{Scope: []int{0}, Data: []float64{0, 1}}}}
	if err := einsum.ConfirmZero(e, func(*einsum.Expression) (scaled.Number, error) { return scaled.Number{}, refused }); !errors.Is(err, refused) {
		t.Errorf("an error of the contraction: %v", err)
	}
}

// TestBuildKeepsSmallEntries: no entry above 0 becomes 0 where the entries of a factor span all of float64.
func TestBuildKeepsSmallEntries(t *testing.T) {
	data := []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1, 1e-300}
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}}}}
	e, err := einsum.Build(context.Background(), build(t, m, reparam.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for k, table := range e.Tables {
		for _, x := range table.Data {
			if x == 0 {
				t.Errorf("table %d: %v of %v", k, table.Data, data)
			}
		}
	}
}
