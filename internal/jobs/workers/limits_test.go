package workers

import (
	"fmt"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A task waits until its time, but for a time that no learn-worker writes.
func TestLater(t *testing.T) {
	now := time.Now()
	for header, want := range map[string][2]time.Duration{
		"":                    {0, 0},
		"soon":                {0, 0},
		"9223372036854775807": {0, 0},
		fmt.Sprint(now.Add(48 * time.Hour).UnixMilli()):  {0, 0},
		fmt.Sprint(now.Add(5 * time.Hour).UnixMilli()):   {longestBeginPause, longestBeginPause},
		fmt.Sprint(now.Add(5 * time.Minute).UnixMilli()): {time.Minute, 5 * time.Minute},
	} {
		d := &bus.Delivered{Msg: &nats.Msg{Header: nats.Header{headerBegin: {header}}}, Stored: now}
		if got := pauseUntilBegin(d); got < want[0] || got > want[1] {
			t.Errorf("%q: in %v, want from %v to %v", header, got, want[0], want[1])
		}
	}
}

// BenchmarkRefusal is the time between the decoding of a request and its refusal: its digest, which
// the answer needs, and its bounds.
func BenchmarkRefusal(b *testing.B) {
	model := &wire.Model{Domains: make([]int, 37)}
	for v := range model.Domains {
		model.Domains[v] = 2
	}
	tenants, err := admission.Open("", nil)
	if err != nil {
		b.Fatal(err)
	}
	many := make([]query.Query, 100_000)
	for i := range many {
		for v := range 5 {
			many[i].Evidence.Hard = append(many[i].Evidence.Hard, factorgraph.Observation{Var: v})
		}
	}
	for name, m := range map[string]*wire.Request{
		"memory": {Queries: many, Settings: query.Settings{Memory: 1 << 50}},
		"components": {Queries: many[:20_000], Settings: query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 64,
		}},
		"budget": {Queries: many[:1], Settings: query.Settings{Method: query.MethodTruncated, Budget: 1e15}},
	} {
		m.Job, m.Model = "a", model
		b.Run(name, func(b *testing.B) {
			data, err := wire.Encode(m)
			if err != nil {
				b.Fatal(err)
			}
			d := &hop.Message{Data: data, Raw: &bus.Delivered{}}
			w := &Reparam{storedJobs: storedJobs{&hop.Loop{Jobs: hop.Jobs{Bus: &bus.Bus{}}}}, host: &Host{Settings: Settings{Tenants: tenants}}}
			var decoding time.Duration
			for b.Loop() {
				began := time.Now()
				var m wire.Request
				if err := d.Decode(&m); err != nil {
					b.Fatal(err)
				}
				decoding += time.Since(began)
				if _, err := m.Digest(); err != nil {
					b.Fatal(err)
				}
				if err := w.admitRequest(d, &m); fault.CodeOf(err) != fault.OverBudget {
					b.Fatal(err)
				}
			}
			after := b.Elapsed() - decoding
			b.ReportMetric(float64(len(data))/(1<<20), "MiB")
			b.ReportMetric(float64(decoding)/float64(b.N)/1e6, "ms-decoding")
			b.ReportMetric(float64(after)/float64(b.N)/1e6, "ms-after")
		})
	}
}
