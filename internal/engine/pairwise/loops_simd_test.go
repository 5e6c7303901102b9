//go:build goexperiment.simd && amd64

package pairwise

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestVectorLoopsAgainstPortable:
// every loop of every length, within n·2^−53 of the sum of absolute values.
func TestVectorLoopsAgainstPortable(t *testing.T) {
	if Vector() == "" {
		t.Skip("the processor has no AVX-512")
	}
	const seed = 21
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = rng.NormFloat64()
		}
		return out
	}
	compare := func(what string, got, want []float64, terms, size float64) {
		t.Helper()
		for i := range got {
			if d := math.Abs(got[i] - want[i]); !(d <= 2*terms*0x1p-53*size) {
				t.Fatalf("seed %d, %s: entry %d is %v, want %v", seed, what, i, got[i], want[i])
			}
		}
	}
	for range 3000 {
		n, rows, depth := 1+rng.IntN(70), 1+rng.IntN(10), 1+rng.IntN(40)
		v, s, out := random(depth*n+8), random(rows*depth), random(rows*n)
		at := make([]int, depth)
		for k := range at {
			at[k] = k*n + rng.IntN(8)
		}
		for _, first := range []bool{true, false} {
			got, want := append([]float64(nil), out...), append([]float64(nil), out...)
			addPanel(got, n, rows, n, s, v, at, first)
			panelPortable(want, n, rows, n, s, v, at, first)
			compare("panel", got, want, float64(depth+1), 25*float64(depth+1))
			a, b, c, d := random(n), random(n), random(n), random(n)
			blendRun(got[:n], a, b, first)
			blendPortable(want[:n], a, b, first)
			compare("blend", got, want, float64(depth+3), 25*float64(depth+3))
			blendTwoRuns(got[:n], a, b, c, d, first)
			blendTwoPortable(want[:n], a, b, c, d, first)
			compare("blend of two", got, want, float64(depth+5), 25*float64(depth+5))
		}
		a, b := random(n*8), random(n*8)
		compare("dot", []float64{dot(a, b)}, []float64{dotPortable(a, b)}, float64(8*n),
			25*float64(8*n))
	}
}
