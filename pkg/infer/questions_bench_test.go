package infer_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// timed is a benchmark with the processor time of a round as a metric.
func timed(b *testing.B, round func()) {
	b.ReportAllocs()
	before := cputime.OfProcess()
	n := 0
	for b.Loop() {
		round()
		n++
	}
	b.ReportMetric(float64((cputime.OfProcess()-before).Milliseconds())/float64(n), "cpu-ms/op")
}

// asks is a benchmark of one query; its answer may be estimated.
func asks(b *testing.B, name string, m *factorgraph.Model, q query.Query) {
	b.Run(name, func(b *testing.B) {
		var lnZ float64
		timed(b, func() {
			r, err := infer.Run(context.Background(), infer.Request{Job: "b", Model: m, Queries: []query.Query{q}})
			if err != nil || r[0].Status != query.StatusOK {
				b.Fatalf("%v %+v", err, r)
			}
			lnZ = *r[0].LogZ
		})
		b.ReportMetric(lnZ, "lnZ")
	})
}

// BenchmarkFriends is friends and smokers, a tenth of the people known: reading the native file, ln Z, and ln Z with all marginals.
func BenchmarkFriends(b *testing.B) {
	for n := 1000; n <= 1_000_000; n *= 10 {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			if n > 10_000 && testing.Short() {
				b.Skip("up to 2 GiB and ten seconds a round")
			}
			o := generate.DefaultFriends(n)
			m, err := o.Model()
			if err != nil {
				b.Fatal(err)
			}
			e, err := o.DrawEvidence(0.1, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.Run("read", func(b *testing.B) {
				var file bytes.Buffer
				if err := modeljson.Encode(&file, m); err != nil {
					b.Fatal(err)
				}
				timed(b, func() {
					if _, err := modeljson.Decode(bytes.NewReader(file.Bytes()), modeljson.Limits{}); err != nil {
						b.Fatal(err)
					}
				})
				b.ReportMetric(float64(file.Len())/1e6, "MB")
			})
			asks(b, "lnZ", m, query.Query{Evidence: e})
			asks(b, "marginals", m, query.Query{Evidence: e, Marginals: true})
		})
	}
}

// BenchmarkQuestions is the most probable explanation and samples beside all marginals, on reference models.
func BenchmarkQuestions(b *testing.B) {
	for _, name := range explained {
		b.Run(name, func(b *testing.B) {
			m, e := referenceModel(b, name)
			asks(b, "marginals", m, query.Query{Evidence: e, Marginals: true})
			asks(b, "mpe", m, query.Query{Evidence: e, MPE: true})
			asks(b, "samples", m, query.Query{Evidence: e, Samples: 1000, Seed: 1})
		})
	}
}
