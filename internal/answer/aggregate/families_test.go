package aggregate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// with adds an estimate whose parts have these values to a query.
func with(in Input, e btn.Estimate, values ...btn.Value) Input {
	plan := in.Assignment.Plan
	at := len(in.Values)
	for k, v := range values {
		in.Values = append(in.Values, btn.UnitValue{Unit: btn.Unit{Part: at + k}, Value: v})
	}
	plan.Estimates = append(plan.Estimates, e)
	return in
}

// withSampled adds sampled components in parts of these weights, in nats.
func withSampled(in Input, spread float64, parts ...[]float64) Input {
	along := &sampled.Annealing{Base: sampled.Base{Spread: spread}, Rungs: 4}
	from := int64(0)
	for _, e := range in.Assignment.Plan.Estimates {
		for _, p := range e.Parts {
			from += p.About().Sample.Components
		}
	}
	e := btn.Estimate{Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1}
	var values []btn.Value
	for _, ln := range parts {
		e.Parts = append(e.Parts, &sampled.Sampled{Sampling: along, From: from, To: from + int64(len(ln))})
		from += int64(len(ln))
		values = append(values, btn.Value{
			Z: scaled.FromLog(sampling.LnMean(ln)), Weights: &btn.Weights{Ln: ln},
		})
	}
	e.Level = math.Log2(float64(from))
	return with(in, e, values...)
}

// withBounds adds parts that bound ln Z.
func withBounds(in Input, kinds []bounding.Kind, bounds ...btn.BoundValue) Input {
	e := btn.Estimate{Rule: btn.Bounding, Slices: 1}
	var values []btn.Value
	for k, b := range bounds {
		e.Parts = append(e.Parts, &bounding.Bound{Kind: kinds[k]})
		values = append(values, btn.Value{Bound: &b})
	}
	return with(in, e, values...)
}

// even are n weights around a mean of e^ln that differ by some share of it: the same ones above as below.
func even(ln, share float64, n int) []float64 {
	w := make([]float64, n)
	for k := range w {
		w[k] = ln + math.Log(1+share*(2*float64(k)/float64(n-1)-1))
	}
	return w
}

// legs are two plans of truncated legs whose answer is 10, uncertain by 0.02.
func legs() Input {
	return ladder(1e-9, step{0, 8, []float64{10.02}, true}, step{1, 8, []float64{10.04}, true},
		step{0, 16, []float64{10}, true}, step{1, 16, []float64{10.01}, true})
}

// rough are two plans of truncated legs with the answer 10, uncertain by 1.5.
func rough() Input {
	return ladder(1e-9, step{0, 8, []float64{11.5}, true}, step{0, 16, []float64{10}, true}, step{1, 16, []float64{10.01}, true})
}

// deadwood are weights of which one counts: n−1 of them are e^−40 of it.
func deadwood(ln float64, n int) []float64 {
	w := even(ln-40, 0.1, n)
	w[n/2] = ln
	return w
}

func TestFamiliesAreJudgedTogether(t *testing.T) {
	alone := *AddUp(legs()).Uncertainty
	if math.Abs(alone-0.02) > 1e-12 {
		t.Fatalf("truncated legs alone are uncertain by %v", alone)
	}
	none, some := math.Inf(-1), math.Inf(1)
	single := ladder(1e-9, step{0, 8, []float64{5}, true})
	kinds := []bounding.Kind{bounding.MiniBuckets, bounding.Determinant}
	for name, c := range map[string]struct {
		in      Input
		lnZ     float64
		u       [2]float64 // least and most that may be stated
		warning string     // a part of one; "": none about families and bounds
	}{
		"samples agree and are rougher": {
			withSampled(legs(), 0.1, even(10.2, 0.8, 50), even(10.2, 0.8, 50)), 10, [2]float64{0.05, 0.12}, "two families",
		},
		"samples agree within what they state": {
			withSampled(legs(), 0.1, even(10.05, 0.8, 100)), 10, [2]float64{alone, alone}, "",
		},
		"samples are finer": {
			withSampled(legs(), 0.1, even(10.005, 0.01, 1000)), 10.005, [2]float64{1e-4, 0.01}, "",
		},
		"legs are far off, beyond what both state, and state a good part of it": {
			withSampled(rough(), 0.1, even(8, 0.01, 1000)), 8, [2]float64{1, 1.01}, "two families",
		},
		"samples are finer and far off": {
			withSampled(legs(), 0.1, even(8, 0.01, 1000)), 8, [2]float64{1.97, 2}, "two families",
		},
		"samples exclude by their bound what finer legs state": {
			withSampled(legs(), 0.1, even(12, 0.5, 100)), 12, [2]float64{0.03, 0.1}, "",
		},
		"samples exclude by their bound what legs state": {
			withSampled(legs(), 0.1, even(12, 0.01, 1000)), 12, [2]float64{1e-4, 0.01}, "",
		},
		"samples of which few count say only that Z is so large": {
			withSampled(legs(), 0.1, deadwood(4, 100)), 10, [2]float64{alone, alone}, "",
		},
		"samples of which one is large": {
			withSampled(legs(), 0.1, append(even(1, 0.1, 99), 7)), 10, [2]float64{alone, alone}, "",
		},
		"below a bound": {
			withBounds(legs(), kinds, btn.BoundValue{Lower: 10.5, Upper: some}), 10.5, [2]float64{0.5, 0.51}, "outside of the bounds by 0.5",
		},
		"above a bound": {
			withBounds(legs(), kinds, btn.BoundValue{Lower: none, Upper: 9}), 9, [2]float64{1, 1.01}, "outside of the bounds by 1 ",
		},
		"below a bound within what is stated": {
			withBounds(legs(), kinds, btn.BoundValue{Lower: 10.01, Upper: some}), 10.01, [2]float64{alone, alone}, "",
		},
		"bounds on both sides are the most that can be stated": {
			withBounds(legs(), kinds, btn.BoundValue{Lower: 9.5, Upper: 10.7}, btn.BoundValue{Lower: 9.995, Upper: 10.01}),
			10, [2]float64{0.01, 0.0101}, "",
		},
		"bounds where nothing else is stated": {
			withBounds(ladder(1e-9, step{0, 8, []float64{10}, true}), kinds, btn.BoundValue{Lower: 7, Upper: 11}),
			10, [2]float64{3, 3.01}, "",
		},
		"nothing but a bound above, and what a state weighs at least": {
			withBounds(ladder(1e-9, step{0, 8, []float64{10}, true}), kinds, btn.BoundValue{Lower: none, Upper: 11, Least: finite(4)}),
			10, [2]float64{6, 6.01}, "",
		},
		"the nearer of two families that state nothing": {
			withBounds(with(windows(0), single.Assignment.Plan.Estimates[0], single.Values[0].Value), kinds,
				btn.BoundValue{Lower: none, Upper: 18, Least: finite(4)}),
			10, [2]float64{8, 8.01}, "",
		},
		"bounds say less of one that states nothing than of one that states much": {
			withBounds(withSampled(ladder(1e-9, step{0, 8, []float64{10.99}, true}), 0.1, even(10, 0.8, 2)), kinds,
				btn.BoundValue{Lower: 9.5, Upper: 11}),
			10, [2]float64{1, 1.01}, "",
		},
		"a bound on one side": {
			withBounds(legs(), kinds, btn.BoundValue{Lower: 9.999, Upper: some}), 10, [2]float64{alone, alone}, "",
		},
	} {
		r := AddUp(c.in)
		if r.LogZ == nil || r.Uncertainty == nil || math.Abs(*r.LogZ-c.lnZ) > 2e-3 || *r.Uncertainty < c.u[0]-1e-9 ||
			*r.Uncertainty > c.u[1]+1e-9 {
			t.Errorf("%s: %s", name, text(t, r.Result))
			continue
		}
		if got := math.Abs(*r.Log10Z*math.Ln10 - *r.LogZ); got > 1e-12 {
			t.Errorf("%s: log10 Z is another number: %s", name, text(t, r.Result))
		}
		said := strings.Join(r.Warnings, "; ")
		if c.warning != "" && !strings.Contains(said, c.warning) ||
			c.warning == "" && (strings.Contains(said, "families") || strings.Contains(said, "bounds")) {
			t.Errorf("%s: it warns of %q", name, said)
		}
	}
}

// TestContractionsBesideModes: beside modes that other chains would have missed, contractions state at least their distance
// from sampled components and one standard error of these; not if they have settled, nor if the components are not credible.
func TestContractionsBesideModes(t *testing.T) {
	alone := *AddUp(legs()).Uncertainty
	beside := func(legs Input, ln []float64) *Total {
		in := withSampled(legs, 0.1, ln)
		es := in.Assignment.Plan.Estimates
		es[len(es)-1].Parts[0].(*sampled.Sampled).Sampling.About().Modes = 1
		r := AddUp(in)
		return &r
	}
	for name, c := range map[string]struct {
		r *Total
		u [2]float64
	}{
		"further than they state": {beside(legs(), even(10.08, 0.8, 100)), [2]float64{0.079, 0.085}},
		"nearer than they state":  {beside(legs(), even(10.001, 0.8, 200)), [2]float64{0.03, 0.04}},
		"components are sure":     {beside(legs(), even(10.05, 0.01, 4000)), [2]float64{7e-4, 1e-3}},
		"nobody believes them":    {beside(legs(), deadwood(9, 100)), [2]float64{alone, alone}},
	} {
		if u := c.r.Uncertainty; u == nil || *u < c.u[0]-1e-9 || *u > c.u[1]+1e-9 {
			t.Errorf("%s: %s", name, text(t, c.r.Result))
		}
	}
}

// TestEqualWeightsSayNothingOfOthers: a strong ferromagnet stated 2.7e-13 and was off by 4.5e-5, because the share of other weights among
// the draws was 4.5e-5. Unseen weights with a share of 3/N are within the stated uncertainty, and a lower bound has the last
// word.
func TestEqualWeightsSayNothingOfOthers(t *testing.T) {
	for _, n := range []int{200, 4000} {
		in := Input{Job: "j-1", Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
		in = withSampled(in, 0, slices.Repeat([]float64{450}, n))
		r := AddUp(in)
		if least := 3 / float64(n); r.Uncertainty == nil || *r.Uncertainty < least*(1-1e-9) || *r.Uncertainty > 1.1*least {
			t.Errorf("%d equal weights: %s", n, text(t, r.Result))
		}
		r = AddUp(withBounds(in, []bounding.Kind{bounding.Bethe}, btn.BoundValue{Lower: 450 - 4.5e-5, Upper: 450}))
		if r.Uncertainty == nil || *r.Uncertainty < 4.5e-5 || *r.Uncertainty > 4.6e-5 {
			t.Errorf("%d equal weights between bounds: %s", n, text(t, r.Result))
		}
	}
}

// TestFewEffectiveComponentsAreNotBelieved: parity codes stated 1.7 nats and were off by 29. The stated uncertainty reaches
// the lower bound or, where bundles have none, Markov's bound for the mean; and the upper one where nearly all weigh 0.
func TestFewEffectiveComponentsAreNotBelieved(t *testing.T) {
	empty := func() Input {
		return Input{Job: "j-1", Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-3}}}
	}
	r := AddUp(withSampled(empty(), 1, even(5, 0.3, 200)))
	if r.Uncertainty == nil || *r.Uncertainty > 0.1 || r.Bounds == nil || r.Bounds.Level != 0.999 || !(*r.Bounds.Lower < 5) {
		t.Fatalf("weights that hardly differ: %s", text(t, r.Result))
	}

	r = AddUp(withSampled(empty(), 1, deadwood(5, 200)))
	if r.Uncertainty == nil || r.Bounds == nil || *r.Uncertainty < *r.LogZ-*r.Bounds.Lower ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "not settled: 1.0 of 200") {
		t.Errorf("one weight carries all: %s", text(t, r.Result))
	}

	zeros := make([]float64, 200)
	for k := range zeros {
		zeros[k] = math.Inf(-1)
	}
	zeros[7] = 5
	r = AddUp(withSampled(empty(), 0, zeros))
	if r.LogZ == nil || r.Uncertainty != nil || r.Bounds != nil ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "not settled: 1.0 of 200") {
		t.Errorf("all but one weigh 0: %s", text(t, r.Result))
	}
	above := withBounds(withSampled(empty(), 0, zeros), []bounding.Kind{bounding.MiniBuckets}, btn.BoundValue{Lower: math.Inf(-1), Upper: 70})
	if r = AddUp(above); r.Uncertainty == nil || math.Abs(*r.LogZ+*r.Uncertainty-70) > 1e-9 {
		t.Errorf("all but one weigh 0, with an upper bound: %s", text(t, r.Result))
	}
	// The positive weights spread over decades, and the mean rests on the largest: the shift is half of the logarithms' variance.
	for k := range zeros {
		if k%2 == 0 {
			zeros[k] = 5 - 0.4*float64(k)
		}
	}
	if r = AddUp(withSampled(empty(), 1, zeros)); r.Uncertainty == nil || *r.Uncertainty < 200 {
		t.Errorf("half weigh 0: %s", text(t, r.Result))
	}
	// Equal weights are not settled as long as there are few.
	in := withSampled(empty(), 0, make([]float64, 8))
	if in.Assignment.Plan.Estimates = append(in.Assignment.Plan.Estimates, in.Assignment.Plan.Estimates[0]); Settled(in) {
		t.Error("eight components settle")
	}
}

// TestFewComponentsBelowAnotherFamily: components of which one carries all the weight are mostly too low, whatever little they state:
// another family above them answers, and one below them does not.
func TestFewComponentsBelowAnotherFamily(t *testing.T) {
	legs := func() Input {
		return ladder(1e-9, step{0, 8, []float64{300}, true}, step{0, 16, []float64{10}, true}, step{1, 16, []float64{10.01}, true})
	}
	stated := *AddUp(legs()).Uncertainty
	for highest, chosen := range map[float64]bool{8: true, 22: false} {
		few := make([]float64, 200) // logarithms spread evenly: the mean is some nats below the highest
		for k := range few {
			few[k] = highest - 60*float64(k)/float64(len(few)-1)
		}
		alone := AddUp(withSampled(ladder(1e-9), 30, few))
		if !(*alone.Uncertainty < stated) || *alone.LogZ < 10 != chosen {
			t.Fatalf("alone, beside ± %v: %s", stated, text(t, alone.Result))
		}
		r := AddUp(withSampled(legs(), 30, few))
		if got := math.Abs(*r.LogZ-10) < 1e-9; got != chosen {
			t.Errorf("components up to %v: %s", highest, text(t, r.Result))
		}
	}
}

// TestBoundsSettle: what is proven to the accuracy needs no second plan.
func TestBoundsSettle(t *testing.T) {
	in := withBounds(ladder(1e-6, step{0, 8, []float64{10}, true}), []bounding.Kind{bounding.Bethe},
		btn.BoundValue{Lower: 10 - 1e-7, Upper: 10 + 1e-7})
	in = with(in, ladder(1, step{1, 8, []float64{10}, true}).Assignment.Plan.Estimates[0])
	if !Settled(in) {
		t.Error("bounds within the accuracy do not settle")
	}
	if r := AddUp(in); r.Ended != "settled" || *r.Uncertainty > 1.1e-7 {
		t.Errorf("%s", text(t, r.Result))
	}

	// The least weight of a state bounds ln Z only if Z is not 0.
	least := 10 - 1e-7
	in = withBounds(ladder(1e-6, step{0, 8, []float64{10}, true}), []bounding.Kind{bounding.MiniBuckets},
		btn.BoundValue{Lower: math.Inf(-1), Upper: 10 + 1e-7, Least: &least})
	if in = with(in, ladder(1, step{1, 8, []float64{10}, true}).Assignment.Plan.Estimates[0]); Settled(in) {
		t.Error("the least weight of a state settles")
	}
}

// TestBoundsAreTheBest of all, on either side, and what is sampled has its level.
func TestBoundsAreTheBest(t *testing.T) {
	kinds := []bounding.Kind{bounding.MiniBuckets, bounding.Determinant, bounding.Bethe}
	bounds := []btn.BoundValue{
		{Lower: 8, Upper: 14}, {Lower: math.Inf(-1), Upper: 12}, {Lower: 9.5, Upper: math.Inf(1)},
	}
	r := AddUp(withBounds(legs(), kinds, bounds...))
	b := r.Bounds
	if b == nil || math.Abs(*b.Lower-9.5) > 1e-9 || *b.Lower >= 9.5 || math.Abs(*b.Upper-12) > 1e-9 || *b.Upper <= 12 || b.Level != 1 ||
		!strings.Contains(b.How, "above by "+string(bounding.Determinant)) || !strings.Contains(b.How, "below by "+string(bounding.Bethe)) {
		t.Errorf("%s", text(t, r.Result))
	}
	r = AddUp(withSampled(withBounds(legs(), kinds, bounds...), 1e-3, even(10.001, 0.01, 400)))
	if b := r.Bounds; b == nil || !(*b.Lower > 9.9 && *b.Lower < 10.001) || *b.Upper <= 12 || b.Level != 0.999 ||
		strings.Contains(b.How, string(bounding.Bethe)) {
		t.Errorf("with samples: %s", text(t, r.Result))
	}
	r = AddUp(withSampled(withBounds(legs(), kinds, bounds...), 1, even(9.6, 0.5, 8)))
	if b := r.Bounds; b == nil || math.Abs(*b.Lower-9.5) > 1e-9 || b.Level != 1 || !strings.Contains(b.How, string(bounding.Bethe)) {
		t.Errorf("with few samples: %s", text(t, r.Result))
	}
	broken := withBounds(legs(), kinds, bounds...)
	broken.Values[len(broken.Values)-1].Value.Bound = nil
	if r := AddUp(broken); r.Status != "ok" || len(r.Estimates) != 4 || *r.Bounds.Upper <= 12 {
		t.Errorf("a part that says no bound: %s", text(t, r.Result))
	}
}

// TestRangeIsOfContractions: contractions in float64 that may have lost terms state no uncertainty and give way to sampled
// components. These and bounds are computed in logarithms, so bounds apply to such contractions, too.
func TestRangeIsOfContractions(t *testing.T) {
	beyond := func(in Input) Total {
		in.Assignment.Unsure = true
		return AddUp(in)
	}
	kinds := []bounding.Kind{bounding.MiniBuckets}
	if r := beyond(legs()); r.Uncertainty != nil || !strings.Contains(text(t, r.Result), "nothing is known") {
		t.Errorf("alone: %s", text(t, r.Result))
	}
	r := beyond(withBounds(legs(), kinds, btn.BoundValue{Lower: 1, Upper: 7}))
	if math.Abs(*r.LogZ-7) > 1e-9 || r.Uncertainty == nil || math.Abs(*r.Uncertainty-6) > 1e-9 || r.Bounds == nil {
		t.Errorf("above a bound: %s", text(t, r.Result))
	}
	r = beyond(withSampled(legs(), 0.1, even(4, 0.1, 400)))
	if math.Abs(*r.LogZ-4) > 0.01 || r.Uncertainty == nil || *r.Uncertainty > 0.02 || strings.Contains(text(t, r.Result), "float64") {
		t.Errorf("beside samples: %s", text(t, r.Result))
	}
}

// TestBoundsOfExactAnswers: exact ones are within rounding, a certificate is the same interval; impossible evidence has none.
func TestBoundsOfExactAnswers(t *testing.T) {
	r := AddUp(input(true, []float64{1, 1}, []float64{5, 3}))
	if b := r.Bounds; b == nil || b.Level != 1 || !(*b.Lower < math.Log(8) && *b.Lower > math.Log(8)-1e-9) ||
		!(*b.Upper > math.Log(8) && *b.Upper < math.Log(8)+1e-9) {
		t.Errorf("exact: %s", text(t, r.Result))
	}
	r = AddUp(input(false, []float64{1, 1}, []float64{5, 3}))
	if b := r.Bounds; b == nil || r.Certificate == nil || math.Abs(*b.Lower-*r.Certificate.LnLower) > 1e-9 ||
		math.Abs(*b.Upper-r.Certificate.LnUpper) > 1e-9 || !(*b.Lower < math.Log(8) && *b.Upper > math.Log(8)) {
		t.Errorf("certified: %s", text(t, r.Result))
	}
	r = AddUp(input(false, []float64{1, 1}, []float64{0.5, 0.3}))
	if b := r.Bounds; b == nil || b.Lower != nil || b.Upper == nil {
		t.Errorf("a certificate above Z: %s", text(t, r.Result))
	}
	if r = AddUp(input(true, []float64{1, 1}, []float64{0, 0})); !r.Zero || r.Bounds != nil {
		t.Errorf("Z = 0: %s", text(t, r.Result))
	}
}

// TestPooledEstimatesOfWhatHasArrived: at a deadline those components that are there are the estimate, and no other rung is.
func TestPooledEstimatesOfWhatHasArrived(t *testing.T) {
	in := Input{Job: "j-1", Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
	in = withSampled(in, 0.1, even(1, 0.1, 50), even(2, 0.1, 50), even(3, 0.1, 50))
	in = withSampled(in, 0.1, even(4, 0.1, 50))
	whole := AddUp(in)
	if want := sampling.LnMean(pooledWeights(in)); math.Abs(*whole.LogZ-want) > 1e-12 || whole.Ended != "complete" {
		t.Errorf("all: %s", text(t, whole.Result))
	}
	in.IsDeadlineOver = true
	in.Values = append(in.Values[:1:1], in.Values[2])
	r := AddUp(in)
	if want := sampling.LnMean(pooledWeights(in)); math.Abs(*r.LogZ-want) > 1e-12 || r.Ended != "deadline" || r.Components != 2 ||
		len(r.Estimates) != 1 {
		t.Errorf("what has arrived: %s", text(t, r.Result))
	}
	one := in
	one.Assignment = &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9, Estimates: in.Assignment.Plan.Estimates[:1]}}
	if r := AddUp(one); *r.LogZ != *AddUp(in).LogZ || r.Ended != "deadline" {
		t.Errorf("what has arrived of the only estimate: %s", text(t, r.Result))
	}
	in.IsDeadlineOver = false
	if r := AddUp(in); r.Status != "error" {
		t.Errorf("without a deadline the others are waited for: %s", text(t, r.Result))
	}
	in.IsDeadlineOver = true
	in.Values[0].Value.Weights = &btn.Weights{Ln: []float64{1}}
	if r := AddUp(in); r.Status != "error" || !strings.Contains(r.Error.Message, "what was drawn") {
		t.Errorf("a part with too few weights: %s", text(t, r.Result))
	}
}

// pooledWeights are those of all values of a query.
func pooledWeights(in Input) (ln []float64) {
	for _, u := range in.Values {
		ln = append(ln, u.Value.Weights.Ln...)
	}
	return ln
}

// TestMarginalsOfFewComponents: one of 200 carries all the weight, and agrees with itself.
func TestMarginalsOfFewComponents(t *testing.T) {
	marginals := func(ln []float64, hard bool) Total {
		in := withSampled(Input{Assignment: &btn.Assignment{Hard: hard, Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}, 1, ln)
		w := in.Values[0].Value.Weights
		w.Domains, w.Share, w.Squares, w.Top = []int{2}, make([]float64, 2), make([]float64, 2), 5
		for k, l := range ln {
			w.Share[k%2] += math.Exp(l - 5)
			w.Squares[k%2] += math.Exp(2 * (l - 5))
		}
		return AddUp(in)
	}
	r := marginals(even(5, 0.1, 200), false)
	if u := r.MarginalUncertainty; u == nil || math.Abs(*u-1/math.Sqrt(200)) > 1e-3 || math.Abs(r.Marginals[0][0]-0.5) > 1e-3 {
		t.Errorf("even weights: %s", text(t, r.Result))
	}
	r = marginals(deadwood(5, 200), false)
	if u := r.MarginalUncertainty; u == nil || *u < 0.99 || *u > 1 || r.Marginals[0][0] < 0.99 {
		t.Errorf("one weight: %s", text(t, r.Result))
	}
	r = marginals(even(5, 0.9, 200), true) // those of a value that none of them has
	if u := r.MarginalUncertainty; u == nil || *u != *r.Uncertainty || *u < 0.12 {
		t.Errorf("constraints: %s", text(t, r.Result))
	}
}

// bethe is the value of belief propagation alone.
func bethe(ln float64) Input {
	in := regionLadder(&query.Propagation{Converged: true, LogZ: &ln}, []string{btn.KindBethe}, []float64{0}, []int64{0})
	in.Assignment.Plan.Estimates[0].Level = -1
	in.Values[0].Value.Region.LnBethe = ln
	return in
}

// Sampled components of which few carry the weight give way to a fixed point of belief propagation above their mean, to other values inside
// of what they leave open where its farther end is nearer to these.
func TestBeliefPropagationBesideFewComponents(t *testing.T) {
	few := make([]float64, 200) // logarithms spread evenly
	for k := range few {
		few[k] = -50 + 60*float64(k)/float64(len(few)-1)
	}
	alone := AddUp(withSampled(ladder(1e-9), 30, few))
	mean, u, lower := *alone.LogZ, *alone.Uncertainty, *alone.Bounds.Lower
	if u < 10 || mean-lower > u {
		t.Fatalf("alone: %s", text(t, alone.Result))
	}
	for name, c := range map[string]struct {
		bethe       float64
		below, high float64 // bounds from elsewhere; 0, 0: none
		samples     []float64
		possible    bool // a fixed point, of beliefs that do not contradict each other
		chosen      bool
	}{
		"in the middle":                       {(lower + mean + u) / 2, 0, 0, few, false, true},
		"a little above the mean":             {mean + 1, 0, 0, few, false, true},
		"below the mean":                      {mean - 1, 0, 0, few, true, false},
		"below the bound":                     {lower - 1, 0, 0, few, true, false},
		"near the upper end":                  {mean + 0.99*u, 0, 0, few, false, false},
		"near the upper end, possible":        {mean + 0.99*u, 0, 0, few, true, true},
		"beyond the upper end":                {mean + 1.1*u, 0, 0, few, false, false},
		"beyond the upper end, possible":      {mean + 1.1*u, 0, 0, few, true, true},
		"above the mean, near an upper bound": {mean + 3, -50, mean + 12, few, false, true},
		"at an upper bound":                   {mean + 6, -50, mean + 8, few, false, false},
		"at an upper bound, possible":         {mean + 6, -50, mean + 8, few, true, true},
		"beyond an upper bound":               {mean + 9, -50, mean + 8, few, true, false},
		"beside many with a heavy tail":       {30, 0, 0, append(even(-40, 0.1, 385), even(0, 0.3, 15)...), true, false},
		"beside believed components":          {0.01, 0, 40, even(0, 0.8, 100), true, false},
	} {
		in, end := withSampled(bethe(c.bethe), 30, c.samples), max(mean+u, c.bethe)
		in.Assignment.Propagation.Impossible = !c.possible
		if c.high > 0 {
			in, end = withBounds(in, []bounding.Kind{bounding.MiniBuckets}, btn.BoundValue{Lower: c.below, Upper: c.high}), c.high
		}
		r := AddUp(in)
		if got := math.Abs(*r.LogZ-c.bethe) < 1e-9; got != c.chosen {
			t.Errorf("%s (%v): %s", name, c.bethe, text(t, r.Result))
			continue
		}
		said := strings.Contains(strings.Join(r.Warnings, "\n"), "within what they leave open")
		far := max(c.bethe-max(*r.Bounds.Lower, mean-math.Log(1000)), end-c.bethe)
		if said != c.chosen || c.chosen && (math.Abs(*r.Uncertainty-far) > 1e-9) {
			t.Errorf("%s (%v): %s, want ± %v", name, c.bethe, text(t, r.Result), far)
		}
	}
}
