package load

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/lab/simulate"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Hops and messages that were put into latencies and processor time are found again, and their simulation has the latency
// that was measured.
func TestMeasuredIsWhatTheSimulationNeeds(t *testing.T) {
	const hop, message, jobs = 0.2, 0.03, 100
	c := small(t)
	c.Rate, c.WarmUp, c.Duration = jobs, 0, time.Second
	c = c.withDefaults()
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	o := &Outcome{config: c}
	p := newPlanner(c)
	for range jobs {
		j, err := p.job()
		if err != nil {
			t.Fatal(err)
		}
		results, err := infer.Run(t.Context(), infer.Request{
			Job:     j.message.Job,
			Model:   c.Models[0].Graph,
			Queries: make([]query.Query, 2),
		})

		if err != nil {
			t.Fatal(err)
		}
		rec := &record{kept: true, job: j, state: answered, timings: [4]float64{1, 2, 3, 4}, queries: 2,
			answer: &wire.Answer{Job: j.message.Job, Digest: wire.Digest(nil), Status: wire.StatusOK, Results: results}}
		o.records = append(o.records, rec)
	}
	hops, ends := simulate.Path()
	publisher := publish(o.records[0])
	for _, rec := range o.records {
		rec.done = ms(10 + publisher + hop*float64(hops) + message*float64(ends))
	}
	used := 10 + publisher + message*simulate.MessagesPerJob(1) // processor time per job
	o.cpu = ms(jobs * used)
	m, err := o.Measured(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slip := math.Abs(m.Publisher - publisher) // measured twice, on a machine that does other things as well
	if math.Abs(m.Hop-hop) > 0.001+slip || math.Abs(m.Message-message) > 0.001+slip || len(m.Chunks) != 1 ||
		m.Chunks[0] != 1 {
		t.Errorf("hop %v, message %v, chunks %v, want %v, %v, 1", m.Hop, m.Message, m.Chunks, hop, message)
	}
	if m.Learn[0] != 2 || m.Contract[0] != 3 || math.Abs(m.CPU-used) > 0.001 || m.Rate != jobs {
		t.Errorf("%+v", m)
	}
	r, err := simulate.Stream(t.Context(), m, simulate.Config{Outstanding: 1, Jobs: 50, Cores: 2, Shared: true})
	want := o.records[0].latency()
	if err != nil || math.Abs(r.P50-want) > 0.05*want+slip {
		t.Errorf("simulated %v ms, measured %v (%v)", r.P50, want, err)
	}
}

// Stages that by their clocks took longer than all the processor time there was: other processes
// were in the way.
func TestMeasuredOnABusyMachineIsRefused(t *testing.T) {
	c := small(t)
	c.Rate, c.WarmUp, c.Duration = 10, 0, time.Second
	c = c.withDefaults()
	j, err := newPlanner(c).job()
	if err != nil {
		t.Fatal(err)
	}
	rec := &record{
		kept:    true,
		job:     j,
		state:   answered,
		done:    999 * time.Millisecond,
		timings: [4]float64{9, 9, 9, 9},
		answer:  &wire.Answer{},
	}
	o := &Outcome{config: c, records: []*record{rec}, cpu: 10 * time.Millisecond}
	if _, err := o.Measured(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "while the machine does nothing else") {
		t.Errorf("%v", err)
	}
	o.records[0].answer = nil
	if _, err := o.Measured(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no answered job was kept") {
		t.Errorf("%v", err)
	}
}

func TestThinKeepsTheDistribution(t *testing.T) {
	list := make([]float64, 10_000)
	for i := range list {
		list[i] = float64((i * 7919) % 10_000)
	}
	kept := thin(list)
	if len(kept) != mostSamples || quantile(kept, 0.5) < 4900 || quantile(kept, 0.5) > 5100 || kept[0] > 20 ||
		kept[mostSamples-1] < 9980 {
		t.Errorf("%d kept, %v to %v", len(kept), kept[0], kept[len(kept)-1])
	}
}
