package learn

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/reparam"
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
	job, err := Assign(t.Context(), net, []Query{{}}, btn.Settings{Method: btn.MethodExact}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := job.Assignments[0].Error; e == nil || e.Code != fault.OverBudget || !strings.Contains(e.Message, "every order has a table of at least 2^70.0 entries") {
		t.Errorf("method exact: %+v", e)
	}
	job, err = Assign(t.Context(), net, []Query{{}}, btn.Settings{Budget: 1e8}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := job.Assignments[0]; a.Error != nil || !strings.Contains(strings.Join(a.Warnings, " "), "at least 2^70.0 entries") {
		t.Errorf("method auto: %+v, %v", a.Error, a.Warnings)
	}
}

// TestNoTimeForPlanning: where the time for planning is over there is a plan all the same, a greedy one; and nothing of that where the
// caller has gone.
func TestNoTimeForPlanning(t *testing.T) {
	net := wide(t, 40)
	s := btn.Settings{Method: btn.MethodTruncated, Budget: 1e9}
	job, err := Assign(PlanUntil(t.Context(), time.Now().Add(-time.Second)), net, []Query{{}}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := job.Assignments[0].Error; e != nil {
		t.Fatal(e.Message)
	}
	g := job.Decompositions[job.Assignments[0].Decomposition].Growth
	if g == nil || len(g.Rungs) == 0 || len(g.Plans) != 2 {
		t.Fatalf("the ladder is %+v", g)
	}
	back := slices.Clone(g.Plans[1].Order)
	if slices.Reverse(back); !slices.Equal(back, g.Plans[0].Order) {
		t.Errorf("the plans are %v and %v, a greedy one and its reverse are wanted", g.Plans[0].Order, g.Plans[1].Order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Assign(PlanUntil(ctx, time.Now()), net, []Query{{}}, s, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNoTimeForRegions: where the time for planning is over, the value of belief propagation is what there is, and it is not remembered as the
// families of the model. Who only asks for the price is told no such thing.
func TestNoTimeForRegions(t *testing.T) {
	net := wide(t, 8)
	s := btn.Settings{Method: btn.MethodRegions, Budget: 1e9}
	kinds := func(ctx context.Context, memo Memo) (kinds []string) {
		t.Helper()
		job, err := Assign(ctx, net, []Query{{}}, s, memo)
		if err != nil {
			t.Fatal(err)
		}
		a := job.Assignments[0]
		if a.Error != nil {
			return []string{a.Error.Message}
		}
		if a.Propagation == nil || a.Propagation.LogZ == nil || len(a.Messages) == 0 {
			t.Errorf("belief propagation: %+v", a.Propagation)
		}
		for _, r := range job.Decompositions[a.Decomposition].Growth.Rungs {
			kinds = append(kinds, r.Kind)
		}
		return kinds
	}
	memo := &counting{}
	if got := kinds(PlanUntil(t.Context(), time.Now().Add(-time.Second)), memo); !slices.Equal(got, []string{btn.KindBethe}) {
		t.Errorf("no time: %v", got)
	}
	if got := kinds(PlanUntil(t.Context(), time.Now().Add(time.Hour)), memo); len(got) < 2 || got[0] != btn.KindBethe {
		t.Errorf("under a deadline: %v", got)
	}
	if got := kinds(PriceUntil(t.Context(), time.Now().Add(-time.Second)), memo); !slices.Equal(got, []string{btn.KindBethe}) {
		t.Errorf("no time for a price: %v", got)
	}
	if got := kinds(t.Context(), memo); len(got) < 1 || got[0] == btn.KindBethe {
		t.Errorf("without a deadline: %v", got)
	}
	if got := kinds(PriceUntil(t.Context(), time.Now().Add(time.Hour)), memo); len(got) < 1 || got[0] == btn.KindBethe {
		t.Errorf("a price: %v", got)
	}
}

// counting is a memo that remembers what is computed without an error.
type counting struct{ known map[string]*btn.Decomposition }

func (c *counting) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Decomposition, error)) (*btn.Decomposition, bool, error) {
	if d := c.known[key]; d != nil {
		return d, true, nil
	}
	d, err := compute(ctx)
	if err != nil {
		return nil, false, err
	}
	if c.known == nil {
		c.known = map[string]*btn.Decomposition{}
	}
	c.known[key] = d
	return d, false, nil
}

// TestAutoGivesAwayWhatCannotBeReady: under a deadline auto takes no truncated legs whose first estimate alone is beyond the budget.
func TestAutoGivesAwayWhatCannotBeReady(t *testing.T) {
	net := wide(t, 24)
	s := btn.Settings{Method: btn.MethodAuto, NoExact: true, Budget: 1e4}
	for _, c := range []struct {
		ctx  context.Context
		want btn.Method
	}{{t.Context(), btn.MethodTruncated}, {PlanUntil(t.Context(), time.Now().Add(time.Hour)), btn.MethodRegions}} {
		job, err := Assign(c.ctx, net, []Query{{}}, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := job.Assignments[0]
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		if got := job.Decompositions[a.Decomposition].Method; got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// TestSearchesGrowWithTheBudget: they are counted, and a quarter of it at most.
func TestSearchesGrowWithTheBudget(t *testing.T) {
	if got := searchMoves(btn.Settings{Budget: 3 * Rate}); got != 750_000_000 {
		t.Errorf("3 s: %d moves", got)
	}
	if got := searchMoves(btn.Settings{}); got != mostMoves {
		t.Errorf("by default: %d moves", got)
	}
}
