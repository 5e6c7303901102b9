package plan

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/truncated/ladder"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// chosenFor is what method auto assigns without the exact way.
func chosenFor(t *testing.T, m *factorgraph.Model, s query.Settings) btn.Assignment {
	t.Helper()
	s.Method, s.NoExact = query.MethodAuto, true
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := Assign(t.Context(), net, []btn.Demand{{}}, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if assignments[0].Error != nil {
		t.Fatal(assignments[0].Error)
	}
	return assignments[0]
}

// work is what an estimate takes in flops of truncated legs.
func work(e *btn.Estimate) float64 {
	if e.Rule == btn.LogLinear {
		return policy.RegionRate * e.Cost.Flops
	}
	return e.Cost.Flops
}

// has reports whether a plan has estimates by a rule.
func has(p *btn.Plan, rule btn.Rule) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == rule })
}

// draws reports whether a plan has sampled components.
func draws(p *btn.Plan) bool { return has(p, btn.Pooled) }

// shares are the parts of a plan's work that its rules take, and what all take together.
func shares(p *btn.Plan) (of map[btn.Rule]float64, total float64) {
	of = map[btn.Rule]float64{}
	for k := range p.Estimates {
		of[p.Estimates[k].Rule] += work(&p.Estimates[k])
		total += work(&p.Estimates[k])
	}
	for rule := range of {
		of[rule] /= total
	}
	return of, total
}

// TestFamiliesByWhatTheyAreWorth: models that a small bond resolves are truncated, those that none does are sampled, each with a part of
// the other, within the budget, the cheap estimates first.
func TestFamiliesByWhatTheyAreWorth(t *testing.T) {
	grid, err := generate.Grid(20, 20, generate.Ising{Delta: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	dense, err := generate.Complete(30, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	regular, err := generate.RandomRegular(300, 3, generate.Ising{Delta: 1, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m    *factorgraph.Model
		main btn.Rule
	}{"grid": {grid, btn.Linear}, "complete": {dense, btn.Pooled}, "3-regular": {regular, btn.Pooled}} {
		const budget = 3e9
		p := chosenFor(t, c.m, query.Settings{Budget: budget, Memory: 1 << 28}).Plan
		of, total := shares(p)
		if of[c.main] < 0.5 || of[btn.Linear] == 0 || of[btn.Pooled] == 0 {
			t.Errorf("%s: %v of the work", name, of)
		}
		if total > (1+2*policy.BoundsShare)*budget {
			t.Errorf("%s: %g flops are planned of %g", name, total, float64(budget))
		}
		if first := work(&p.Estimates[0]); first > budget/10 {
			t.Errorf("%s: the first estimate takes %g of %g flops", name, first, float64(budget))
		}
	}
}

// TestATrialCutShortDecidesNothing: where the budget keeps the trial from the first bond, which the estimates reach, what a smaller bond
// leaves out does not give samples the budget: bond 8 leaves out 1e-5 of a planar glass, bond 4 0.02, as of models that no bond resolves.
func TestATrialCutShortDecidesNothing(t *testing.T) {
	glass, err := modeltest.Draw("planar-glass", 50, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := chosenFor(t, glass, query.Settings{Budget: 7e9, Memory: 1 << 30}).Plan
	reached := slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool {
		return e.Rule == btn.Linear && ladder.Bond(&e) >= policy.FirstBond
	})
	if !reached {
		of, _ := shares(p)
		t.Errorf("no estimate at bond %d: %v of the work", policy.FirstBond, of)
	}
}

// TestResolvedModelsHaveBoundsUnderEvidence: the model's own plan is bounded once, for all evidence, and found again with other values and
// other variables.
func TestResolvedModelsHaveBoundsUnderEvidence(t *testing.T) {
	grid, err := generate.Grid(20, 20, generate.Ising{Delta: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), grid, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	memo := &counting{}
	s := query.Settings{Method: query.MethodAuto, NoExact: true, Budget: 3e9, Memory: 1 << 28}
	for k, ev := range []map[int]int{{55: 0, 211: 1}, {55: 0, 211: 1}, {55: 1, 211: 1}, {57: 1, 128: 0, 340: 1}} {
		list, err := Assign(t.Context(), net, []btn.Demand{{Evidence: factorgraph.Observe(ev)}}, s, memo, nil)
		if err != nil || list[0].Error != nil {
			t.Fatal(err, list[0].Error)
		}
		p := list[0].Plan
		if !ladder.IsMasked(p) || draws(p) {
			t.Fatal("the model's own plan does not resolve it: there is nothing to see")
		}
		if want := []string{btn.CacheMiss, btn.CacheHit}[min(k, 1)]; list[0].Cache != want {
			t.Errorf("query %d: cache %q", k, list[0].Cache)
		}
		bounds := &p.Estimates[1]
		if bounds.Rule != btn.Bounding || bounds.Cost.Flops > p.Estimates[0].Cost.Flops {
			t.Fatalf("query %d: the second estimate is by rule %v and takes %g flops", k, bounds.Rule, bounds.Cost.Flops)
		}
		for _, part := range bounds.Parts {
			if !part.(*bounding.Bound).Masked {
				t.Errorf("query %d: %+v", k, part)
			}
		}
	}
}

// TestOneFamilyWhereItIsAskedFor: a bond or a number of components says what grows.
func TestOneFamilyWhereItIsAskedFor(t *testing.T) {
	dense, err := generate.Complete(24, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []query.Settings{{Bond: 4}, {Components: 3}} {
		s.Budget = 1e8
		if of, _ := shares(chosenFor(t, dense, s).Plan); of[btn.Linear] != 1 {
			t.Errorf("%+v: %v of the work", s, of)
		}
	}
}

// TestOfOneFamilyWhereTheOtherHasNothing: what has entries below 0 is contracted alone; what no budget contracts is sampled alone.
func TestOfOneFamilyWhereTheOtherHasNothing(t *testing.T) {
	signed, err := generate.Complete(20, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	signed.Factors[0].Table.(*tensor.Dense).Data[0] *= -1
	if of, _ := shares(chosenFor(t, signed, query.Settings{Budget: 1e8}).Plan); of[btn.Pooled] != 0 {
		t.Errorf("signed: %v of the work", of)
	}
	wide, err := generate.Complete(60, generate.Ising{Delta: 0.1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if of, _ := shares(chosenFor(t, wide, query.Settings{Budget: 1e6}).Plan); of[btn.Linear] != 0 {
		t.Errorf("wide: %v of the work", of)
	}
}

// TestExactWouldBeCheaper: a plan without the exact way says so where that takes less.
func TestExactWouldBeCheaper(t *testing.T) {
	for _, c := range []struct {
		n       int
		cheaper bool
	}{{25, true}, {40, false}} {
		m, err := generate.Complete(c.n, generate.Ising{Delta: 1, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		a := chosenFor(t, m, query.Settings{Budget: 1e9, Memory: 1 << 28})
		if !a.Plan.Grows() {
			t.Fatalf("%d: nothing grows", c.n)
		}
		if said := strings.Contains(strings.Join(a.Warnings, " "), "an exact answer is cheaper"); said != c.cheaper {
			t.Errorf("%d variables: %q", c.n, a.Warnings)
		}
	}
}

// TestNoTimeForSamples: where the time for planning is over, chains from a small pilot have half of the budget, with the bound by messages
// alone, and the plan is not remembered. Under a deadline the value of belief propagation comes first where components
// alone are asked for, and without one it does not.
func TestNoTimeForSamples(t *testing.T) {
	net := isingGrid(t, 12, generate.Ising{Delta: 1.5, Seed: 3})
	for _, method := range []query.Method{query.MethodAuto, query.MethodSampled} {
		s := query.Settings{Method: method, NoExact: method == query.MethodAuto, Budget: 1e8, Memory: 1 << 17}
		memo := &counting{}
		for _, c := range []struct {
			name            string
			ctx             context.Context
			searched, first bool
		}{
			{"no time", proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second)), false, true},
			{"under a deadline", proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour)), true, true},
			{"without a deadline", t.Context(), true, false},
		} {
			a := assigned(t, c.ctx, net, s, memo)
			if a.Error != nil {
				t.Fatal(method, c.name, a.Error.Message)
			}
			searched := bounded(&btn.Plan{Estimates: withoutMessages(a.Plan.Estimates)})
			if !draws(a.Plan) || !bounded(a.Plan) || searched != c.searched {
				t.Errorf("%s, %s: components %v, bounds %v, by search %v", method, c.name, draws(a.Plan), bounded(a.Plan), searched)
			}
			if method == query.MethodAuto {
				continue
			}
			first := has(&btn.Plan{Estimates: a.Plan.Estimates[:1]}, btn.LogLinear)
			if first != c.first || first != (a.Propagation != nil && a.Propagation.LogZ != nil && len(a.Messages) > 0) {
				t.Errorf("%s: the value of belief propagation comes first: %v, %+v", c.name, first, a.Propagation)
			}
			sampled := 0.0
			for _, e := range a.Plan.Estimates {
				if e.Rule == btn.Pooled {
					sampled += e.Cost.Flops
				}
			}
			if most := s.Budget; sampled > most || !c.searched && sampled > most/2 {
				t.Errorf("%s: components take %v", c.name, sampled)
			}
		}
	}
}

// bounded reports whether some estimate of a plan is of bounds.
func bounded(p *btn.Plan) bool { return has(p, btn.Bounding) }

// withoutMessages are estimates without the bound by messages.
func withoutMessages(estimates []btn.Estimate) []btn.Estimate {
	return slices.DeleteFunc(slices.Clone(estimates), func(e btn.Estimate) bool {
		b, ok := e.Parts[0].(*bounding.Bound)
		return ok && b.Kind == bounding.Messages
	})
}

// TestWhateverTheTimeForPlanning: there is a plan with sampled components, within the budget, and it is remembered where nothing was
// cut short alone: then it is that without a deadline.
func TestWhateverTheTimeForPlanning(t *testing.T) {
	net := isingGrid(t, 12, generate.Ising{Delta: 1.5, Seed: 3})
	s := query.Settings{Method: query.MethodAuto, NoExact: true, Budget: 1e8, Memory: 1 << 17}
	want := assigned(t, t.Context(), net, s, nil)
	for left := 100 * time.Microsecond; ; left *= 2 {
		memo := &counting{}
		a := assigned(t, proposal.WithAnswerDeadline(t.Context(), time.Now().Add(left)), net, s, memo)
		if a.Error != nil || !draws(a.Plan) {
			t.Fatalf("%v: %+v, %v", left, a.Plan, a.Error)
		}
		total := 0.0
		for k := range a.Plan.Estimates {
			total += work(&a.Plan.Estimates[k])
		}
		if total > 1.1*s.Budget {
			t.Errorf("%v: %g of %g flops are planned", left, total, s.Budget)
		}
		if len(memo.known) == 2 { // truncated legs, and what all is
			got := a.Plan.Estimates
			if got[0].Rule == btn.LogLinear {
				got = withoutMessages(got[1:])
			}
			if !reflect.DeepEqual(got, want.Plan.Estimates) {
				t.Errorf("%v: what is remembered is another plan: %v, %v", left, a.Plan, want.Plan)
			}
			return
		}
	}
}
