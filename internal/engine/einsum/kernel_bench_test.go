package einsum_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// BenchmarkKernel contracts models whose time is one kind of step: the message with all indices times small tables
// (complete graph), messages that lack some of the fast axes (a wide grid), a large domain, and many small steps (a
// chain).
func BenchmarkKernel(b *testing.B) {
	for _, m := range benchmarkModels() {

		order := orders.MinFill(m.e.Hypergraph())
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads%d", m.name, threads), func(b *testing.B) {
				var flops float64
				for b.Loop() {
					_, stats, err := einsum.Contract(context.Background(), m.e, order, einsum.Options{Threads: threads})
					if err != nil {
						b.Fatal(err)
					}
					flops += stats.Flops
				}
				b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

type benchmarkModel struct {
	name string
	e    *sumproduct.Expression
}

func benchmarkModels() []benchmarkModel {
	return []benchmarkModel{
		{"complete22", pairwise(22, 2, func(i, j int) bool { return true })},
		{"grid18x18", pairwise(18*18, 2, func(i, j int) bool { return j == i+18 || j == i+1 && j%18 != 0 })},
		{"complete8d10", pairwise(8, 10, func(i, j int) bool { return true })},
		{"chain100000", pairwise(100000, 2, func(i, j int) bool { return j == i+1 })},
	}
}

// pairwise returns a model of n variables of one domain with a positive random table for every edge i < j.
func pairwise(n, domain int, edge func(i, j int) bool) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{domain}, n)}
	reach := 30 // edges connect near variables
	for i := range n {
		for j := i + 1; j < min(n, i+reach); j++ {
			if edge(i, j) {
				data := make([]float64, domain*domain)
				for k := range data {
					data[k] = 0.5 + rng.Float64()
				}
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
			}
		}
	}
	return e
}

// BenchmarkMarginals: one pass forth and one back should take about three times the pass forth of BenchmarkKernel.
func BenchmarkMarginals(b *testing.B) {
	for _, m := range benchmarkModels() {
		order := orders.MinFill(m.e.Hypergraph())
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads%d", m.name, threads), func(b *testing.B) {
				var flops float64
				for b.Loop() {
					_, stats, err := einsum.Marginals(context.Background(), m.e, order, einsum.Options{Threads: threads})
					if err != nil {
						b.Fatal(err)
					}
					flops += stats.Flops
				}
				b.ReportMetric(flops/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}
