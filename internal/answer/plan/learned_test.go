package plan

import (
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestWhatNobodyCanCountIsLearnedAtRankOne: where one component over counts is beyond the budget there is an answer all the same, whose
// components count nothing.
func TestWhatNobodyCanCountIsLearnedAtRankOne(t *testing.T) {
	for budget, levels := range map[float64]int{1e10: 2, 1e5: 1} {
		s := query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Budget: budget}
		assignments, err := Assign(t.Context(), wide(t, 40), []btn.Demand{{}}, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := assignments[0]
		if a.Error != nil {
			t.Fatal(a.Error.Message)
		}
		if got := a.Plan.Estimates[0].Parts[0].(*closed.SymmetryRankOne).Frame.Levels.D; got != levels {
			t.Errorf("%g flops: %d levels, want %d", budget, got, levels)
		}
	}
}
