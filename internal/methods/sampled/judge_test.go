package sampled

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/btn"
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
		p := NewJudge(&judge.Sequence{}).(*sampleJudge)
		p.lnLargest = most
		unbounded := k%4 == 0
		if unbounded {
			p.lnLargest = math.Inf(1)
		}
		for rung := range 3 {
			for range 100 << rung {
				p.lnWeights = append(p.lnWeights, most+math.Log(r.Float64())/c)
			}
			lower := p.improveBounds(1, delta*math.Exp2(-float64(rung+1)))
			if lower > p.bestLower.Ln {
				t.Fatalf("the bound below is %v, the best of all %v", lower, p.bestLower.Ln)
			}
		}
		if unbounded != math.IsInf(p.bestUpper.Ln, 1) || math.IsInf(p.bestLower.Ln, -1) || p.bestUpper.Ln < p.bestLower.Ln {
			t.Fatalf("from %v to %v, bounded %v", p.bestLower.Ln, p.bestUpper.Ln, !unbounded)
		}
		if p.bestLower.Ln > want || p.bestUpper.Ln < want {
			wrong++
		}
		if p.bestUpper.Ln < most-0.1 {
			bernstein++
		}
	}
	if float64(wrong) > delta*pools || bernstein < pools/2 {
		t.Errorf("%d of %d pools are wrong, %d have a bound above that tells something", wrong, pools, bernstein)
	}
}

// TestNoMeanIsAboveTheLargestWeight: of few weights their bound is the bound above.
func TestNoMeanIsAboveTheLargestWeight(t *testing.T) {
	p := NewJudge(&judge.Sequence{}).(*sampleJudge)
	p.lnLargest, p.lnWeights = 3, []float64{-1, 2.9}
	if p.improveBounds(1, 1e-3); p.bestUpper.Ln != 3 {
		t.Errorf("weights up to e^3 have a mean up to e^%v", p.bestUpper.Ln)
	}
}

// TestValuesThatWereNeverDrawn are as likely as one over the effective number, for all that is known.
func TestValuesThatWereNeverDrawn(t *testing.T) {
	e := &judge.Estimate{}
	j := sampleJudge{Sequence: &judge.Sequence{}, means: []mean{{
		Mean: sampling.Mean{N: 200, Effective: 200, Tail: -1}, estimate: e,
		marginalParts: []*btn.Weights{{Domains: []int{2}, Share: []float64{200, 0}, Squares: []float64{200, 0}}},
	}}}
	if m := j.Marginals(e); m.P[0][0] != 1 || m.Uncertainty == nil || *m.Uncertainty != 1.0/200 {
		t.Errorf("%v, uncertain by %v", m.P, *m.Uncertainty)
	}
}

// TestMarginalsOfTargetsThatAreNotThere are none.
func TestMarginalsOfTargetsThatAreNotThere(t *testing.T) {
	e := &judge.Estimate{}
	shares := []*btn.Weights{{Top: 0, Domains: []int{2}, Share: []float64{1, 3}, Squares: []float64{1, 9}}}
	j := sampleJudge{Sequence: &judge.Sequence{Targets: []int{0}}, means: []mean{{estimate: e, marginalParts: shares}}}
	if m := j.Marginals(e); len(m.P) != 1 || m.P[0][1] != 0.75 {
		t.Errorf("marginals %v", m.P)
	}
	j.Targets = []int{1}
	if m := j.Marginals(e); m.P != nil || m.Uncertainty != nil {
		t.Errorf("marginals %v of a variable that is not there", m.P)
	}
}

// drawn1 is an estimate whose parts have drawn states of one variable.
func drawn1(parts ...*btn.Picked) *judge.Estimate {
	e := &judge.Estimate{}
	for _, x := range parts {
		e.Parts = append(e.Parts, btn.Value{Weights: &btn.Weights{Picked: x}})
	}
	return e
}

// TestStatesOfABundleAreOne: of the pieces of a bundle one is drawn by weight, and it weighs what they weigh together.
func TestStatesOfABundleAreOne(t *testing.T) {
	no := math.Inf(-1)
	e := drawn1(
		&btn.Picked{First: 0, Ln: []float64{math.Log(2), math.Log(1)}, Values: []int{10, 11}},
		&btn.Picked{First: 1, Ln: []float64{math.Log(3), no}, Values: []int{21, 22}}, nil,
	)
	const seeds = 4000
	second := 0
	for seed := range uint64(seeds) {
		r := new(sampleJudge).Samples(e, 3, seed)
		if len(r.Values) != 2 || r.Values[0][0] != 10 {
			t.Fatalf("samples %v", r.Values)
		}
		if math.Abs(r.Weights[0]-1.0/3) > 1e-12 || math.Abs(r.Weights[1]-2.0/3) > 1e-12 {
			t.Fatalf("weights %v", r.Weights)
		}
		if !strings.Contains(r.Warning, "2 of 3 samples") {
			t.Fatalf("warning %q", r.Warning)
		}
		if r.Values[1][0] == 21 {
			second++
		}
	}
	if z := (float64(second) - 0.75*seeds) / math.Sqrt(seeds*0.75*0.25); math.Abs(z) > 4.5 {
		t.Errorf("the second piece, of three quarters of the weight, was drawn %d times of %d", second, seeds)
	}
}

// TestStatesThatContradictEachOther are no samples.
func TestStatesThatContradictEachOther(t *testing.T) {
	for name, e := range map[string]*judge.Estimate{
		"other widths":   drawn1(&btn.Picked{Ln: []float64{0}, Values: []int{1}}, &btn.Picked{Ln: []float64{0}, Values: []int{1, 2}}),
		"beyond the end": drawn1(&btn.Picked{First: 1, Ln: []float64{0, 0}, Values: []int{1, 1}}),
		"an overflow":    drawn1(&btn.Picked{First: math.MaxInt64, Ln: []float64{0}, Values: []int{1}}),
		"no weight":      drawn1(&btn.Picked{Ln: []float64{math.Inf(-1)}, Values: []int{1}}),
		"none":           drawn1(nil),
	} {
		if r := new(sampleJudge).Samples(e, 2, 0); r.Values != nil || r.Weights != nil || r.Warning == "" {
			t.Errorf("%s: samples %v, warning %q", name, r.Values, r.Warning)
		}
	}
}
