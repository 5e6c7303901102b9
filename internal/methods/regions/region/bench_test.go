package region_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// expression returns a model without evidence.
func expression(t testing.TB, m *factorgraph.Model, err error) *sumproduct.Expression {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return built(t, net)
}

func built(t testing.TB, net *btn.Network) *sumproduct.Expression {
	t.Helper()
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func propagate(t testing.TB, e *sumproduct.Expression) *bp.State {
	t.Helper()
	s, err := bp.Run(context.Background(), e, bp.Options{Tolerance: 1e-12})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// benchmarkFamilies returns families of regions: small and alike on lattices, of many shapes on random graphs,
// a few wide ones, and such of domains above 2.
func benchmarkFamilies(b *testing.B) []struct {
	name string
	e    *sumproduct.Expression
	o    region.Options
} {
	model := func(m *factorgraph.Model, err error) *sumproduct.Expression { return expression(b, m, err) }
	small := model(generate.Grid(40, 40, generate.Ising{Delta: 0.5, Seed: 1}))
	large := model(generate.Grid(100, 100, generate.Ising{Delta: 0.5, Seed: 1}))
	potts := model(generate.Grid(16, 16, generate.Ising{Delta: 0.5, Seed: 1, Domain: 4}))
	regular := model(generate.RandomRegular(200, 3, generate.Ising{Delta: 0.5, Seed: 1}))
	wide := model(generate.Grid(12, 12, generate.Ising{Delta: 0.5, Seed: 1}))
	dense := model(generate.RandomRegular(60, 3, generate.Ising{Delta: 0.3, Seed: 1, Domain: 3}))
	return []struct {
		name string
		e    *sumproduct.Expression
		o    region.Options
	}{
		{"grid40-windows3", small, region.Options{Kind: region.Windows, Size: 3}},
		{"grid40-windows6", small, region.Options{Kind: region.Windows, Size: 6}},
		{"grid100-windows4", large, region.Options{Kind: region.Windows, Size: 4}},
		{"potts16-windows4", potts, region.Options{Kind: region.Windows, Size: 4}},
		{"regular200-balls5", regular, region.Options{Kind: region.Balls, Size: 5}},
		{"grid12-windows10", wide, region.Options{Kind: region.Windows, Size: 10}},
		{"regular60d3-balls4", dense, region.Options{Kind: region.Balls, Size: 4}},
	}
}

// BenchmarkRegions is the contraction of a family: once with new programs, and then with the ones
// that a worker has, without and with marginals.
func BenchmarkRegions(b *testing.B) {
	ctx := context.Background()
	for _, m := range benchmarkFamilies(b) {
		s := propagate(b, m.e)
		for _, marginals := range []bool{false, true} {
			m.o.Marginals = marginals
			f, err := region.Plan(ctx, m.e.Hypergraph(), m.o)
			if err != nil {
				b.Fatal(err)
			}
			p, err := region.Prepare(ctx, m.e, s, f)
			if err != nil {
				b.Fatal(err)
			}
			contract := func(b *testing.B, p *region.Prepared) {
				if _, err := p.Part(ctx, 0, f.Len()); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("%s/marginals=%t", m.name, marginals), func(b *testing.B) {
				contract(b, p)
				for b.Loop() {
					contract(b, p)
				}
				b.ReportMetric(f.Flops*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
			if marginals {
				continue
			}
			b.Run(m.name+"/anew", func(b *testing.B) {
				for b.Loop() {
					contract(b, p.WithFamily(f))
				}
			})
		}
	}
}

// BenchmarkPlan is the choice and pricing of a family.
func BenchmarkPlan(b *testing.B) {
	families := benchmarkFamilies(b)
	if os.Getenv("BTN_DATA") != "" {
		for size := 2; size <= 3; size++ {
			families = append(families, families[0])
			last := &families[len(families)-1]
			last.name, last.o = fmt.Sprintf("DBN_13-balls%d", size), region.Options{Kind: region.Balls, Size: size}
			last.e = built(b, reference.Network(b, "uai/DBN_13"))
		}
	}
	for _, m := range families {
		h := m.e.Hypergraph()
		b.Run(m.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := region.Plan(context.Background(), h, m.o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
