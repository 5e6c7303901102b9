package aggregate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	regionparts "github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// step is an estimate of a test: its place, and ln Z of each of its slices.
type step struct {
	plan, bond int
	lnZ        []float64
	dropped    bool
}

// ladder returns a query that grows, with the values of all its parts.
func ladder(accuracy float64, steps ...step) Input {
	plan := &btn.Plan{Method: query.MethodTruncated, Accuracy: accuracy}
	in := Input{Job: "j-1", Assignment: &btn.Assignment{Plan: plan}}
	for _, s := range steps {
		e := btn.Estimate{
			Rule:   btn.Linear,
			Track:  fmt.Sprint("mps ", s.plan),
			Slices: int64(len(s.lnZ)),
			Level:  math.Log2(float64(s.bond)) + math.Log2(float64(len(s.lnZ))),
		}
		along := &truncated.TruncatedPlan{Family: query.FamilySweep, Number: s.plan}
		for slice, x := range s.lnZ {
			in.Values = append(
				in.Values,
				btn.UnitValue{Unit: btn.Unit{Part: len(in.Values)}, Value: btn.Value{
					Z:     scaled.FromLog(x),
					Flops: 10,
					Truncation: &btn.Truncation{
						Bond:      s.bond,
						Discarded: 1e-8,
						Truncated: s.dropped,
						Bytes:     64,
					},
				}},
			)
			e.Parts = append(
				e.Parts,
				&truncated.Truncated{Plan: along, Bond: s.bond, Slice: btn.Slice{At: int64(slice)}},
			)
		}
		plan.Estimates = append(plan.Estimates, e)
	}
	return in
}

func TestGrowthThatDropsNothingSettlesAtOnce(t *testing.T) {
	in := ladder(1e-9, step{0, 8, []float64{2}, false}, step{0, 16, []float64{3}, true})
	in.Assignment.Plan.Estimates[0].Lossless = true
	if !Settled(Input{Assignment: in.Assignment, Values: in.Values[:1]}) {
		t.Error("not settled after an estimate that dropped nothing")
	}
	r := AddUp(in)
	if *r.LogZ != 2 || r.Ended != "settled" || len(r.Estimates) != 1 || r.Exact ||
		*r.Uncertainty > 1e-9 {
		t.Errorf("%s", text(t, r.Result))
	}
}

func TestUncertaintyIsOfTheSequenceAndOfTheSpread(t *testing.T) {
	for name, c := range map[string]struct {
		steps []step
		want  float64
	}{
		"two rungs: their change": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{1.5}, true}}, 0.5,
		},
		"three rungs of one plan: no hope": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{2}, true},
				{0, 32, []float64{2.25}, true}}, 0.25},
		"three rungs: the next change": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{2}, true},
				{0, 32, []float64{2.25}, true}, {1, 32, []float64{2.25}, true}}, 0.0625},
		"never less than a part of the last": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{2}, true},
				{0, 32, []float64{2.001}, true}}, 0.01},
		"two rungs of plans that approach": {
			[]step{{0, 8, []float64{1}, true}, {1, 8, []float64{1.4}, true},
				{0, 16, []float64{2}, true}, {1, 16, []float64{2.1}, true}}, 0.21},
		"two rungs, the second bond not doubled": {
			[]step{{0, 8, []float64{1}, true}, {0, 12, []float64{1.5}, true}}, 0.5 / math.Log2(1.5),
		},
		"a sequence that diverges": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{1.1}, true},
				{0, 32, []float64{2.1}, true}}, 1},
		"the other plan is hopeless": {
			[]step{{0, 8, []float64{1}, true}, {1, 8, []float64{9}, true},
				{0, 16, []float64{1.1}, true}, {1, 16, []float64{5}, true}}, 0.39},
		"the other plan is far off": {
			[]step{{0, 8, []float64{1}, true}, {0, 16, []float64{1.1}, true},
				{1, 16, []float64{4.1}, true}}, 6},
	} {
		r := AddUp(ladder(1e-9, c.steps...))
		if r.Uncertainty == nil || math.Abs(*r.Uncertainty-c.want) > 1e-9 {
			t.Errorf("%s: %s", name, text(t, r.Result))
		}
		if r.Ended != "complete" || !strings.Contains(strings.Join(r.Warnings, " "), "still move") {
			t.Errorf("%s: an unsettled sequence is not told in words: %s", name, text(t, r.Result))
		}
	}
	single := AddUp(ladder(1e-9, step{0, 8, []float64{1}, true}))
	if single.Uncertainty != nil ||
		!strings.Contains(strings.Join(single.Warnings, " "), "nothing is known") {
		t.Errorf("a single estimate: %s", text(t, single.Result))
	}
}

// The shortest settled sequence is the answer whatever else has arrived, and in any order: the same
// bits everywhere.
func TestLaterRungsDoNotChangeASettledAnswer(t *testing.T) {
	one, other := []float64{1, 2}, []float64{5, 6}
	steps := []step{
		{0, 8, one, true},
		{1, 8, one, true},
		{0, 16, one, true},
		{1, 16, one, true},
		{0, 32, other, true},
	}
	in := dropping(1e-20, ladder(1e-9, steps...))
	want := text(t, AddUp(in).Result)
	if r := AddUp(in); len(r.Estimates) != 4 || r.Ended != "settled" ||
		math.Abs(*r.LogZ-math.Log(math.E+math.E*math.E)) > 1e-15 {
		t.Fatalf("%s", want)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(
			len(in.Values),
			func(a, b int) { in.Values[a], in.Values[b] = in.Values[b], in.Values[a] },
		)
		if got := text(t, AddUp(in).Result); got != want {
			t.Fatalf("another order of arrival: %s, want %s", got, want)
		}
	}
	fewer := dropping(1e-20, ladder(1e-9, steps...))
	fewer.Values = fewer.Values[:8]
	if got := text(t, AddUp(fewer).Result); got != want {
		t.Errorf("without the later rungs: %s, want %s", got, want)
	}
}

// dropping sets the share that every contraction left out.
func dropping(share float64, in Input) Input {
	for i := range in.Values {
		in.Values[i].Value.Truncation.Discarded = share
	}
	return in
}

// TestAPlateauIsNoConvergence is the sequence of a parity code that was off by 4e-3, stated 7e-13
// and settled: a change of exactly 0 along one plan, while the other plan failed.
func TestAPlateauIsNoConvergence(t *testing.T) {
	plateau := []float64{-5.72155469}
	in := dropping(
		0.03,
		ladder(
			1e-9, step{0, 1, plateau, true}, step{1, 1, plateau, true}, step{0, 2, plateau, true},
		),
	)
	in.Values[1].Value.Z = scaled.Number{}
	r := AddUp(in)
	if r.Ended == "settled" || r.Uncertainty == nil || *r.Uncertainty < 4.1e-3 {
		t.Errorf("%s", text(t, r.Result))
	}
	both := dropping(0.03,
		ladder(
			1e-9, step{0, 1, plateau, true}, step{1, 1, plateau, true}, step{0, 2, plateau, true},
			step{1, 2, plateau, true},
		))
	if r := AddUp(both); r.Ended == "settled" || *r.Uncertainty < 4.1e-3 {
		t.Errorf("two plans on one plateau: %s", text(t, r.Result))
	}
	one := dropping(0, ladder(1e-9, step{0, 1, plateau, true}, step{0, 2, plateau, true}))
	if r := AddUp(one); r.Ended == "settled" {
		t.Errorf("settled on one plan: %s", text(t, r.Result))
	}
}

// TestWhatWidensAStatement: colourings were off by 0.63, stated 0.047.
func TestWhatWidensAStatement(t *testing.T) {
	colours := func() Input { // the estimates of 44 vertices in three colours, less ln Z
		return ladder(
			1e-9,
			step{0, 1, []float64{1.034}, true},
			step{1, 1, []float64{1.034}, true},
			step{0, 2, []float64{0.388}, true},
			step{
				1,
				2,
				[]float64{0.616},
				true,
			},
			step{0, 4, []float64{0.158}, true},
			step{1, 4, []float64{0.628}, true},
		)
	}
	sure := AddUp(dropping(1e-12, colours()))
	dropped := AddUp(dropping(0.2, colours()))
	if e := math.Abs(*dropped.LogZ); e > 3**dropped.Uncertainty ||
		*dropped.Uncertainty < 2**sure.Uncertainty {
		t.Errorf(
			"stated %v, %v where a fifth is dropped; off by %v", *sure.Uncertainty,
			*dropped.Uncertainty, e,
		)
	}
	in := dropping(0.2, colours())
	in.Assignment.Hard = true
	if r := AddUp(in); *r.Uncertainty != 4**dropped.Uncertainty {
		t.Errorf("with forbidden combinations %v, without %v", *r.Uncertainty, *dropped.Uncertainty)
	}
	in = dropping(1e-12, colours())
	in.Values[4].Value.Z = scaled.FromFloat(-1)
	if r := AddUp(in); *r.Uncertainty < 1 {
		t.Errorf("a total below 0 beside the best one: %s", text(t, r.Result))
	}
}

func TestGrowthAtTheDeadline(t *testing.T) {
	in := ladder(
		1e-9, step{0, 8, []float64{1}, true}, step{0, 16, []float64{2, 2}, true},
		step{0, 32, []float64{3}, true},
	)
	in.Values = []btn.UnitValue{in.Values[0], in.Values[1], in.Values[3]} // rung 1 lacks a slice
	if r := AddUp(in); r.Status != "error" || r.Error.Code != fault.Internal {
		t.Errorf("values are missing: %s", text(t, r.Result))
	}
	in.IsDeadlineOver = true
	r := AddUp(in)
	if r.Ended != "deadline" || *r.LogZ != 3 || len(r.Estimates) != 2 ||
		!strings.Contains(strings.Join(r.Warnings, " "), "deadline") {
		t.Errorf("%s", text(t, r.Result))
	}
	in.Values = nil
	if r := AddUp(in); r.Status != "error" || r.Error.Code != fault.Deadline {
		t.Errorf("no estimate at all: %s", text(t, r.Result))
	}
}

func TestFailedEstimatesAreLeftOut(t *testing.T) {
	in := ladder(
		1e-9, step{0, 8, []float64{1}, true}, step{0, 16, []float64{2}, true},
		step{0, 32, []float64{2.5}, true},
	)
	in.Values[1].Value.Z = scaled.FromFloat(-3)
	r := AddUp(in)
	if r.Status != "ok" || *r.LogZ != 2.5 || r.Estimates[1].LogZ != nil ||
		r.Estimates[1].Failed == "" {
		t.Errorf("%s", text(t, r.Result))
	}
	in.Values[2] = btn.UnitValue{
		Unit:  in.Values[2].Unit,
		Error: &query.ErrorInfo{Code: fault.OverBudget, Message: "no room", Stage: "contract-worker"},
	}
	if r := AddUp(in); *r.LogZ != 1 || r.Estimates[2].Failed != "no room" {
		t.Errorf("%s", text(t, r.Result))
	}
	in.Values[0].Value.Z = scaled.Number{}
	if r := AddUp(in); r.Status != "error" || r.Error.Code != fault.OverBudget {
		t.Errorf("every estimate failed: %s", text(t, r.Result))
	}
}

// Regions add up log-linearly; the linear sum of the same components is shown beside.
func TestRegionEstimates(t *testing.T) {
	e := btn.Estimate{Rule: btn.LogLinear, Slices: 1}
	in := Input{
		Assignment: &btn.Assignment{
			Propagation: &query.Propagation{Converged: true, Phases: []float64{3, 2}},
		},
	}
	for i, v := range []btn.RegionPart{
		{LnBethe: 2, LnSum: 0.25, Linear: scaled.FromFloat(0.2), Regions: 3},
		{LnBethe: 2, LnSum: 0.5, Linear: scaled.FromFloat(0.3), Regions: 4, NonPositive: 1},
		{LnBethe: 2, LnSum: -0.5, Linear: scaled.FromFloat(-0.25), Regions: 5},
	} {
		e.Parts = append(e.Parts, &regionparts.Regions{Kind: "balls", Size: 3})
		in.Values = append(
			in.Values,
			btn.UnitValue{
				Unit:  btn.Unit{Part: i},
				Value: btn.Value{Z: scaled.FromLog(v.LnBethe), Region: &v},
			},
		)
	}
	in.Assignment.Plan = &btn.Plan{Method: query.MethodRegions, Estimates: []btn.Estimate{e}}
	r := AddUp(in)
	if want := 2.25; math.Abs(*r.LogZ-want) > 1e-14 {
		t.Errorf("ln Z %v, want %v", *r.LogZ, want)
	}
	if want := math.Log(math.Exp(2) * 1.25); math.Abs(*r.Estimates[0].LogZLinear-want) > 1e-14 {
		t.Errorf("linear %v, want %v", *r.Estimates[0].LogZLinear, want)
	}
	words := strings.Join(r.Warnings, " ")
	if r.Estimates[0].Regions != 12 || !strings.Contains(words, "1 regions were left out") ||
		!strings.Contains(words, "competing phases") {
		t.Errorf("%s", text(t, r.Result))
	}
}

// regionLadder returns a query whose estimates are families of one part each.
func regionLadder(bp *query.Propagation, kinds []string, lnSums []float64, regions []int64) Input {
	plan := &btn.Plan{Method: query.MethodRegions, Accuracy: 1e-9}
	in := Input{Assignment: &btn.Assignment{Plan: plan, Propagation: bp}}
	for i, x := range lnSums {
		plan.Estimates = append(plan.Estimates, btn.Estimate{
			Rule:   btn.LogLinear,
			Track:  kinds[i],
			Level:  float64(i),
			Slices: 1,
			Parts:  []btn.Part{&regionparts.Regions{Kind: kinds[i], Size: i + 2}},
		})
		in.Values = append(in.Values, btn.UnitValue{Unit: btn.Unit{Part: i}, Value: btn.Value{
			Z:      scaled.FromLog(1),
			Region: &btn.RegionPart{LnBethe: 1, LnSum: x, Regions: regions[i]},
		}})
	}
	return in
}

// Larger sizes that find the same regions agree with themselves: nothing is known, and nothing has
// settled.
func TestTheSameRegionsAgainAreNoEvidence(t *testing.T) {
	for _, kinds := range [][]string{{"balls", "balls", "balls"}, {"balls", "loops", "balls"}} {
		r := AddUp(
			regionLadder(
				&query.Propagation{Converged: true}, kinds, []float64{0.5, 0.5, 0.5},
				[]int64{7, 7, 7},
			),
		)
		if r.Uncertainty != nil || r.Ended == "settled" {
			t.Errorf("%v: %s", kinds, text(t, r.Result))
		}
	}
}

// Regions on messages that did not converge are at least as uncertain as they are far from the
// Bethe value.
func TestUnconvergedMessagesAreInTheUncertainty(t *testing.T) {
	z := 1.0
	r := AddUp(
		regionLadder(
			&query.Propagation{LogZ: &z}, []string{"balls", "balls"}, []float64{0.5, 0.5 + 1e-12},
			[]int64{7, 9},
		),
	)
	if r.Uncertainty == nil || math.Abs(*r.Uncertainty-0.5) > 1e-9 || r.Ended == "settled" {
		t.Errorf("%s", text(t, r.Result))
	}
}

// Slices of terms of both signs are uncertain by what rounding leaves of all of them together: one that cancels to 0 is no failure, and
// only a total without a digit is one.
func TestRoundingsOfSlicesAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		z, rounding []float64
		want        float64 // share of Z; 1: no answer
	}{
		"a slice that cancels":     {[]float64{0, 1}, []float64{0.01, 0.002}, 0.012},
		"all of it in one":         {[]float64{0, 1}, []float64{0.5, 0}, 0.5},
		"slices of both signs":     {[]float64{3, -2}, []float64{0.3, 0.2}, 0.5},
		"a slice without a digit":  {[]float64{1e-3, 0.999}, []float64{1e-2, 0}, 0.01},
		"no digit is left":         {[]float64{0, 1}, []float64{1, 0.5}, 1},
		"all of them cancel":       {[]float64{0, 0}, []float64{1e-9, 1e-9}, 1},
		"what is left is rounding": {[]float64{1, -0.99}, []float64{0.01, 0.01}, 1},
	} {
		in := ladder(1e-9, step{0, 8, make([]float64, len(c.z)), false})
		in.Assignment.Plan.Estimates[0].Lossless = true
		for k := range c.z {
			v, rounding := &in.Values[k].Value, scaled.FromFloat(c.rounding[k])
			v.Z, v.Truncation.Rounding = scaled.FromFloat(c.z[k]), &rounding
		}
		r := AddUp(in)
		switch {
		case c.want == 1 && r.Status == query.StatusError && r.Error.Code == fault.FailedEstimate:
		case c.want == 1 || r.Status != query.StatusOK || math.Abs(*r.Uncertainty+math.Log1p(-c.want)) > 1e-12:
			t.Errorf("%s: %s", name, text(t, r.Result))
		}
	}
}
