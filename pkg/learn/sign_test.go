package learn

import (
	"context"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/reparam"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestExactAnswersOfSignedFactorsSayThatCancellationIsNotMeasured(t *testing.T) {
	for _, low := range []float64{-0.3, 0.3} {
		m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, low, 2, 1}}},
		}}
		for _, cores := range []btn.CoreChoice{btn.CoresAreFactors, btn.CoresAreVariables} {
			net, err := reparam.Build(context.Background(), m, reparam.Options{Cores: cores})
			if err != nil {
				t.Fatal(err)
			}
			job, err := Assign(context.Background(), net, []Query{{}, {Joint: []int{0, 1}}}, btn.Settings{Method: btn.MethodExact}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for q, a := range job.Assignments {
				if warned := slices.Contains(a.Warnings, signedWarning); warned != (low < 0) {
					t.Errorf("entry %v, cores %s, query %d: warnings %q", low, cores, q, a.Warnings)
				}
			}
		}
	}
}
