package service_test

import (
	"context"
	"fmt"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A job of almost no work: the pipeline's own cost. One at a time for the latency, many for the
// throughput; signed is in memory, with keys.
func BenchmarkTrivialJob(b *testing.B) {
	for _, storage := range []string{"memory", "signed", "files"} {
		b.Run(storage, func(b *testing.B) {
			o := embedded.Options{}
			if storage == "files" {
				o.Dir = b.TempDir()
			}
			s, err := embedded.Start(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var config pipeline.Config
			if storage == "signed" {
				config.MessageKeys = keyFile(b, "", 1)
			}
			go s.Run(context.WithoutCancel(b.Context()), config)
			nc, err := s.Connect("bench")
			if err != nil {
				b.Fatal(err)
			}
			c, err := client.New(nc, client.Options{MessageKeys: config.MessageKeys})
			if err != nil {
				b.Fatal(err)
			}
			m, err := generate.Grid(2, 2, generate.Ising{Delta: 0.5})
			if err != nil {
				b.Fatal(err)
			}
			body, err := wire.NewModel(m)
			if err != nil {
				b.Fatal(err)
			}
			var id atomic.Int64
			job := func(b *testing.B) time.Duration {
				began := time.Now()
				w := wire.Request{
					Job:      fmt.Sprintf("b%d", id.Add(1)),
					Model:    body,
					Queries:  []query.Query{{}},
					Settings: query.Settings{Seed: 1},
				}
				if _, err := c.Submit(b.Context(), w); err != nil {
					b.Error(err)
				}
				if _, err := c.Wait(b.Context(), w.Job); err != nil {
					b.Error(err)
				}
				return time.Since(began)
			}
			b.Run("one", func(b *testing.B) {
				var took []time.Duration
				for range b.N {
					took = append(took, job(b))
				}
				sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
				b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			})
			b.Run("many", func(b *testing.B) {
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						job(b)
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
		})
	}
}
