package infer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// alarm is the model that the service's targets are stated for.
func alarm(tb testing.TB) *factorgraph.Model {
	tb.Helper()
	f, err := os.Open("../../examples/alarm.uai")
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	m, err := uai.Read(f, uai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// observed are n queries with up to most observations each.
func observed(rng *rand.Rand, m *factorgraph.Model, n, most int, marginals bool) []query.Query {
	queries := make([]query.Query, n)
	for q := range queries {
		for _, v := range slices.Sorted(slices.Values(rng.Perm(len(m.Domains))[:rng.IntN(most+1)])) {
			queries[q].Evidence.Hard = append(queries[q].Evidence.Hard,
				factorgraph.Observation{Var: v, Value: rng.IntN(m.Domains[v])})
		}
		queries[q].Marginals = marginals
	}
	return queries
}

// BenchmarkAlarm is a request of fifty queries, from the model to the answers.
func BenchmarkAlarm(b *testing.B) {
	m := alarm(b)
	for _, marginals := range []bool{false, true} {
		r := Request{Job: "b", Model: m,
			Queries: observed(rand.New(rand.NewPCG(1, 1)), m, 50, 5,
				marginals), Settings: query.Settings{}}
		b.Run(fmt.Sprintf("50/marginals=%t", marginals), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if _, err := Run(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*50)/b.Elapsed().Seconds(), "queries/s")
		})
	}
}
