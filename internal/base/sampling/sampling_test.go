package sampling

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// lognormal draws logarithms of weights whose mean is 1.
func lognormal(r *rand.Rand, n int, sigma float64) []float64 {
	ln := make([]float64, n)
	for k := range ln {
		ln[k] = sigma*r.NormFloat64() - sigma*sigma/2
	}
	return ln
}

// TestMeanAgainstBigNumbers: mean, error and effective number, far from the range of float64.
func TestMeanAgainstBigNumbers(t *testing.T) {
	ln := []float64{-2000, -2001.5, math.Inf(-1), -2003, -1999.25}
	sum, squares := new(big.Float), new(big.Float)
	for _, l := range ln {
		if math.IsInf(l, -1) {
			continue
		}
		x := new(big.Float).SetFloat64(math.Exp(l + 2000))
		sum.Add(sum, x)
		squares.Add(squares, new(big.Float).Mul(x, x))
	}
	s, _ := sum.Float64()
	q, _ := squares.Float64()
	m := MeanOf(ln)
	mean := s / 5
	if want := math.Log(mean) - 2000; math.Abs(m.Ln-want) > 1e-12 || math.Abs(LnMean(ln)-want) > 1e-12 {
		t.Errorf("ln of the mean %v, not %v", m.Ln, want)
	}
	if want := math.Sqrt((q-5*mean*mean)/4/5) / mean; math.Abs(m.StandardError-want) > 1e-12 {
		t.Errorf("standard error %v, not %v", m.StandardError, want)
	}
	if want := s * s / q; math.Abs(m.Effective-want) > 1e-12 {
		t.Errorf("effective %v, not %v", m.Effective, want)
	}
	if none := MeanOf([]float64{math.Inf(-1), math.Inf(-1)}); !math.IsInf(none.Ln, -1) || none.IsReliable() {
		t.Errorf("of zeros: %+v", none)
	}
}

// TestTailOfParetoWeights: the shape that the weights were drawn with is found, and lognormal weights of a small spread are settled.
func TestTailOfParetoWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, k := range []float64{0.2, 0.5, 0.9, 1.5} {
		mean := 0.0
		const runs = 20
		for range runs {
			ln := make([]float64, 20000)
			for i := range ln {
				ln[i] = -k * math.Log(r.Float64()) // Pareto of shape k
			}
			mean += MeanOf(ln).Tail / runs
		}
		if math.Abs(mean-k) > 0.1 {
			t.Errorf("tail index of Pareto weights of shape %v is %v", k, mean)
		}
	}
	if m := MeanOf(lognormal(r, 1000, 0.3)); !m.IsReliable() {
		t.Errorf("tail index %v of nearly equal weights", m.Tail)
	}
	if m := MeanOf(lognormal(r, 1000, 5)); m.IsReliable() || m.Shift < 1 {
		t.Errorf("tail index %v, shift %v of weights that spread over decades", m.Tail, m.Shift)
	}
	// Half of the weights are 0, the others have a mean of 1.
	half := append(slices.Repeat([]float64{math.Inf(-1)}, 1000), lognormal(r, 1000, 5)...)
	if m := MeanOf(half); m.Zeros != 1000 || math.Abs(m.Ln+m.Shift+math.Ln2) > 2 {
		t.Errorf("%d zeros, %v, shift %v beside weights that spread over decades", m.Zeros, m.Ln, m.Shift)
	}
	if m := MeanOf(make([]float64, 100)); !m.IsReliable() || m.StandardError != 0 {
		t.Errorf("equal weights: %+v", m)
	}
}

// TestLowerBoundsHold as often as they say, tight and loose weights, and are not far away where weights are nearly equal.
func TestLowerBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, sigma := range []float64{0.1, 0.5, 1, 2, 4} {
		for _, n := range []int{1, 8, 100, 1000} {
			const runs, delta = 1000, 0.05
			wrong, loss := 0, 0.0
			k := Bundles(n, math.Exp(sigma*sigma)-1, delta)
			for range runs {
				lower := Lower(lognormal(r, n, sigma), k, delta)
				if lower > 0 {
					wrong++
				}
				loss -= lower / runs
			}
			// At most delta·runs are expected; five standard deviations above that.
			if limit := delta*runs + 5*math.Sqrt(delta*runs); float64(wrong) > limit {
				t.Errorf("σ %v, %d weights: %d of %d bounds are wrong", sigma, n, wrong, runs)
			}
			if sigma <= 0.5 && n == 1000 && loss > 0.15 {
				t.Errorf("σ %v, %d weights: %v nats are lost", sigma, n, loss)
			}
		}
	}
}

// TestLowerBoundIsMarkovs on a distribution that meets Markov's inequality: weights are 1/δ with probability δ. A bound that takes too
// little off is wrong far too often here.
func TestLowerBoundIsMarkovs(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	const runs, delta = 20000, 0.02
	for _, k := range []int{1, 2, 3} {
		wrong := 0
		// A product of K means is above 1/δ' with probability δ' where each is δ'^(-1/K) with probability δ'^(1/K).
		p := math.Pow(delta/2, 1/float64(k)) * 1.0001
		for range runs {
			ln := make([]float64, k)
			for i := range ln {
				if ln[i] = math.Inf(-1); r.Float64() < p {
					ln[i] = -math.Log(p) + 1e-3
				}
			}
			if Lower(ln, k, delta) > 0 {
				wrong++
			}
		}
		if share := float64(wrong) / runs; share > delta || wrong == 0 {
			t.Errorf("%d bundles: %v of the bounds are wrong, δ is %v", k, share, delta)
		}
	}
	if !math.IsInf(Lower(nil, 3, 0.1), -1) || Bundles(0, 1, 0.1) != 0 {
		t.Error("no weights bound nothing")
	}
}

// TestBernstein: both bounds hold together as often as they say, and meet as N grows.
func TestBernstein(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 4))
	const runs, delta = 2000, 0.05
	for _, n := range []int{10, 100, 10000} {
		wrong, width := 0, 0.0
		for range runs {
			ln := make([]float64, n)
			for k := range ln {
				if ln[k] = math.Inf(-1); r.Float64() < 0.4 {
					ln[k] = 700 // weights are 0 or e^700, Z is 0.4·e^700
				}
			}
			lower, upper := Bernstein(ln, 700, delta)
			if z := 700 + math.Log(0.4); lower > z || upper < z {
				wrong++
			}
			width = upper - lower
		}
		if float64(wrong) > delta*runs {
			t.Errorf("%d weights: %d of %d wrong", n, wrong, runs)
		}
		if n == 10000 && width > 0.15 {
			t.Errorf("%d weights: %v nats between the bounds", n, width)
		}
	}
}

// TestEqualWeightsAreSettled: weights that differ by rounding alone have no tail.
func TestEqualWeightsAreSettled(t *testing.T) {
	ln := make([]float64, 1000)
	for k := range ln {
		ln[k] = 61 + 1e-14*float64(k*k%7)
	}
	if m := MeanOf(ln); !m.IsReliable() || !(m.StandardError < 1e-14) {
		t.Errorf("%+v", m)
	}
}
