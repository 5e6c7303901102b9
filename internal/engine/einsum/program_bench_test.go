package einsum_test

import (
	"context"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/uai"
)

// alarm is a small network of discrete domains, as services are asked about.
func alarm() (*factorgraph.Model, error) {
	f, err := os.Open("../../../examples/alarm.uai")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return uai.Read(f, uai.Limits{})
}

// BenchmarkProgram makes and runs programs of many small steps (a chain, alarm), of wide ones (a grid,
// a complete graph), and of large domains.
func BenchmarkProgram(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		make func() (*factorgraph.Model, error)
	}{
		{"alarm", alarm},
		{"chain200", func() (*factorgraph.Model, error) {
			return chain(200, 2, func(from, to int) float64 { return float64(1 + from + 2*to) }), nil
		}},
		{"chain20d40", func() (*factorgraph.Model, error) {
			return chain(20, 40, func(from, to int) float64 { return float64(1 + from + 2*to) }), nil
		}},
		{"grid9", func() (*factorgraph.Model, error) { return generate.Grid(9, 9, generate.Ising{Delta: 0.5, Seed: 1}) }},
		{"complete12", func() (*factorgraph.Model, error) {
			return generate.Complete(12, generate.Ising{Delta: 0.5, Seed: 1})
		}},
		{"regular30d3", func() (*factorgraph.Model, error) {
			return generate.RandomRegular(30, 3, generate.Ising{Delta: 0.5, Seed: 1, Domain: 3})
		}},
	} {
		m, err := c.make()
		if err != nil {
			b.Fatal(err)
		}
		net, err := reparam.Build(ctx, m, reparam.Options{})
		if err != nil {
			b.Fatal(err)
		}
		shape, err := lower.Shape(ctx, net)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkProgram(b, c.name, net, orders.MinFill(shape), shape)
	}
}

func benchmarkProgram(b *testing.B, name string, net *btn.Network, order []int, h contractionorder.Hypergraph) {
	p, ok := einsum.Compile(net, order, policy.ProgramFlops)
	if !ok {
		b.Fatalf("%s: no program, %+v", name, orders.Evaluate(h, order))
	}
	values := 0
	for _, v := range net.Variables {
		values += v.Domain
	}
	into := make([]scaled.Number, values)
	b.Run(name+"/compile", func(b *testing.B) {
		for b.Loop() {
			einsum.Compile(net, order, policy.ProgramFlops)
		}
	})
	b.Run(name+"/Z", func(b *testing.B) {
		for b.Loop() {
			if _, ok := p.Z(net); !ok {
				b.Fatal("no value")
			}
		}
	})
	b.Run(name+"/marginals", func(b *testing.B) {
		for b.Loop() {
			if _, ok := p.Marginals(net, into); !ok {
				b.Fatal("no marginals")
			}
		}
	})
}
