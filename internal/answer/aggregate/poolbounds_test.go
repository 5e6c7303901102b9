package aggregate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestBoundsOfPools: both bounds of bounded weights hold about as often as they say, over the rungs of a pool, and are better than the
// weights' bound; without that bound there is none above.
func TestBoundsOfPools(t *testing.T) {
	const (
		pools = 4000
		delta = 0.1
		most  = 1.0 // weights are up to e
	)
	r := rand.New(rand.NewPCG(1, 1))
	wrong, bernstein := 0, 0
	for k := range pools {
		// The mean of e·u^(1/c) is e·c/(c+1).
		c := 0.1 + 3*r.Float64()
		want := most + math.Log(c/(c+1))
		p := &pool{lower: side{ln: math.Inf(-1)}, upper: side{ln: math.Inf(1)}, most: most}
		unbounded := k%4 == 0
		if unbounded {
			p.most = math.Inf(1)
		}
		for rung := range 3 {
			for range 100 << rung {
				p.ln = append(p.ln, most+math.Log(r.Float64())/c)
			}
			lower := p.bound(1, delta*math.Exp2(-float64(rung+1)))
			if lower > p.lower.ln {
				t.Fatalf("the bound below is %v, the best of all %v", lower, p.lower.ln)
			}
		}
		if unbounded != math.IsInf(p.upper.ln, 1) || math.IsInf(p.lower.ln, -1) || p.upper.ln < p.lower.ln {
			t.Fatalf("from %v to %v, bounded %v", p.lower.ln, p.upper.ln, !unbounded)
		}
		if p.lower.ln > want || p.upper.ln < want {
			wrong++
		}
		if p.upper.ln < most-0.1 {
			bernstein++
		}
	}
	if float64(wrong) > delta*pools || bernstein < pools/2 {
		t.Errorf("%d of %d pools are wrong, %d have a bound above that tells something", wrong, pools, bernstein)
	}
}

// TestNoMeanIsAboveTheLargestWeight: of few weights their bound is the bound above.
func TestNoMeanIsAboveTheLargestWeight(t *testing.T) {
	p := &pool{lower: side{ln: math.Inf(-1)}, upper: side{ln: math.Inf(1)}, most: 3, ln: []float64{-1, 2.9}}
	if p.bound(1, 1e-3); p.upper.ln != 3 {
		t.Errorf("weights up to e^3 have a mean up to e^%v", p.upper.ln)
	}
}

// TestSampledBoundsThatFail: where bounds from samples contradict those of the model, these are the bounds.
func TestSampledBoundsThatFail(t *testing.T) {
	proven := bounds{found: true, lower: side{ln: 5, how: "a"}, upper: side{ln: 7, how: "b"}}
	for name, p := range map[string]pool{
		"above": {rungs: 1, lower: side{ln: 8}, upper: side{ln: 9}},
		"below": {rungs: 1, lower: side{ln: 1}, upper: side{ln: 2}},
		"both":  {rungs: 1, lower: side{ln: 6.5}, upper: side{ln: 6}},
	} {
		g := &sequence{bounds: proven, pool: p}
		if lower, upper, level := g.between(); math.Abs(lower.ln-5) > 1e-9 || math.Abs(upper.ln-7) > 1e-9 || level != 1 {
			t.Errorf("%s: from %v to %v, level %v", name, lower, upper, level)
		}
	}
	g := &sequence{bounds: proven, pool: pool{rungs: 1, lower: side{ln: 5.5}, upper: side{ln: 6}}}
	if lower, upper, level := g.between(); lower.ln != 5.5 || upper.ln != 6 || level == 1 {
		t.Errorf("better ones: from %v to %v, level %v", lower, upper, level)
	}
}

// TestBoundsHoldForAllQueriesOfAJob: δ is divided by the queries with samples. Of N equal weights the bound below is that of the product of
// N means, ln w − ln(2/δ)/N with half of the query's δ for the first estimate.
func TestBoundsHoldForAllQueriesOfAJob(t *testing.T) {
	const n = 128
	for _, queries := range []int{0, 1, 2, 40} {
		in := Input{Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
		in = withSampled(in, 0, make([]float64, n))
		in.Sampling = queries
		want := -math.Log(2*2*float64(max(queries, 1))/1e-3) / n
		if r := Add(in); r.Bounds == nil || math.Abs(*r.Bounds.Lower-want) > 1e-12 || r.Bounds.Level != 0.999 {
			t.Errorf("%d queries: %s, not %v", queries, text(t, r.Result), want)
		}
	}
	pooled := []btn.Estimate{{Rule: btn.Bounding}, {Rule: btn.Pooled}, {Rule: btn.Pooled}}
	job := []btn.Assignment{
		{}, {Plan: &btn.Plan{Estimates: pooled}}, {Plan: &btn.Plan{Estimates: pooled[:1]}}, {Plan: &btn.Plan{Estimates: pooled}},
	}
	if got := Sampling(job); got != 2 {
		t.Errorf("%d of two queries have samples", got)
	}
}

// TestWeightsThatAreNoNumbers: their mean is a failure with a reason.
func TestWeightsThatAreNoNumbers(t *testing.T) {
	for _, x := range []float64{math.Inf(1), math.NaN()} {
		in := Input{Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
		if r := Add(withSampled(in, 0, []float64{0, x, 1, 2})); r.Status != query.StatusError || r.Error == nil {
			t.Errorf("a weight of %v: %s", x, text(t, r.Result))
		}
	}
}
