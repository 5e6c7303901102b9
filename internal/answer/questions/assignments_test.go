package questions

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestAssignmentsOfParts: the best assignment of all slices, whatever the order in which they come, is
// in the result; Z and the number of components are those of the other parts.
func TestAssignmentsOfParts(t *testing.T) {
	path := &descent.Path{Ask: btn.AskMPE, Count: 3}
	found := func(weight float64, values ...int) btn.Value {
		return btn.Value{Found: &btn.Found{Values: values, Weight: scaled.FromFloat(weight), Unique: true, Close: 1e-14}}
	}
	values := []btn.Value{
		{Z: scaled.FromFloat(9)},
		found(2, 0, 1), found(4*(1+1e-16), 1, 1), found(4, 1, 0),
	}
	parts := []btn.Part{&exact.Elimination{}}
	for s := range int64(3) {
		parts = append(parts, &descent.Descent{Along: path, From: s, To: s + 1})
	}
	plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule: btn.Linear, Slices: 1, Parts: parts, Quality: &btn.Quality{Exact: true, ConditionGram: 1},
	}}}
	in := aggregate.Input{Job: "t", Assignment: &btn.Assignment{Plan: plan, Want: btn.Want{Best: 1}}}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		in.Values = nil
		for _, k := range order {
			in.Values = append(in.Values, btn.UnitValue{Unit: btn.Unit{Part: k}, Value: values[k]})
		}
		r := answerOf(in)
		if r.Status != query.StatusOK || r.MPE == nil || !slices.Equal(r.MPE.Assignment, []int{1, 0}) || r.MPE.Unique ||
			math.Abs(r.MPE.LnWeight-math.Log(4)) > 1e-14 || math.Abs(*r.LogZ-math.Log(9)) > 1e-14 || r.Components != 1 || !r.Exact {
			t.Errorf("order %v: %+v, %+v", order, r, r.MPE)
		}
	}

	// Nothing found, and Z above 0: no answer is better than none that is right.
	for k := 1; k < len(values); k++ {
		in.Values[slices.IndexFunc(in.Values, func(u btn.UnitValue) bool { return u.Part == k })].Value = btn.Value{}
	}
	if r := answerOf(in); r.Status != query.StatusError || r.MPE != nil {
		t.Errorf("%+v", r)
	}
}

// TestATotalBelowAnAssignment: an assignment's weight bounds Z from below. A total that misses it becomes the bound, and is not exact; one
// of 0 is no answer.
func TestATotalBelowAnAssignment(t *testing.T) {
	path := &descent.Path{Ask: btn.AskMap, Count: 1}
	parts := []btn.Part{&exact.Elimination{}, &descent.Descent{Along: path, To: 1}}
	plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule: btn.Linear, Slices: 1, Parts: parts, Quality: &btn.Quality{Exact: true, ConditionGram: 1},
	}}}
	total := btn.Value{Z: scaled.FromLog(800), Doubt: "terms of the total may be missing", Marginals: &btn.Marginals{
		Domains: []int{2}, Mant: []float64{1, 1},
	}}
	heavy := btn.Value{Found: &btn.Found{Values: []int{1}, Weight: scaled.FromLog(1330), Close: 1e-14}}
	light := btn.Value{Found: &btn.Found{Values: []int{1}, Weight: scaled.FromLog(799), Close: 1e-14}}
	sure, zero := total, btn.Value{}
	sure.Doubt = ""
	for name, c := range map[string]struct {
		total, found btn.Value
		ln, lower    float64
		exact        bool
	}{
		"doubted and below": {total, heavy, 1330, 1330, false},
		"doubted and above": {total, light, 800, 799, false},
		"sure and below":    {sure, heavy, 1330, 1330, false},
		"sure and above":    {sure, light, 800, 800, true},
		"zero":              {zero, heavy, math.NaN(), 0, false},
	} {
		over := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
			Rule: btn.Linear, Slices: 1, Parts: parts[:1], Quality: &btn.Quality{Exact: true, ConditionGram: 1},
		}}}
		results := Results([]aggregate.Input{
			{Assignment: &btn.Assignment{Plan: over}, Values: []btn.UnitValue{{Value: btn.Value{Z: scaled.FromLog(1331)}}}},
			{
				Query:      1,
				Assignment: &btn.Assignment{Plan: plan, Want: btn.Want{Map: []int{0}}, Asked: &btn.Asked{Query: query.Query{Over: 1}}},
				Values: []btn.UnitValue{
					{Unit: btn.Unit{Query: 1}, Value: c.total}, {Unit: btn.Unit{Query: 1, Part: 1}, Value: c.found},
				},
			},
		})
		r := results[1]
		switch {
		case math.IsNaN(c.ln):
			if r.Status != query.StatusError || r.Error.Code != fault.Unsupported {
				t.Errorf("%s: %+v, %+v", name, r, r.Error)
			}
		case r.Status != query.StatusOK || r.Exact != c.exact || math.Abs(*r.LogZ-c.ln) > 1e-9 || r.Map == nil ||
			(r.Marginals == nil) != (c.ln > 1000):
			t.Errorf("%s: %+v, ln Z %v", name, r, *r.LogZ)
		case r.Bounds == nil || math.Abs(*r.Bounds.Lower-c.lower) > 1e-8 || *r.Bounds.Lower > c.lower || math.Abs(*r.Ratio.Ln+1331-c.ln) > 1e-9:
			t.Errorf("%s: bounds %+v, ratio %v", name, r.Bounds, *r.Ratio.Ln)
		}
	}
}

// TestSearches: the best assignment of several searches for the same one has the least of their bounds. A search without an assignment has
// a bound alone.
func TestSearches(t *testing.T) {
	found := func(value int, weight, bound float64) *btn.Found {
		f := &btn.Found{Values: []int{value}, Weight: scaled.FromFloat(weight), Close: 1e-14, Bounded: true, Bound: bound}
		if weight == 0 {
			f.Values = nil
		}
		return f
	}
	two := math.Log(2)
	for name, c := range map[string]struct {
		list    []*btn.Found
		value   int
		bound   float64
		optimal bool
	}{
		"one":                  {[]*btn.Found{found(1, 2, 3)}, 1, 3, false},
		"proved":               {[]*btn.Found{found(1, 1, 3), found(2, 2, two)}, 2, two, true},
		"not proved":           {[]*btn.Found{found(1, 1, 3), found(2, 2, 2)}, 2, 2, false},
		"the other's bound":    {[]*btn.Found{found(1, 1, 2), found(2, 2, 3)}, 2, 2, false},
		"a bound alone":        {[]*btn.Found{found(1, 1, 3), found(0, 0, 0.7)}, 1, 0.7, false},
		"a bound that rounded": {[]*btn.Found{found(1, 2, 3), found(0, 0, two-1e-9)}, 1, two, true},
	} {
		for range 2 {
			f := btn.BestOfSearches(c.list)
			if f.Values[0] != c.value || f.Bound != c.bound || !f.Relaxed != c.optimal && len(c.list) > 1 {
				t.Errorf("%s: %+v", name, f)
			}
			slices.Reverse(c.list)
		}
	}
	plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule: btn.Linear, Slices: 1, Quality: &btn.Quality{Exact: true, ConditionGram: 1},
		Parts: []btn.Part{&search.Search{Work: 1}, &search.Search{Work: 1}},
	}}}
	in := aggregate.Input{Job: "t", Assignment: &btn.Assignment{Plan: plan, Want: btn.Want{Best: 1}}, Values: []btn.UnitValue{
		{Value: btn.Value{Found: found(0, 0, math.Inf(1))}}, {Unit: btn.Unit{Part: 1}, Value: btn.Value{Found: found(0, 0, 1)}},
	}}
	if r := answerOf(in); r.Status != query.StatusError || r.Error.Code != fault.OverBudget {
		t.Errorf("nothing found: %+v, %+v", r, r.Error)
	}

	// The deadline comes before the second search.
	in.Values, in.IsDeadlineOver = []btn.UnitValue{{Value: btn.Value{Found: found(7, 2, 3)}}}, true
	r := answerOf(in)
	if r.Status != query.StatusOK || r.MPE == nil || r.MPE.Assignment[0] != 7 || *r.MPE.LnBound != 3 || r.Ended != aggregate.EndedDeadline {
		t.Errorf("one of two searches: %+v, %+v", r, r.Error)
	}
}

// TestListsOfSearches: of several lists the better one is taken, with its own bound.
func TestListsOfSearches(t *testing.T) {
	list := func(bound float64, weights ...float64) *btn.Found {
		f := &btn.Found{Values: []int{0}, Weight: scaled.FromFloat(weights[0]), Bounded: true, Bound: bound}
		for k, w := range weights[1:] {
			f.Others = append(f.Others, btn.Other{Values: []int{k + 1}, Weight: scaled.FromFloat(w)})
		}
		return f
	}
	for name, lists := range map[string][]*btn.Found{ // the first is the better one
		"more":              {list(1, 5, 3, 2), list(0.5, 5, 3)},
		"a better second":   {list(1, 5, 4), list(0.5, 5, 3)},
		"a lower bound":     {list(0.5, 5, 3), list(1, 5, 3)},
		"a better first":    {list(1, 6, 3), list(0.5, 5, 4)},
		"only one is found": {list(1, 5, 3), list(0.5, 5)},
	} {
		better := lists[0]
		for range 2 {
			if got := btn.BestOfSearches(lists); got != better {
				t.Errorf("%s: %+v", name, got)
			}
			slices.Reverse(lists)
		}
	}
}

// TestSearchAtTheDeadline: what a search has found is the answer where Z is not there in time; where it is, the elimination's counts.
func TestSearchAtTheDeadline(t *testing.T) {
	path := &descent.Path{Ask: btn.AskMPE, Count: 1}
	parts := []btn.Part{&search.Search{Work: 1}, &exact.Elimination{}, &descent.Descent{Along: path, To: 1}}
	plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule: btn.Linear, Slices: 1, Parts: parts, Quality: &btn.Quality{Exact: true, ConditionGram: 1},
	}}}
	searched := &btn.Found{Values: []int{0}, Weight: scaled.FromFloat(2), Close: 1e-14, Bounded: true, Relaxed: true, Bound: 3}
	best := &btn.Found{Values: []int{1}, Weight: scaled.FromFloat(4), Close: 1e-14, Unique: true}
	values := []btn.UnitValue{
		{Unit: btn.Unit{Part: 0}, Value: btn.Value{Found: searched}},
		{Unit: btn.Unit{Part: 1}, Value: btn.Value{Z: scaled.FromFloat(9)}},
		{Unit: btn.Unit{Part: 2}, Value: btn.Value{Found: best}},
	}
	in := aggregate.Input{Job: "t", Assignment: &btn.Assignment{Plan: plan, Want: btn.Want{Best: 1}}, Values: values}
	r := answerOf(in)
	if r.Status != query.StatusOK || r.LogZ == nil || r.MPE == nil || r.MPE.Assignment[0] != 1 || !r.MPE.Unique || r.MPE.LnBound != nil {
		t.Errorf("all: %+v, %+v", r, r.MPE)
	}

	in.Values, in.IsDeadlineOver = values[:1], true
	r = answerOf(in)
	if r.Status != query.StatusOK || r.LogZ != nil || r.Zero || r.MPE == nil || r.MPE.Assignment[0] != 0 ||
		*r.MPE.LnBound != 3 || *r.MPE.Optimal || math.Abs(*r.MPE.Gap-(3-math.Log(2))) > 1e-14 {
		t.Errorf("at the deadline: %+v, %+v", r, r.MPE)
	}

	// A proof is the answer where nothing else is asked for, the same whatever else is there.
	proved := *searched
	proved.Relaxed, proved.Bound = false, math.Log(2)
	for n := 1; n <= 3; n++ {
		in.Values = slices.Clone(values[:n])
		in.Values[0].Value.Found = &proved
		for _, alone := range []bool{false, true} {
			in.IsDeadlineOver, in.Assignment.Alone = false, alone
			r, settled := answerOf(in), aggregate.Settled(in)
			if settled != (alone || n == 3) || (r.Status == query.StatusOK) != settled {
				t.Errorf("%d of 3 parts, alone %v: settled %v, %+v", n, alone, settled, r)
			}
			if alone && (r.LogZ != nil || r.MPE == nil || !*r.MPE.Optimal || r.Ended != "settled") {
				t.Errorf("%d of 3 parts, proved: %+v", n, r)
			}
			if !alone && n == 3 && (r.LogZ == nil || r.Ended != "") {
				t.Errorf("all parts, Z asked for: %+v", r)
			}
		}
	}
	in.Assignment.Alone, in.IsDeadlineOver = true, false
	in.Values = values[:1]
	if r := answerOf(in); aggregate.Settled(in) || r.Status == query.StatusOK {
		t.Errorf("not proved, not at the deadline: %+v", r)
	}
	in.IsDeadlineOver = true

	// Two runs of a search that the clock ended differ: the better one is taken.
	better := *searched
	better.Values, better.Weight = []int{2}, scaled.FromFloat(3)
	in.Values = []btn.UnitValue{values[0], {Value: btn.Value{Found: &better}}}
	if r := answerOf(in); r.MPE == nil || r.MPE.Assignment[0] != 2 {
		t.Errorf("two runs: %+v", r.MPE)
	}
	in.Values = values[1:2]
	if r := answerOf(in); r.Status != query.StatusError || r.Error.Code != fault.Deadline {
		t.Errorf("without the search: %+v", r)
	}

	// A search that has found nothing leaves the answer to the elimination, and is none at the deadline.
	nothing := slices.Clone(values)
	nothing[0].Value.Found = &btn.Found{Values: []int{}, Bounded: true, Relaxed: true, Bound: 3}
	in.Values, in.IsDeadlineOver, in.Assignment.Alone = nothing, false, false
	if r := answerOf(in); r.Status != query.StatusOK || r.MPE == nil || r.MPE.Assignment[0] != 1 || r.LogZ == nil {
		t.Errorf("nothing found by the search: %+v, %+v", r.MPE, r.Error)
	}
	in.Values, in.IsDeadlineOver = nothing[:1], true
	if r := answerOf(in); r.Status != query.StatusError || r.Error.Code != fault.Deadline {
		t.Errorf("nothing found by the deadline: %+v", r)
	}

	// Of one variable: the elimination counts where it is there, the search where the deadline came, with bounds of its weight.
	parts[0], path.Ask = &search.Search{Work: 1, Map: &search.Marginal{Entries: 1}}, btn.AskMap
	searched.Upper = 1
	in.Assignment.Want = btn.Want{Map: []int{0}}
	in.Values, in.IsDeadlineOver = values, false
	r = answerOf(in)
	if r.LogZ == nil || r.Map == nil || r.Map.Assignment[0] != 1 || !r.Map.Exact || r.Map.LnBound != nil || r.Map.Gap != nil {
		t.Errorf("marginal MAP, all: %+v, %+v", r, r.Map)
	}
	in.Values, in.IsDeadlineOver = values[:1], true
	if r := answerOf(in); r.Status != query.StatusOK || r.LogZ != nil || r.Map == nil || r.Map.Assignment[0] != 0 || r.Map.Exact ||
		*r.Map.LnBound != 3 || *r.Map.Optimal || *r.Map.LnUpper != 1 || *r.Map.Gap != 3-r.Map.LnWeight {
		t.Errorf("marginal MAP at the deadline: %+v, %+v", r, r.Map)
	}
}
