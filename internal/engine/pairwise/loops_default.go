//go:build !(goexperiment.simd && amd64)

package pairwise

// Without the experiment the portable loops are the loops.

// Nanoseconds per multiplication and addition.
const (
	perPanel = 0.23
	perBlend = 0.30
	perInner = 0.25
)

// Vector names the vector instructions in use, "" for none.
func Vector() string { return "" }

// addPanel, blendRun, blendTwoRuns and dot are the portable loops.
func addPanel(out []float64, stride, rows, n int, s, v []float64, at []int, first bool) {
	panelPortable(out, stride, rows, n, s, v, at, first)
}

func blendRun(out, a, b []float64, first bool) { blendPortable(out, a, b, first) }
func blendTwoRuns(out, a, b, c, d []float64, first bool) {
	blendTwoPortable(out, a, b, c, d, first)
}

func dot(a, b []float64) float64 { return dotPortable(a, b) }
