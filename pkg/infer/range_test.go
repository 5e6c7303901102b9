package infer

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestTablesWhoseSumsOverflow: sums of two of these entries are beyond float64. Infinite entries went to an eigenvalue routine
// that never came back, neither at a deadline nor when cancelled.
func TestTablesWhoseSumsOverflow(t *testing.T) {
	data := []float64{1.7e308, 1.1e308, 0.9e308, 1.6e308, 1.2e308, 1.0e308, 1.5e308, 1.3e308}
	m := &factorgraph.Model{
		Domains: []int{2, 2, 2},
		Factors: []factorgraph.Factor{{Scope: []int{0, 1, 2}, Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data}}},
	}
	want := 0.0
	for _, x := range data {
		want += x / 1e308
	}
	want = math.Log(want) + 308*math.Ln10
	for _, method := range []btn.Method{btn.MethodSymmetryCP, btn.MethodExact, btn.MethodTruncated} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		results, err := Run(ctx, Request{Job: "t", Model: m, Queries: []Query{{}}, Settings: btn.Settings{Method: method}}, nil)
		cancel()
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if r := results[0]; r.Status != "ok" || !(math.Abs(*r.LogZ-want) <= exactTolerance*want) {
			t.Errorf("%s: %+v, want %v", method, r, want)
		}
	}
}
