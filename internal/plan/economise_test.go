package plan

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/frobenius"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/query"
)

func TestEconomiseReducesStartsThenSweepsThenComponents(t *testing.T) {
	dims := make([]int, 200)
	net := &btn.Network{Dims: dims}
	for i := range dims {
		dims[i] = 2
	}
	full := btn.Settings{Components: 8, Sweeps: 16, Starts: 4}
	enough := frobenius.Cost(net, full)
	for _, c := range []struct {
		flops float64
		check func(s btn.Settings) bool
	}{
		{enough, func(s btn.Settings) bool { return s.Starts == 4 && s.Sweeps == 16 && s.Components == 8 }},
		{enough / 2, func(s btn.Settings) bool { return s.Starts == 2 && s.Sweeps == 16 && s.Components == 8 }},
		{enough / 4.5, func(s btn.Settings) bool { return s.Starts == 1 && s.Sweeps < 16 && s.Components == 8 }},
		{1, func(s btn.Settings) bool { return s.Starts == 1 && s.Sweeps == 1 && s.Components == 1 }},
	} {
		s := full
		s.LearnFlops = c.flops
		got, warning := Economise(net, s)
		if !c.check(got) {
			t.Errorf("%g flops of %g: %d starts, %d sweeps, %d components",
				c.flops, enough, got.Starts, got.Sweeps, got.Components)
		}
		if reduced := c.flops < enough; reduced != strings.Contains(warning, "reduced") {
			t.Errorf("%g flops of %g: warning %q", c.flops, enough, warning)
		}
		if c.flops > 1 && frobenius.Cost(net, got) > c.flops {
			t.Errorf("%g flops: costs %g", c.flops, frobenius.Cost(net, got))
		}
	}
}

// TestWhatNobodyCanCountIsLearnedAtRankOne: where one component over counts is beyond learned.flops, or
// beyond what a deadline is worth, there is an answer all the same, and it says what it is.
func TestWhatNobodyCanCountIsLearnedAtRankOne(t *testing.T) {
	net := wide(t, 40)
	class := func(ctx context.Context, s btn.Settings) (btn.Class, int, string) {
		t.Helper()
		s.Method = btn.MethodSymmetryCP
		assignments, err := Assign(ctx, net, []query.Query{{}}, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := assignments[0]
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		return a.Plan.Estimates[0].Parts[0].Class(), a.Plan.Len(), strings.Join(a.Plan.Warnings, " ")
	}
	least := frobenius.Cost(net, frobenius.Settings(btn.Settings{Components: 1, Sweeps: 1, Starts: 1}))
	if c, n, _ := class(t.Context(), btn.Settings{LearnFlops: 1.01 * least}); c != btn.ClassSymmetryRankOne || n != 1 {
		t.Errorf("just enough: %d components, %s", n, c)
	}
	if c, n, w := class(t.Context(), btn.Settings{LearnFlops: 0.99 * least}); c != btn.ClassRankOne || n != 1 ||
		!strings.Contains(w, "one of rank one") {
		t.Errorf("not enough: %d components, %s, %s", n, c, w)
	}
	in := PlanUntil(t.Context(), time.Now().Add(time.Hour))
	if c, n, w := class(in, btn.Settings{Budget: least / policy.LearnShare / 2}); c != btn.ClassRankOne || n != 1 ||
		!strings.Contains(w, "one of rank one") {
		t.Errorf("under a deadline: %d components, %s, %s", n, c, w)
	}
}
