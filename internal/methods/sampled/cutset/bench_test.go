package cutset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// BenchmarkSlices: the time of a slice of a grid with long edges, and Price's figure for it at 3e9 flops a second.
func BenchmarkSlices(b *testing.B) {
	const side = 20
	r := rand.New(rand.NewPCG(3, 5))
	e := &sumproduct.Expression{Scale: scaled.One}
	pair := func(i, j int) {
		x := math.Exp(r.NormFloat64())
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{x, 1 / x, 1 / x, x}})
	}
	for i := range side * side {
		e.Dims = append(e.Dims, 2)
		if i%side > 0 {
			pair(i-1, i)
		}
		if i >= side {
			pair(i-side, i)
		}
	}
	for range 10 {
		pair(r.IntN(side*side/2), side*side/2+r.IntN(side*side/2))
	}
	for _, entries := range []float64{4, 64, 1024, 1 << 14} {
		h := e.Hypergraph()
		order, rest, _ := Choose(h, orders.MinFill(h), entries, math.MaxInt)
		p, err := New(b.Context(), e, order, rest, 1<<30)
		if err != nil {
			b.Fatal(err)
		}
		for _, marginals := range []bool{false, true} {
			b.Run(fmt.Sprintf("%v entries, %d cut, marginals %v", entries, len(order)-rest, marginals), func(b *testing.B) {
				s := p.NewSpace()
				x := make([]int, len(e.Dims))
				var shares [][]float64
				flops := p.cost.Flops
				if marginals {
					flops += p.cost.Marginals
					for range e.Dims {
						shares = append(shares, make([]float64, 2))
					}
				}
				for b.Loop() {
					if _, err := s.LnSlice(b.Context(), nil, x, shares); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(flops/3, "priced-ns/op")
			})
		}
	}
}
