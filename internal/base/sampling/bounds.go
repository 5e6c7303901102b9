package sampling

// Lower bounds on Z that hold with a stated probability, for any weights.

import (
	"math"
	"slices"
)

// Bundles returns the best number K of equal bundles of N weights for Lower at level 1−δ, if their variance is spread times the square of
// their mean: the loss K·spread/(2N) + ln(2/δ)/K is least at K = √(2N ln(2/δ)/spread). The bound needs a K that is chosen before the
// weights are seen.
func Bundles(n int, spread, delta float64) int {
	if n < 1 {
		return 0
	}
	k := math.Sqrt(2 * float64(n) * math.Log(2/delta) / max(spread, 1e-9))
	return int(max(1, min(k, float64(n))))
}

// Lower returns a bound below ln Z that holds with probability 1−δ or more, for any distribution of the weights, whose mean is Z. The
// weights are divided, in their sequence, into K bundles that differ in size by one weight at most, with the means Ẑ_k. The bound is the
// larger of two, each of which holds with probability 1−δ/2:
//
//   - Π_k Ẑ_k has the mean Z^K, so ln Z ≥ (1/K)(Σ_k ln Ẑ_k − ln(2/δ)) by Markov's inequality.
//   - The j-th smallest Ẑ_k exceeds c·Z with probability C(K, j−1) c^{−(K−j+1)} at most. That is δ/2 for the c of the code; j is 1 + K/4.
//
// −Inf says nothing. bundles, which is K, is to be fixed beforehand, see Bundles. Cost: N.
func Lower(ln []float64, bundles int, delta float64) float64 {
	k := min(bundles, len(ln))
	if k < 1 || !(delta > 0) {
		return math.Inf(-1)
	}
	lnMeans := make([]float64, k)
	sum := 0.0
	for b := range lnMeans {
		first, end := b*len(ln)/k, (b+1)*len(ln)/k
		lnMeans[b] = LnMean(ln[first:end])
		sum += lnMeans[b]
	}
	byProduct := (sum - math.Log(2/delta)) / float64(k)

	slices.Sort(lnMeans)
	j := 1 + k/4
	byOrder := lnMeans[j-1] - (lnChoose(k, j-1)+math.Log(2/delta))/float64(k-j+1)
	return max(byProduct, byOrder)
}

// lnChoose returns ln of the binomial coefficient "n choose k", ln n! − ln k! − ln (n−k)!.
func lnChoose(n, k int) float64 {
	lnFactorialN, _ := math.Lgamma(float64(n + 1)) // not read: the sign, which is plus
	lnFactorialK, _ := math.Lgamma(float64(k + 1))
	lnFactorialRest, _ := math.Lgamma(float64(n - k + 1))
	return lnFactorialN - lnFactorialK - lnFactorialRest
}

// Bernstein returns bounds on ln Z that hold together with probability 1−δ or more, for weights of at most e^lnMost (Maurer and Pontil,
// Empirical Bernstein bounds, 2009, with δ/2 for either side): |Ẑ − Z| ≤ √(2V̂ ln(4/δ)/N) + 7 e^lnMost ln(4/δ)/(3(N−1)), where Ẑ and V̂ are
// the mean and the variance of the weights. Without a bound it returns −Inf and +Inf.
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
	lnInverse := math.Log(4 / delta) // ln(2/(δ/2))
	deviation := math.Sqrt(2*variance*lnInverse/n) + 7*lnInverse/(3*(n-1))
	lower = math.Inf(-1)
	if mean > deviation {
		lower = lnMost + math.Log(mean-deviation)
	}
	return lower, min(lnMost, lnMost+math.Log(mean+deviation))
}
