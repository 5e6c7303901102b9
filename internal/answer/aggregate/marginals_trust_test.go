package aggregate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// windowsWith are regions of growing size, of which each gives a variable these probabilities of its first value.
func windowsWith(p ...float64) Input {
	sums := make([]float64, len(p))
	for k := range sums {
		sums[k] = math.Exp2(float64(-k))
	}
	in := windows(sums...)
	for k, x := range p {
		in.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{x, 1 - x}}
	}
	return in
}

// TestMarginalsOfRegions: 0.015 was stated for a marginal of a ferromagnet that was off by 0.45, for it was that of one of two phases.
// Changes that fall slowly go on, and a probability is never off by more than 1.
func TestMarginalsOfRegions(t *testing.T) {
	for name, c := range map[string]struct {
		p      []float64
		phases []float64
		want   float64
	}{
		"two sizes":                      {[]float64{0.5, 0.52}, nil, 0.16},
		"changes that fall":              {[]float64{0.5, 0.52, 0.522}, nil, 0.016},
		"changes that fall slowly":       {[]float64{0.5, 0.52, 0.536}, nil, 0.512},
		"changes that do not fall":       {[]float64{0.5, 0.508, 0.52}, nil, 0.288},
		"changes that grow out of hand":  {[]float64{0.2, 0.1, 0.9}, nil, 1},
		"two phases":                     {[]float64{0.5, 0.6, 0.61}, []float64{10, 9}, 0.5},
		"two phases that are far apart":  {[]float64{0.5, 0.6, 0.61}, []float64{10, -90}, 0.5},
		"three phases":                   {[]float64{0.5, 0.6, 0.61}, []float64{10, 10, 10}, 2.0 / 3},
		"two phases, and changes beyond": {[]float64{0.1, 0.5, 0.9}, []float64{10, 9}, 1},
	} {
		in := windowsWith(c.p...)
		in.Assignment.Propagation.Phases = c.phases
		r := AddUp(in)
		if r.MarginalUncertainty == nil || math.Abs(*r.MarginalUncertainty-c.want) > 1e-9 {
			t.Errorf("%s: want %v: %s", name, c.want, text(t, r.Result))
		}
	}
	hard := windowsWith(0.5, 0.5)
	hard.Assignment.Hard = true
	if r := AddUp(hard); r.Marginals == nil || r.MarginalUncertainty != nil {
		t.Errorf("constraints that decide the same at both sizes: %s", text(t, r.Result))
	}
	level := windows(0.5, 0.5) // of which ln Z states nothing
	level.Assignment.Hard = true
	for k := range level.Values {
		p := 0.5 + 1e-15*float64(k)
		level.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{p, 1 - p}}
	}
	if r := AddUp(level); r.Marginals == nil || r.Uncertainty != nil || r.MarginalUncertainty != nil ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "nothing is known of the quality of the marginals") {
		t.Errorf("constraints that decide the same within rounding: %s", text(t, r.Result))
	}
	if r := AddUp(windowsWith(0.5)); r.Marginals == nil || r.MarginalUncertainty != nil {
		t.Errorf("one size: %s", text(t, r.Result))
	}
	in := windowsWith(0.5, 0.5)
	in.Values[1].Value.Region.Regions = in.Values[0].Value.Region.Regions
	if r := AddUp(in); r.MarginalUncertainty != nil {
		t.Errorf("the same regions twice: %s", text(t, r.Result))
	}
}

// TestMarginalsOfTruncatedLegs: another plan at the same bond may agree by accident, and what a small support loses is not seen.
func TestMarginalsOfTruncatedLegs(t *testing.T) {
	p := func(x ...float64) Input {
		in := ladder(1e-9, step{0, 8, []float64{10.02}, true}, step{0, 16, []float64{10}, true}, step{1, 16, []float64{10.01}, true})
		for k := range in.Values {
			in.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{x[k], 1 - x[k]}}
		}
		return in
	}
	for name, c := range map[string]struct {
		in        Input
		discarded float64
		hard      bool
		want      float64
	}{
		"the other plan":                {p(0.55, 0.6, 0.7), 0, false, 0.1},
		"the change before":             {p(0.5, 0.6, 0.6001), 0, false, 0.03},
		"constraints":                   {p(0.55, 0.6, 0.7), 0, true, 0.4},
		"constraints, whose Z may miss": {p(0.6, 0.6, 0.6), 1e-4, true, 0.08},
		"no change beside truncations":  {p(0.6, 0.6, 0.6), 0.49, false, 0.7},
		"less change than truncations":  {p(0.6, 0.6, 0.6001), 0.2, false, 0.2},
		"at most 1":                     {p(0.1, 0.3, 0.9), 0, true, 1},
	} {
		for k := range c.in.Values {
			c.in.Values[k].Value.Truncation.Discarded = c.discarded
		}
		c.in.Assignment.Hard = c.hard
		r := AddUp(c.in)
		if r.MarginalUncertainty == nil || math.Abs(*r.MarginalUncertainty-c.want) > 1e-9 {
			t.Errorf("%s: want %v: %s", name, c.want, text(t, r.Result))
		}
	}
}

// TestMarginalsThatRepeatTheirStart: legs of bond 2 repeated the beliefs of parity checks to 2e-11, of which one was off by 0.37.
func TestMarginalsThatRepeatTheirStart(t *testing.T) {
	const discarded = 0.04
	row := &btn.Marginals{Domains: []int{2}, Mant: []float64{0.5, 0.5}}
	in := windows(9)
	in.Values[0].Value.Marginals = row
	in = with(in, ladder(1e-9, step{0, 8, []float64{10}, true}).Assignment.Plan.Estimates[0],
		ladder(1e-9, step{0, 8, []float64{10}, true}).Values[0].Value)
	legs := &in.Values[1].Value
	legs.Marginals, legs.Truncation.Discarded = row, discarded
	in = withBounds(in, []bounding.Kind{bounding.MiniBuckets}, btn.BoundValue{Lower: 9.9, Upper: 10.1})
	r := AddUp(in)
	want := min(100*discarded, 5*math.Sqrt(discarded), 1) // what the truncations of a single bond may leave out
	if u := r.MarginalUncertainty; u == nil || math.Abs(*u-want) > 1e-12 {
		t.Errorf("%s", text(t, r.Result))
	}
}

// TestMarginalsOfAnotherFamily: those of a family whose ln Z is 4 nats off the answer are of other states.
func TestMarginalsOfAnotherFamily(t *testing.T) {
	in := legs()
	for k := range in.Values {
		in.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{0.5, 0.5}}
	}
	in = withSampled(in, 0.1, even(6, 0.01, 1000)) // without marginals
	in = withBounds(in, []bounding.Kind{bounding.MiniBuckets}, btn.BoundValue{Lower: 5.9, Upper: 6.1})
	r := AddUp(in)
	if u := r.MarginalUncertainty; math.Abs(*r.LogZ-6) > 0.01 || u == nil || *u < -math.Expm1(-3.9) {
		t.Errorf("%s", text(t, r.Result))
	}
}

// sharing gives the last sampled components of a query marginals: a share of them has the first value of a variable.
func sharing(in Input, share float64) Input {
	w := in.Values[len(in.Values)-1].Value.Weights
	n := len(w.Ln)
	w.Top = slices.Max(w.Ln)
	w.Domains, w.Share, w.Squares = []int{2}, make([]float64, 2), make([]float64, 2)
	for k, l := range w.Ln {
		a := 1
		if k*7919%n < int(share*float64(n)) {
			a = 0
		}
		w.Share[a] += math.Exp(l - w.Top)
		w.Squares[a] += math.Exp(2 * (l - w.Top))
	}
	return in
}

// TestMarginalsSettleByThemselves: bounds that meet settle ln Z, beside which marginals of regions stayed off by 0.26. Now the
// estimates continue until the marginals are certain, and the family with the least uncertainty answers them.
func TestMarginalsSettleByThemselves(t *testing.T) {
	met := func(in Input) Input {
		z := *AddUp(in).LogZ
		return withBounds(in, []bounding.Kind{bounding.MiniBuckets}, btn.BoundValue{Lower: z, Upper: z})
	}
	in := met(windowsWith(0.5, 0.76))
	first := len(in.Values)
	in = sharing(withSampled(in, 0.1, even(10.5, 0.1, 1000)), 0.6)
	if Settled(Input{Assignment: in.Assignment, Values: in.Values[:first]}) {
		t.Error("settled where the marginals are uncertain by more than the accuracy")
	}
	r := AddUp(in)
	if u := r.MarginalUncertainty; r.Ended != "complete" || u == nil || *u < 0.01 || *u > 0.1 || math.Abs(r.Marginals[0][0]-0.6) > 0.01 {
		t.Errorf("samples are surer of the marginals: %s", text(t, r.Result))
	}
	in = met(windowsWith(0.5, 0.5+1e-8, 0.5+1e-8))
	first = len(in.Values)
	in = sharing(withSampled(in, 0.1, even(10.5, 0.1, 1000)), 0.6)
	if !Settled(Input{Assignment: in.Assignment, Values: in.Values[:first]}) {
		t.Errorf("not settled with certain marginals: %s", text(t, AddUp(in).Result))
	}
}

// TestFamiliesDisagreeAboutMarginals: the surer family's marginal is uncertain by the distance from the other's.
func TestFamiliesDisagreeAboutMarginals(t *testing.T) {
	in := legs()
	for k := range in.Values {
		in.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{0.3, 0.7}}
	}
	in = sharing(withSampled(in, 0.1, even(10.005, 0.01, 1000)), 0.6)
	r := AddUp(in)
	if u := r.MarginalUncertainty; u == nil || *u < 0.15 || *u > 0.3 || math.Abs(r.Marginals[0][0]-0.3) > 0.01 {
		t.Errorf("%s", text(t, r.Result))
	}
	in.Assignment.Want.Targets = []int{0}
	if again := AddUp(in); *again.MarginalUncertainty != *r.MarginalUncertainty || len(again.Marginals) != 1 {
		t.Errorf("of a target: %s", text(t, again.Result))
	}
}

// TestMarginalsOfWhatTruncatesNothing are within rounding, at any distance from earlier estimates.
func TestMarginalsOfWhatTruncatesNothing(t *testing.T) {
	in := ladder(1e-9, step{0, 8, []float64{10.02}, true}, step{0, 16, []float64{10}, false})
	in.Assignment.Plan.Estimates[1].Lossless = true
	for k, p := range []float64{0.9, 0.4} {
		in.Values[k].Value.Marginals = &btn.Marginals{Domains: []int{2}, Mant: []float64{p, 1 - p}}
	}
	if r := AddUp(in); r.MarginalUncertainty == nil || *r.MarginalUncertainty > 1e-12 || math.Abs(r.Marginals[0][0]-0.4) > 1e-12 {
		t.Errorf("%s", text(t, r.Result))
	}
}
