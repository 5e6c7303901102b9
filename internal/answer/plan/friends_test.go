package plan_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/query"
)

// BenchmarkPlanFriends: the plan of friends and smokers, of whom a tenth is known, is found in time linear in
// the people.
func BenchmarkPlanFriends(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		o := generate.DefaultFriends(n)
		m, err := o.Model()
		if err != nil {
			b.Fatal(err)
		}
		ev, err := o.DrawEvidence(0.1, 1)
		if err != nil {
			b.Fatal(err)
		}
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(b.Name(), func(b *testing.B) {
			for b.Loop() {
				a, err := plan.Assign(context.Background(), net, []btn.Demand{{Evidence: ev}}, query.Settings{}, nil, nil)
				if err != nil || a[0].Error != nil {
					b.Fatal(err, a[0].Error)
				}
			}
		})
	}
}
