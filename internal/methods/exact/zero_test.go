package exact_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLostTotalIsNoZero: a model of positive entries whose terms span more than float64 may fail,
// but its Z is never 0. All pairs of eight variables prefer different values by 600 orders of
// magnitude; the third value is the one in between.
func TestLostTotalIsNoZero(t *testing.T) {
	const n, d = 8, 3
	m := &factorgraph.Model{Domains: make([]int, n)}
	for i := range m.Domains {
		m.Domains[i] = d
		for k := range i {
			data := make([]float64, d*d)
			for x := range data {
				data[x] = []float64{1e300, 1e-300, 1, 5e-324, 1.7e308}[(x*(2+i)+3*k+i*k)%5]
			}
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{k, i},
					Table: &tensor.Dense{Shape: []int{d, d}, Data: data}})
		}
	}
	lost := 0
	for round := range 40 {
		part := *m
		part.Factors = m.Factors[:5+round%24]
		net, err := reparam.Build(context.Background(), &part, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, marginals := range []bool{false, true} {
			p, err := exact.Prepare(context.Background(), net, marginals)
			if err != nil {
				t.Fatal(err)
			}
			c, _, err := p.Plan(context.Background(), 0, uint64(round))
			if err != nil {
				t.Fatal(err)
			}
			z, _, err := p.Contract(context.Background(), c, exact.Options{})
			if marginals {
				z, _, _, err = p.Marginals(context.Background(), c, exact.Options{})
			}
			switch {
			case errors.Is(err, sumproduct.ErrSpan) && fault.CodeOf(err) == fault.Unsupported:
				lost++
				a, err := exact.ContractWide(context.Background(), net, marginals, nil, 0)
				want, _ := oracle.LogZ(&part, factorgraph.Evidence{})
				if err != nil || a.Doubt != "" ||
					math.Abs(a.Z.LogAbs()-want) > 1e-9*(1+math.Abs(want)) {
					t.Errorf("%d factors in wide numbers: ln Z %v, want %v, %q, %v",
						len(part.Factors), a.Z.LogAbs(), want, a.Doubt, err)
				}
			case err != nil:
				t.Fatal(err)
			case z.IsZero():
				t.Errorf("%d factors, marginals %v: Z is 0", len(part.Factors), marginals)
			}
		}
	}
	if lost == 0 {
		t.Error("no model of these lost its total: the test has no teeth")
	}
}
