package infer

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/uai"
)

func BenchmarkGradients(b *testing.B) {
	f, _ := os.Open("../../examples/alarm.uai")
	m, err := uai.Read(f, uai.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	_ = oracle.Z
	var qs []query.Query
	for range 100 {
		ob := map[int]int{}
		for v, d := range m.Domains {
			if rng.IntN(3) > 0 {
				ob[v] = rng.IntN(d)
			}
		}
		qs = append(qs, query.Query{Evidence: factorgraph.Observe(ob), Gradients: true, Weight: 1})
	}
	for b.Loop() {
		if _, err := Run(context.Background(), Request{Job: "b", Model: m, Queries: qs}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
