package sampling

// Lower bounds on Z that hold with a stated probability, for any weights.

import (
	"math"
	"slices"
)

// Bundles returns the best number of equal bundles of N weights for Lower at level 1−δ, where their variance is spread times the
// square of their mean: the loss K·spread/(2N) + ln(1/δ)/K is least at K = √(2N ln(1/δ)/spread). It is fixed before the weights are
// seen, which the bound needs.
func Bundles(n int, spread, delta float64) int {
	if n < 1 {
		return 0
	}
	k := math.Sqrt(2 * float64(n) * math.Log(2/delta) / max(spread, 1e-9))
	return int(max(1, min(k, float64(n))))
}

// Lower returns a bound below ln Z that holds with probability 1−δ or more, for any distribution of the weights: the larger of two,
// each at 1−δ/2, of the means Ẑ_k of the bundles.
//
//   - Π_k Ẑ_k has the mean Z^K, so ln Z ≥ (1/K)(Σ_k ln Ẑ_k − ln(2/δ)) by Markov's inequality.
//   - The j-th smallest exceeds c·Z with probability C(K, j−1) c^{−(K−j+1)} at most, j = 1 + K/4 here.
//
// −Inf says nothing. bundles is to be fixed beforehand, see Bundles; they differ in
// size by one weight at most. Cost: N.
func Lower(ln []float64, bundles int, delta float64) float64 {
	k := min(bundles, len(ln))
	if k < 1 || !(delta > 0) {
		return math.Inf(-1)
	}
	means := make([]float64, k)
	sum := 0.0
	for b := range means {
		from, to := b*len(ln)/k, (b+1)*len(ln)/k
		means[b] = LnMean(ln[from:to])
		sum += means[b]
	}
	product := (sum - math.Log(2/delta)) / float64(k)

	slices.Sort(means)
	j := 1 + k/4
	left := float64(k - j + 1)
	smallest := means[j-1] - (lnChoose(k, j-1)+math.Log(2/delta))/left
	return max(product, smallest)
}

// lnChoose is ln of the binomial coefficient.
func lnChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Bernstein returns bounds on ln Z that hold together with probability 1−δ or more, for weights of at most e^lnMost (Maurer and Pontil,
// Empirical Bernstein bounds, 2009, on either side): |Ẑ − Z| ≤ √(2V̂ ln(4/δ)/N) + 7 e^lnMost ln(4/δ)/(3(N−1)). −Inf and +Inf say nothing.
func Bernstein(ln []float64, lnMost, delta float64) (lower, upper float64) {
	n := float64(len(ln))
	if n < 2 || !(delta > 0) || math.IsInf(lnMost, 1) || math.IsNaN(lnMost) {
		return math.Inf(-1), math.Inf(1)
	}
	mean, variance := 0.0, 0.0
	for _, l := range ln {
		mean += math.Exp(l-lnMost) / n
	}
	for _, l := range ln {
		d := math.Exp(l-lnMost) - mean
		variance += d * d / (n - 1)
	}
	level := math.Log(4 / delta)
	off := math.Sqrt(2*variance*level/n) + 7*level/(3*(n-1))
	lower = math.Inf(-1)
	if mean > off {
		lower = lnMost + math.Log(mean-off)
	}
	return lower, min(lnMost, lnMost+math.Log(mean+off))
}
