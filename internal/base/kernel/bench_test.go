package kernel

import (
	"fmt"
	"testing"
)

// BenchmarkPanel is the loop of tiles by loopSet, on packed operands: rows × columns × values of the sum.
func BenchmarkPanel(b *testing.B) {
	for _, x := range inProcess() {
		for _, shape := range [][3]int{{6, 8, 256}, {64, 256, 256}, {1, 512, 256}, {64, 512, 2}, {16, 16, 16}, {4, 8, 4}} {
			m, n, k := shape[0], shape[1], shape[2]
			s := make([]float64, m*k)
			v := make([]float64, PackedColumns(n, k))
			out := make([]float64, m*n)
			at := progression(nil, k, Columns)
			b.Run(fmt.Sprintf("%s/%dx%dx%d", names[x], m, n, k), func(b *testing.B) {
				for b.Loop() {
					x.panel(out, n, m, n, s, v, at, k*Columns, true)
				}
				b.ReportMetric(2*float64(m*n*k)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}
