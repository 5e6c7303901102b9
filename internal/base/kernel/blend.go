package kernel

// Sums of products of runs.

import "math"

// blendArgs is a call of the assembly. The generator knows where the fields are.
type blendArgs struct {
	out     *float64
	a       *float64
	b       *float64
	atA     *int
	atB     *int
	n       int
	terms   int
	weights *float64 // not read by the loops without weights
	add     int      // 1: sums begin with the entries of out, 0: with zero
}

// fewProducts is the number of products up to which the loop in Go is faster than a call of the others.
const fewProducts = 8

// Blend computes sums of products of runs,
//
//	out[j] ← Σ_k a[atA[k]+j]·b[atB[k]+j], k < len(atA),
//
// or adds them to out unless isFirst is set. With one term out may be one of the two runs.
func Blend(out, a, b []float64, atA, atB []int, isFirst bool) {
	active.blend(out, a, b, atA, atB, nil, isFirst)
}

// Weighted is Blend with a weight for every term:
//
//	out[j] ← Σ_k (w[k]·a[atA[k]+j])·b[atB[k]+j],
//
// the product with the weight rounded by itself.
func Weighted(out, a, b []float64, atA, atB []int, w []float64, isFirst bool) {
	active.blend(out, a, b, atA, atB, w, isFirst)
}

// blend computes out[i] ← Σ_k w[k]·a[atA[k]+i]·b[atB[k]+i] with the loops of the set x, in Go or in assembly, or adds the sum to out unless
// isFirst is set. All weights are 1 if w is nil. It panics if a list is too short, since the assembly does not check.
func (x loopSet) blend(out, a, b []float64, atA, atB []int, w []float64, isFirst bool) {
	n := len(out)
	if n == 0 {
		return
	}
	if len(atA) == 0 {
		if isFirst {
			clear(out)
		}
		return
	}
	if x == rounded || x == fused || n*len(atA) <= fewProducts {
		x.blendInGo(out, a, b, atA, atB, w, isFirst)
		return
	}
	atB = atB[:len(atA)]
	checkRuns(a, atA, n)
	checkRuns(b, atB, n)
	args := blendArgs{
		out:   &out[0],
		a:     &a[0],
		b:     &b[0],
		atA:   &atA[0],
		atB:   &atB[0],
		n:     n,
		terms: len(atA),
	}
	if !isFirst {
		args.add = 1
	}
	if w == nil {
		x.blendVector(&args)
		return
	}
	_ = w[len(atA)-1] // panics if w is too short
	args.weights = &w[0]
	x.weightedVector(&args)
}

// checkRuns panics unless list has n entries from every place on.
func checkRuns(list []float64, places []int, n int) {
	for _, place := range places {
		_ = list[place : place+n]
	}
}

// blendInGo computes out[i] ← Σ_k w[k]·a[atA[k]+i]·b[atB[k]+i] by the loops in Go, or adds the sum to out unless isFirst is set. All
// weights are 1 if w is nil.
func (x loopSet) blendInGo(out, a, b []float64, atA, atB []int, w []float64, isFirst bool) {
	n := len(out)
	for k, begin := range atA {
		weight := 1.0
		if w != nil {
			weight = w[k]
		}
		runA, runB := a[begin:][:n], b[atB[k]:][:n]
		switch {
		case k == 0 && isFirst:
			setProduct(out, weight, runA, runB)
		case x == rounded:
			addProductRounded(out, weight, runA, runB)
		default:
			addProductFused(out, weight, runA, runB)
		}
	}
}

// Chain returns the sum of products of single entries Σ_k a[atA[k]]·b[atB[k]]: an entry of Blend.
func Chain(a, b []float64, atA, atB []int) float64 { return active.chain(a, b, atA, atB) }

// chain returns Σ_k a[atA[k]]·b[atB[k]], added up one term after the other. Every product and addition is rounded if x is rounded, else
// each pair of them is fused and rounded once.
func (x loopSet) chain(a, b []float64, atA, atB []int) float64 {
	sum := 0.0
	atB = atB[:len(atA)]
	if x == rounded {
		for k, place := range atA {
			sum += float64(a[place] * b[atB[k]])
		}
		return sum
	}
	for k, place := range atA {
		sum = math.FMA(a[place], b[atB[k]], sum)
	}
	return sum
}

// Chains computes Chain for four columns of b: out[c] ← Σ_k a[atA[k]]·b[columns[c]+atB[k]].
func Chains(out *[4]float64, a, b []float64, columns *[4]int, atA, atB []int) {
	active.chains(out, a, b, columns, atA, atB)
}

// chains sets out[c] to Σ_k a[atA[k]]·b[columns[c]+atB[k]], added up one term after the other, for four columns c. Every product and
// addition is rounded if x is rounded, else each pair of them is fused and rounded once.
func (x loopSet) chains(out *[4]float64, a, b []float64, columns *[4]int, atA, atB []int) {
	atB = atB[:len(atA)]
	b0, b1, b2, b3 := b[columns[0]:], b[columns[1]:], b[columns[2]:], b[columns[3]:]
	var s0, s1, s2, s3 float64
	if x == rounded {
		for k, place := range atA {
			f, j := a[place], atB[k]
			s0 += float64(f * b0[j])
			s1 += float64(f * b1[j])
			s2 += float64(f * b2[j])
			s3 += float64(f * b3[j])
		}
	} else {
		for k, place := range atA {
			f, j := a[place], atB[k]
			s0 = math.FMA(f, b0[j], s0)
			s1 = math.FMA(f, b1[j], s1)
			s2 = math.FMA(f, b2[j], s2)
			s3 = math.FMA(f, b3[j], s3)
		}
	}
	*out = [4]float64{s0, s1, s2, s3}
}

// Add computes out += f·a.
func Add(out []float64, f float64, a []float64) {
	const isFirst = false // it adds to out
	var begin [1]int
	Panel(out, len(out), 1, len(out), []float64{f}, a, begin[:], Columns, isFirst)
}
