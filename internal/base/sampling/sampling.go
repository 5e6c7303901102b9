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

// Of returns the mean of weights. Cost: N ln N.
func Of(ln []float64) Mean {
	m := Mean{N: len(ln), StandardError: math.NaN(), Tail: math.NaN()}
	top := most(ln)
	if m.Ln = top; math.IsInf(top, -1) {
		return m
	}
	sum, squares := 0.0, 0.0
	for _, l := range ln {
		w := math.Exp(l - top)
		sum += w
		squares += w * w
	}
	n := float64(m.N)
	mean := sum / n
	m.Ln = top + math.Log(mean)
	m.Effective = sum * sum / squares
	if m.N > 1 {
		variance := 0.0
		for _, l := range ln {
			d := math.Exp(l-top) - mean
			variance += d * d
		}
		m.StandardError = math.Sqrt(variance/(n-1)/n) / mean
	}
	m.Tail = tail(ln)
	m.Shift, m.Zeros = shift(ln, m.Ln)
	return m
}

// Believed is the tail index up to which the standard error of N weights is to be believed: min(0.7, 1 − 1/log10 N) (Vehtari, Simpson,
// Gelman, Yao, Gabry, Pareto smoothed importance sampling, 2024).
func Believed(n int) float64 { return min(0.7, 1-1/math.Log10(float64(max(n, 2)))) }

// Settled reports whether the standard error is to be believed: the tail index was found and is small enough.
func (m Mean) Settled() bool { return m.Tail <= Believed(m.N) }

// LnMean returns ln of the mean of weights.
func LnMean(ln []float64) float64 {
	top := most(ln)
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, l := range ln {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum/float64(len(ln)))
}

// most returns the largest, −Inf of none.
func most(ln []float64) float64 {
	top := math.Inf(-1)
	for _, l := range ln {
		top = max(top, l)
	}
	return top
}

// shift returns Mean.Shift and Mean.Zeros. The former is mean + variance/2 of the logarithms of the weights above 0, plus ln
// of their share of all, minus ln of the mean of all.
func shift(ln []float64, lnMean float64) (far float64, zeros int) {
	above := make([]float64, 0, len(ln))
	mean := 0.0
	for _, l := range ln {
		if !math.IsInf(l, -1) {
			above = append(above, l)
			mean += l
		}
	}
	n := float64(len(above))
	return math.Log(n/float64(len(ln))) + mean/n + Variance(above)/2 - lnMean, len(ln) - len(above)
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

// tail fits a generalised Pareto distribution to the min(N/5, 3√N) largest weights, as exceedances over the next one: the estimator of
// Zhang and Stephens (Technometrics 2009) with the prior of Vehtari et al. that pulls its shape to 1/2 by ten observations. NaN below five.
func tail(ln []float64) float64 {
	n := len(ln)
	m := int(min(float64(n)/5, 3*math.Sqrt(float64(n))))
	if m < 5 {
		return math.NaN()
	}
	sorted := slices.Clone(ln)
	slices.Sort(sorted)
	top := sorted[n-1]
	threshold := math.Exp(sorted[n-m-1] - top)
	x := make([]float64, m)
	for k := range x {
		x[k] = math.Exp(sorted[n-m+k]-top) - threshold
	}
	if x[m-1] <= same { // all the same, but for rounding
		return math.Inf(-1)
	}
	k := shape(x)
	return (k*float64(m) + 10*0.5) / float64(m+10)
}

// same is the share of the largest weight by which weights may differ and are taken for the same.
const same = 1e-9

// shape is the posterior mean of the shape of a generalised Pareto distribution, of sorted exceedances, the largest above 0.
func shape(x []float64) float64 {
	n := len(x)
	quarter := x[int(float64(n)/4+0.5)-1]
	if quarter <= 0 {
		quarter = x[n-1] / float64(n)
	}
	points := 30 + int(math.Sqrt(float64(n)))
	theta := make([]float64, points)
	likelihood := make([]float64, points)
	for j := range theta {
		theta[j] = 1/x[n-1] + (1-math.Sqrt(float64(points)/(float64(j)+0.5)))/(3*quarter)
		k := 0.0
		for _, v := range x {
			k += math.Log1p(-theta[j]*v) / float64(n)
		}
		likelihood[j] = float64(n) * (math.Log(-theta[j]/k) - k - 1)
		if theta[j] == 0 || math.IsNaN(likelihood[j]) {
			likelihood[j] = math.Inf(-1)
		}
	}
	top := slices.Max(likelihood)
	if math.IsInf(top, -1) {
		return math.Inf(1)
	}
	weight, sum := 0.0, 0.0
	for j, l := range likelihood {
		w := math.Exp(l - top)
		weight += w
		sum += w * theta[j]
	}
	at := sum / weight
	k := 0.0
	for _, v := range x {
		k += math.Log1p(-at*v) / float64(n)
	}
	return k
}
