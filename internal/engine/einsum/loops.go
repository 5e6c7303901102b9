package einsum

// The innermost loops, over contiguous runs of equal length, by package kernel.

import loops "github.com/basetensor/basetensor/internal/base/kernel"

// begin is the place of a run in itself.
var begin = []int{0}

// multiply is out = a·b.
func multiply(out, a, b []float64) { loops.Blend(out, a, b, begin, begin, true) }

// set is out = f·a·b, b nil for ones.
func set(out []float64, f float64, a, b []float64) { combine(out, f, a, b, true) }

// add is out += f·a·b, b nil for ones.
func add(out []float64, f float64, a, b []float64) { combine(out, f, a, b, false) }

func combine(out []float64, f float64, a, b []float64, first bool) {
	weight := [1]float64{f}
	if b == nil {
		loops.Panel(out, len(out), 1, len(out), weight[:], a, begin, loops.Columns, first)
		return
	}
	loops.Weighted(out, a, b, begin, begin, weight[:], first)
}
