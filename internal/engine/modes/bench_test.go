package modes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// BenchmarkFind compares the time of searches with their price, at 3e9 flops a second.
func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	dense := &sumproduct.Expression{Scale: scaled.One}
	for i := range 40 {
		dense.Dims = append(dense.Dims, 2)
		for k := range i {
			j := math.Exp(0.3 * r.NormFloat64())
			dense.Tables = append(dense.Tables, sumproduct.Table{Scope: []int{k, i}, Data: []float64{j, 1 / j, 1 / j, j}})
		}
	}
	narrow, _ := switched(200, 3, 2)
	for name, e := range map[string]*sumproduct.Expression{"dense": dense, "switched": narrow} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Find(b.Context(), e); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(Work(e)/3e9*float64(b.N)/b.Elapsed().Seconds(), "priced")
		})
	}
}
