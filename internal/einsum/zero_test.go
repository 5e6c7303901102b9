package einsum_test

import (
	"context"
	"errors"
	"testing"

	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
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
		e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: c.scale, Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: c.left}, {Scope: []int{0, 1}, Data: c.right}}}
		z, _, err := einsum.Contract(context.Background(), e, []int{0, 1}, einsum.Options{})
		if err != nil || !z.IsZero() {
			t.Fatalf("%s: the contraction gives %v, %v; this is about 0", c.name, z, err)
		}
		err = sumproduct.ConfirmZero(e, func(pattern *sumproduct.Expression) (scaled.Number, error) {
			terms, _, err := einsum.Contract(context.Background(), pattern, []int{0, 1}, einsum.Options{})
			if want, _ := enumerate(pattern); terms.Float64() != want {
				t.Errorf("%s: %v terms, enumeration counts %v", c.name, terms.Float64(), want)
			}
			return terms, err
		})
		if lost := errors.Is(err, sumproduct.ErrSpan); lost != c.lost || lost != (fault.CodeOf(err) == fault.Unsupported && err != nil) || !lost && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	refused := errors.New("refused")
	e := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{0, 1}}}}
	if err := sumproduct.ConfirmZero(e, func(*sumproduct.Expression) (scaled.Number, error) { return scaled.Number{}, refused }); !errors.Is(err, refused) {
		t.Errorf("an error of the contraction: %v", err)
	}
}
