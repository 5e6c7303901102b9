package plan

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// wide is the network of a complete graph, whose width nobody doubts.
func wide(t *testing.T, n int) *btn.Network {
	t.Helper()
	m, err := generate.Complete(n, generate.Ising{Delta: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// TestWhatCannotFitIsRefusedWithoutASearch: by the lower bound, with its figure, for method exact and for auto.
func TestWhatCannotFitIsRefusedWithoutASearch(t *testing.T) {
	net := wide(t, 70)
	assignments, err := Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Method: query.MethodExact}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := assignments[0].Error; e == nil || e.Code != fault.OverBudget ||
		!strings.Contains(e.Message, "every order has a table of at least 2^70.0 entries") {
		t.Errorf("method exact: %+v", e)
	}
	assignments, err = Assign(t.Context(), net, []btn.Demand{{}}, query.Settings{Budget: 1e8}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := assignments[0]; a.Error != nil || !strings.Contains(strings.Join(a.Warnings, " "), "at least 2^70.0 entries") {
		t.Errorf("method auto: %+v, %v", a.Error, a.Warnings)
	}
}

// TestNoTimeForPlanning: where the time for planning is over there is a plan all the same, a greedy one; and
// nothing of that where the caller has gone.
func TestNoTimeForPlanning(t *testing.T) {
	net := wide(t, 40)
	s := query.Settings{Method: query.MethodTruncated, Budget: 1e9}
	assignments, err := Assign(proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second)), net, []btn.Demand{{}}, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := assignments[0].Error; e != nil {
		t.Fatal(e.Message)
	}
	plans := sweeps(assignments[0].Plan)
	if len(plans) != 2 {
		t.Fatalf("the ladder is %+v", assignments[0].Plan)
	}
	back := slices.Clone(plans[1].Order)
	if slices.Reverse(back); !slices.Equal(back, plans[0].Order) {
		t.Errorf("the plans are %v and %v, a greedy one and its reverse are wanted", plans[0].Order, plans[1].Order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Assign(proposal.WithAnswerDeadline(ctx, time.Now()), net, []btn.Demand{{}}, s, nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSmallNetworksAreExactLate: the exact way of a small network is planned although the time for planning is over.
func TestSmallNetworksAreExactLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // computation takes no time
		net := isingGrid(t, 3, generate.Ising{Delta: 1, Seed: 1})
		late := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second))
		a := assigned(t, late, net, query.Settings{Method: query.MethodAuto, Budget: 1e9}, nil)
		if a.Error != nil || !a.Plan.Exact() {
			t.Errorf("%+v, %v", a.Plan, a.Error)
		}
	})
}

// TestHastyPlansAreNotRemembered: a plan that the clock cut short serves its own job alone, also where
// another job waited for it.
func TestHastyPlansAreNotRemembered(t *testing.T) {
	net := wide(t, 30)
	s := query.Settings{Method: query.MethodTruncated, Budget: 1e9}
	memo := &counting{}
	plan := func(ctx context.Context, memo proposal.Memo) ([]*truncated.TruncatedPlan, string) {
		t.Helper()
		a := assigned(t, ctx, net, s, memo)
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		return sweeps(a.Plan), a.Cache
	}
	over := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second))
	hasty, hit := plan(over, memo)
	if hit != "miss" || len(memo.known) != 0 {
		t.Errorf("cache %q, remembered: %v", hit, memo.known)
	}
	want, _ := plan(t.Context(), nil)
	if reflect.DeepEqual(hasty, want) {
		t.Fatal("the greedy plan is the one that is searched: there is nothing to see")
	}
	for i, hit := range []string{"miss", "hit"} {
		if got, state := plan(t.Context(), memo); state != hit || !reflect.DeepEqual(got, want) {
			t.Errorf("call %d: cache %q, the plan is not the one that is searched", i, state)
		}
	}
	if got, state := plan(over, memo); state != "hit" || !reflect.DeepEqual(got, want) {
		t.Errorf("no time: cache %q, and what is remembered is not taken", state)
	}
	if got, state := plan(t.Context(), &waited{}); state != "miss" || !reflect.DeepEqual(got, want) {
		t.Errorf("behind another job: cache %q, the plan is not the one that is searched", state)
	}
}

// sweeps are the trees and sweeps that a plan's estimates follow, each once.
func sweeps(p *btn.Plan) (out []*truncated.TruncatedPlan) {
	for _, e := range p.Estimates {
		if q, ok := e.Parts[0].(*truncated.Truncated); ok && !slices.Contains(out, q.Plan) {
			out = append(out, q.Plan)
		}
	}
	return out
}

// assigned is the assignment of one query without evidence.
func assigned(t *testing.T, ctx context.Context, net *btn.Network, s query.Settings, memo proposal.Memo) btn.Assignment {
	t.Helper()
	assignments, err := Assign(ctx, net, []btn.Demand{{}}, s, memo, nil)
	if err != nil {
		t.Fatal(err)
	}
	return assignments[0]
}

// waited is a memo whose first call waits for another job, of which the planning ends.
type waited struct {
	counting
	calls int
}

func (w *waited) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if w.calls++; w.calls == 1 {
		return nil, false, proposal.ErrNoTime
	}
	return w.counting.Do(ctx, key, compute)
}

// TestNoTimeForRegions: where the time for planning is over, the value of belief propagation is what there
// is, and it is not remembered as the families of the model. Who only asks for the price is told no such
// thing.
func TestNoTimeForRegions(t *testing.T) {
	net := wide(t, 8)
	s := query.Settings{Method: query.MethodRegions, Budget: 1e9}
	kinds := func(ctx context.Context, memo proposal.Memo) (kinds []string) {
		t.Helper()
		a := assigned(t, ctx, net, s, memo)
		if a.Error != nil {
			return []string{a.Error.Message}
		}
		if a.Propagation == nil || a.Propagation.LogZ == nil || len(a.Messages) == 0 {
			t.Errorf("belief propagation: %+v", a.Propagation)
		}
		estimates := withoutMessages(a.Plan.Estimates)
		for k := range estimates {
			kinds = append(kinds, estimates[k].Parts[0].(*regions.Regions).Kind)
		}
		return kinds
	}
	memo := &counting{}
	if got := kinds(proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second)), memo); !slices.Equal(got,
		[]string{btn.KindBethe}) {
		t.Errorf("no time: %v", got)
	}
	if got := kinds(proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour)), memo); len(got) < 2 || got[0] != btn.KindBethe {
		t.Errorf("under a deadline: %v", got)
	}
	if got := kinds(proposal.WithPlanningEnd(t.Context(), time.Now().Add(-time.Second)), memo); !slices.Equal(got,
		[]string{btn.KindBethe}) {
		t.Errorf("no time for a price: %v", got)
	}
	if got := kinds(t.Context(), memo); len(got) < 1 || got[0] == btn.KindBethe {
		t.Errorf("without a deadline: %v", got)
	}
	if got := kinds(proposal.WithPlanningEnd(t.Context(), time.Now().Add(time.Hour)), memo); len(got) < 1 || got[0] == btn.KindBethe {
		t.Errorf("a price: %v", got)
	}
}

// counting is a memo that remembers what is computed without an error.
type counting struct{ known map[string]*btn.Plan }

func (c *counting) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if d := c.known[key]; d != nil {
		return d, true, nil
	}
	d, err := compute(ctx)
	if err != nil {
		return nil, false, err
	}
	if c.known == nil {
		c.known = map[string]*btn.Plan{}
	}
	c.known[key] = d
	return d, false, nil
}

// TestAutoGivesAwayWhatCannotBeReady: under a deadline auto takes no truncated legs whose first estimate
// alone is beyond the budget.
func TestAutoGivesAwayWhatCannotBeReady(t *testing.T) {
	net := wide(t, 24)
	s := query.Settings{Method: query.MethodAuto, NoExact: true, Budget: 1e4}
	for _, c := range []struct {
		ctx  context.Context
		want query.Method
	}{{t.Context(), query.MethodTruncated}, {proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour)), query.MethodRegions}} {
		assignments, err := Assign(c.ctx, net, []btn.Demand{{}}, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := assignments[0]
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		if got := a.Plan.Method; got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestSearchesGrowWithTheBudget: they are counted, and a quarter of it at most.
func TestSearchesGrowWithTheBudget(t *testing.T) {
	if got := proposal.MoveLimit(query.Settings{Budget: 3 * policy.Rate}); got != 750_000_000 {
		t.Errorf("3 s: %d moves", got)
	}
	if got := proposal.MoveLimit(query.Settings{}); got != policy.MostMoves {
		t.Errorf("by default: %d moves", got)
	}
}

// TestExactPlansThatMissTheDeadline: under a deadline method auto takes no exact plan with a part that cannot be there in
// time.
func TestExactPlansThatMissTheDeadline(t *testing.T) {
	net := isingGrid(t, 12, generate.Ising{Delta: 1, Seed: 1})
	s := query.Settings{Method: query.MethodAuto, Budget: 1e9}
	timed := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour))
	plain := assigned(t, timed, net, s, nil)
	if plain.Error != nil || !plain.Plan.Exact() {
		t.Fatalf("%+v, %v", plain.Plan, plain.Error)
	}
	longest := plain.Plan.Estimates[0].Cost.Flops / float64(len(plain.Plan.Estimates[0].Parts))
	for name, c := range map[string]struct {
		flops  float64
		method query.Method
		exact  bool
	}{
		"in time":            {1.01 * longest / policy.FastExact, query.MethodAuto, true},
		"late":               {0.99 * longest / policy.FastExact, query.MethodAuto, false},
		"late, asked for":    {0.99 * longest / policy.FastExact, query.MethodExact, true},
		"a worth of nothing": {0, query.MethodAuto, true},
	} {
		s.Method = c.method
		a := assigned(t, proposal.WithDeadlineFlops(timed, c.flops), net, s, nil)
		if a.Error != nil || a.Plan.Exact() != c.exact {
			t.Errorf("%s: %+v, %v", name, a.Plan, a.Error)
			continue
		}
		if said := strings.Contains(strings.Join(a.Warnings, "\n"), "the deadline is worth"); said == c.exact {
			t.Errorf("%s: warnings %q", name, a.Warnings)
		}
	}
}
