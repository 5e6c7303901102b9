package plan

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/families/learned/frobenius"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestWhatNobodyCanCountIsLearnedAtRankOne: where one component over counts is beyond learned.flops, or
// beyond what a deadline is worth, there is an answer all the same, and it says what it is.
func TestWhatNobodyCanCountIsLearnedAtRankOne(t *testing.T) {
	net := wide(t, 40)
	class := func(ctx context.Context, s query.Settings) (btn.Class, int, string) {
		t.Helper()
		s.Method, s.Objective = query.MethodSymmetryCP, query.ObjectiveFrobenius
		assignments, err := Assign(ctx, net, []btn.Demand{{}}, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := assignments[0]
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		return a.Plan.Estimates[0].Parts[0].Class(), a.Plan.Len(), strings.Join(a.Plan.Warnings, " ")
	}
	least := frobenius.Cost(net, frobenius.Settings(query.Settings{Components: 1, Sweeps: 1, Starts: 1}))
	if c, n, _ := class(t.Context(), query.Settings{LearnFlops: 1.01 * least}); c != btn.ClassSymmetryRankOne || n != 1 {
		t.Errorf("just enough: %d components, %s", n, c)
	}
	if c, n, w := class(t.Context(), query.Settings{LearnFlops: 0.99 * least}); c != btn.ClassRankOne || n != 1 ||
		!strings.Contains(w, "one of rank one") {
		t.Errorf("not enough: %d components, %s, %s", n, c, w)
	}
	in := proposal.Until(t.Context(), time.Now().Add(time.Hour))
	if c, n, w := class(in, query.Settings{Budget: least / policy.LearnShare / 2}); c != btn.ClassRankOne || n != 1 ||
		!strings.Contains(w, "one of rank one") {
		t.Errorf("under a deadline: %d components, %s, %s", n, c, w)
	}
}
