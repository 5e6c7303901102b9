// Package sampling estimates Z from independent weights w ≥ 0 with E w = Z, fixed in number beforehand: their mean, its standard
// error, its trustworthiness, and bounds that hold with a stated probability. Weights are logarithms, in nats, −Inf for 0.
package sampling

import (
	"math"
	"slices"
)

// Mean is the mean of weights and how they spread.
type Mean struct {
	N int
	// Ln is ln of the mean, −Inf where all weights are 0.
	Ln float64
	// StandardError is the standard error of Ln: the standard deviation of the weights over √N times their mean. NaN below two
	// weights and where all are 0.
	StandardError float64
	// Effective is (Σw)²/Σw², between 0 and N. It is blind to states never visited.
	Effective float64
	// Tail is the shape of a generalised Pareto distribution fitted to the largest weights, NaN where there are too few: the weights have
	// a variance where it is below 1/2.
	Tail float64
	// Shift is the change of Ln if the weights above 0 had a log-normal distribution with their logarithms' mean and
	// variance. A large one means that the mean rests on weights that were hardly seen.
	Shift float64
	// Zeros is the number of weights that are 0.
	Zeros int
}

// MeanOf returns the mean of weights, given as logarithms, and how they spread. Cost: N ln N.
func MeanOf(ln []float64) Mean {
	m := Mean{N: len(ln), StandardError: math.NaN(), Tail: math.NaN()}
	top := largest(ln)
	if m.Ln = top; math.IsInf(top, -1) {
		return m
	}

	// All weights are taken relative to the largest.
	sum, squares := 0.0, 0.0
	for _, l := range ln {
		w := math.Exp(l - top)
		sum += w
		squares += w * w
	}
	n := float64(m.N)
	mean := sum / n
	m.Ln = top + math.Log(mean)
	m.Effective = sum * sum / squares // the number of equal weights that are worth as much
	if m.N > 1 {
		squaredDeviations := 0.0
		for _, l := range ln {
			d := math.Exp(l-top) - mean
			squaredDeviations += d * d
		}
		m.StandardError = math.Sqrt(squaredDeviations/(n-1)/n) / mean
	}
	m.Tail = tailIndex(ln)
	m.Shift, m.Zeros = logNormalShift(ln, m.Ln)
	return m
}

// MaxTailIndex is the tail index up to which the standard error of N weights is to be believed: min(0.7, 1 − 1/log10 N) (Vehtari, Simpson,
// Gelman, Yao, Gabry, Pareto smoothed importance sampling, 2024).
func MaxTailIndex(n int) float64 { return min(0.7, 1-1/math.Log10(float64(max(n, 2)))) }

// IsReliable reports whether the standard error is to be believed: the tail index was found and is small enough.
func (m Mean) IsReliable() bool { return m.Tail <= MaxTailIndex(m.N) }

// LnMean returns ln of the mean of weights.
func LnMean(ln []float64) float64 {
	top := largest(ln)
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, l := range ln {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum/float64(len(ln)))
}

// largest returns the largest of a list of logarithms, −Inf for an empty list.
func largest(ln []float64) float64 {
	top := math.Inf(-1)
	for _, l := range ln {
		top = max(top, l)
	}
	return top
}

// logNormalShift returns Mean.Shift and Mean.Zeros: how far ln of the mean would be above lnMean if the positive weights had a log-normal
// distribution, and the number of weights that are 0. ln of the mean of a log-normal distribution is mean + variance/2 of the logarithms;
// ln of the share of positive weights is added.
func logNormalShift(ln []float64, lnMean float64) (shift float64, zeros int) {
	positive := make([]float64, 0, len(ln)) // logarithms of the positive weights
	sum := 0.0
	for _, l := range ln {
		if !math.IsInf(l, -1) {
			positive = append(positive, l)
			sum += l
		}
	}
	n := float64(len(positive))
	return math.Log(n/float64(len(ln))) + sum/n + Variance(positive)/2 - lnMean, len(ln) - len(positive)
}

// Variance returns the variance of numbers, divided by their number.
func Variance(x []float64) float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return variance
}

// tailIndex returns Mean.Tail: the shape of a generalised Pareto distribution fitted to the m = min(N/5, 3√N) largest weights, by how much
// they exceed the next one. It is NaN if m is below five, and −Inf if these weights are equal up to rounding.
//
// The estimator is that of Zhang and Stephens (Technometrics 2009), with the prior of Vehtari et al.: ten observations of shape 1/2.
func tailIndex(ln []float64) float64 {
	n := len(ln)
	m := int(min(float64(n)/5, 3*math.Sqrt(float64(n))))
	if m < 5 {
		return math.NaN()
	}
	sorted := slices.Clone(ln)
	slices.Sort(sorted)
	top := sorted[n-1]
	threshold := math.Exp(sorted[n-m-1] - top)
	exceedances := make([]float64, m)
	for k := range exceedances {
		exceedances[k] = math.Exp(sorted[n-m+k]-top) - threshold
	}
	if exceedances[m-1] <= equalShare {
		return math.Inf(-1)
	}
	shape := paretoShape(exceedances)
	return (shape*float64(m) + 10*0.5) / float64(m+10) // with the prior's ten observations of shape 1/2
}

// equalShare is the share of the largest weight by which weights may differ and count as equal.
const equalShare = 1e-9

// paretoShape returns the shape k of the generalised Pareto distribution of sorted exceedances x, the largest above 0, by the estimator
// of Zhang and Stephens: k = mean of ln(1 − θx) at the posterior mean of θ, which is taken over a grid of values θ. The profile
// likelihood of θ is n (ln(−θ/k) − k − 1).
func paretoShape(x []float64) float64 {
	n := len(x)
	shapeAt := func(theta float64) float64 { // k by θ
		k := 0.0
		for _, v := range x {
			k += math.Log1p(-theta*v) / float64(n)
		}
		return k
	}

	// ln of the likelihood of each point of the grid.
	theta := thetaGrid(x)
	lnLikelihood := make([]float64, len(theta))
	for j := range theta {
		k := shapeAt(theta[j])
		lnLikelihood[j] = float64(n) * (math.Log(-theta[j]/k) - k - 1)
		if theta[j] == 0 || math.IsNaN(lnLikelihood[j]) {
			lnLikelihood[j] = math.Inf(-1) // no distribution
		}
	}

	// The posterior mean of θ.
	top := slices.Max(lnLikelihood)
	if math.IsInf(top, -1) {
		return math.Inf(1)
	}
	weight, sum := 0.0, 0.0
	for j, l := range lnLikelihood {
		w := math.Exp(l - top)
		weight += w
		sum += w * theta[j]
	}
	return shapeAt(sum / weight)
}

// thetaGrid returns the grid of values θ of Zhang and Stephens for n sorted exceedances x: with m = 30 + √n points, the largest exceedance
// x_n and the first quartile x_q,
//
//	θ_j = 1/x_n + (1 − √(m/(j − 1/2)))/(3 x_q), j = 1 … m.
//
// If the quartile is 0, x_n/n stands for it.
func thetaGrid(x []float64) []float64 {
	n := len(x)
	quartile := x[int(float64(n)/4+0.5)-1]
	if quartile <= 0 {
		quartile = x[n-1] / float64(n)
	}
	points := 30 + int(math.Sqrt(float64(n)))
	theta := make([]float64, points)
	for j := range theta {
		theta[j] = 1/x[n-1] + (1-math.Sqrt(float64(points)/(float64(j)+0.5)))/(3*quartile) // here j is from 0 on
	}
	return theta
}
