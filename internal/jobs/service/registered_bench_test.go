package service_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Alarm asked by value and by digest, as a job and as a request, one query and fifty: the median of one
// at a time, reparam-worker's share of it, and jobs per second of many.
func BenchmarkAlarm(b *testing.B) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	s, err := embedded.Start(b.Context(), embedded.Options{})
	must(err)
	defer s.Close()
	go s.Run(context.WithoutCancel(b.Context()), pipeline.Config{})
	nc, err := s.Connect("bench")
	must(err)
	c, err := client.New(nc, client.Options{})
	must(err)
	f, err := os.Open("../../../examples/alarm.uai")
	must(err)
	defer f.Close()
	m, err := uai.Read(f, uai.Limits{})
	must(err)
	g, err := wire.NewGraph(m)
	must(err)
	digest, err := c.PutModel(b.Context(), g)
	must(err)
	var id atomic.Int64
	for _, queries := range []int{1, 50} {
		for _, by := range []string{"value", "digest"} {
			for _, way := range []string{"job", "request"} {
				ask := func() (took time.Duration, reparam float64) {
					n := id.Add(1)
					w := wire.Request{
						Job:        fmt.Sprintf("b%d", n),
						DeadlineMS: 30000,
						Queries:    make([]query.Query, queries),
					}
					for q := range w.Queries {
						w.Queries[q].Evidence = factorgraph.Evidence{
							Hard: []factorgraph.Observation{{Var: (int(n) + q) % 37}},
						}
					}
					if by == "digest" {
						w.ModelDigest = digest
					} else {
						w.Model = g.Model
					}
					began := time.Now()
					var a *wire.Answer
					var err error
					if way == "request" {
						a, err = c.Infer(b.Context(), w)
					} else if _, err = c.Submit(b.Context(), w); err == nil {
						a, err = c.Wait(b.Context(), w.Job)
					}
					if err != nil || a.Status != wire.StatusOK {
						b.Error(a, err)
						return 0, 0
					}
					return time.Since(began), a.Results[0].TimingsMS[query.StageReparam]
				}
				b.Run(fmt.Sprintf("%d/%s/%s", queries, by, way), func(b *testing.B) {
					b.Run("one", func(b *testing.B) {
						var took []time.Duration
						var reparam []float64
						for range b.N {
							t, r := ask()
							took, reparam = append(took, t), append(reparam, r)
						}
						slices.Sort(took)
						slices.Sort(reparam)
						b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
						b.ReportMetric(1000*reparam[len(reparam)/2], "reparam-µs")
					})
					b.Run("many", func(b *testing.B) {
						b.SetParallelism(16)
						b.RunParallel(func(pb *testing.PB) {
							for pb.Next() {
								ask()
							}
						})
						b.ReportMetric(float64(b.N*queries)/b.Elapsed().Seconds(), "queries/s")
					})
				})
			}
		}
	}
}
