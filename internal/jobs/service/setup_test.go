package service_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

func TestSetupIsIdempotent(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true, Dir: t.TempDir()}, quick)
	sizes := func() (out []int64) {
		for _, name := range []string{"BTN_MODEL", "BTN_TASK", "BTN_ANSWER", "BTN_BLOB"} {
			s, err := r.js.Stream(r.ctx, name)
			r.must(err)
			out = append(out, s.CachedInfo().Config.MaxBytes)
		}
		return out
	}
	before := sizes()
	if slices.Min(before) <= 0 {
		t.Errorf("a stream without a bound: %v", before)
	}
	r.must(setUp(r.ctx, r.nc, quick))
	if after := sizes(); !slices.Equal(before, after) {
		t.Errorf("sizes %v, after a second setup %v", before, after)
	}
	r.run(quick, allStages()...)
	r.works("files")
}

// Lanes have consumers of their own on demand, and jobs find the workers of their lane.
func TestPerLane(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	tenants := map[int]string{} // one for each of two lanes
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		if lane := wire.Lane(name); len(tenants) < 2 || tenants[lane] != "" {
			tenants[lane] = name
		}
	}
	var mu sync.Mutex
	seen := map[int]int{}
	for lane := range tenants {
		c := quick
		c.Lanes = []int{lane}
		r.run(c.WithHook(func(_ string, s message.Subject) {
			if s.Lane != lane {
				t.Errorf("the worker of lane %d got %s", lane, s)
			}
			mu.Lock()
			seen[s.Lane]++
			mu.Unlock()
		}), allStages()...)
	}
	for lane, tenant := range tenants {
		w, _ := request(t, "lane-"+tenant, grid(t, 2, 2, 1), query.Settings{})
		w.Tenant = tenant
		r.submit(w)
		if a := r.wait(w.Job); a.Status != wire.StatusOK || a.Tenant != tenant {
			t.Errorf("lane %d: %s %v", lane, a.Status, a.Error)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 2 {
		t.Errorf("lanes seen: %v", seen)
	}
	one := quick
	one.OneConsumer = true
	r.must(setUp(r.ctx, r.nc, one))
	r.run(quick, allStages()...)
	r.works("one-consumer")
}

func TestRunSaysWhatIsMissing(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c := quick
	c.OneConsumer = true
	r.must(setUp(r.ctx, r.nc, c))
	c.NC, c.Lanes = r.nc, []int{3}
	if err := runWorkers(r.ctx, c, query.StageLearn); err == nil ||
		!strings.Contains(err.Error(), "btn setup") {
		t.Errorf("lanes without consumers: %v", err)
	}
	c.Lanes = []int{16}
	if err := runWorkers(r.ctx, c, query.StageLearn); err == nil ||
		!strings.Contains(err.Error(), "lane 16") {
		t.Errorf("no such lane: %v", err)
	}
	if err := runWorkers(r.ctx, quick, "brewing"); err == nil {
		t.Error("no such stage: no error")
	}
	if err := runWorkers(
		r.ctx, config{settings: settings{URL: "nats://127.0.0.1:1"}}, query.StageLearn,
	); err == nil {
		t.Error("no server: no error")
	}
}

// Run finishes its messages in work, and hands back those not begun.
func TestDrain(t *testing.T) {
	t.Parallel()
	slow := quick
	slow.AckWait = time.Minute // nothing comes back by itself
	r := newRig(t, embedded.Options{NoRedis: true}, slow)
	began := make(chan string, 100)
	var finish sync.WaitGroup
	finish.Add(1)
	c := quick
	c.Concurrency = 2
	stop, _ := r.run(
		c.WithHook(func(_ string, s message.Subject) { began <- s.Job; finish.Wait() }),
		query.StageReparam,
	)
	jobs := []string{"a", "b", "c", "d", "e"}
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	for _, job := range jobs {
		w.Job = job
		r.submit(w)
	}
	first, second := <-began, <-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("stopped with messages in work")
	case <-time.After(100 * time.Millisecond):
	}
	finish.Done()
	<-stopped
	if n := r.messages("BTN_NETWORK"); n != 2 {
		t.Errorf("%d networks after the drain, want those of %s and %s", n, first, second)
	}
	r.run(quick, allStages()...)
	for _, job := range jobs {
		r.wait(job)
	}
}

func TestSecondQueryHitsTheCache(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, quick)
	for _, s := range allStages() {
		r.run(quick, s)
	}
	m := grid(t, 3, 3, 21)
	settings := query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius}
	for i, want := range []string{"miss", "hit", "hit"} {
		w, p := request(t, "cached-"+string(rune('0'+i)), m, settings, observe(make([]int, i)...))
		expected, err := infer.Run(r.ctx, p)
		r.must(err)
		r.submit(w)
		a := r.wait(w.Job)
		if a.Results[0].Cache != want {
			t.Errorf("query %d: cache %s, want %s", i, a.Results[0].Cache, want)
		}
		if got, want := plain(t, a.Results), plain(t, expected); got != want {
			t.Errorf("query %d: got\n%s\nwant\n%s", i, got, want)
		}
	}
	// Another learn-worker, with an empty memory, finds it in Redis; without a Redis it is learned again.
	w, _ := request(t, "cached-3", m, settings, factorgraph.Evidence{})
	r.submit(w)
	if a := r.wait("cached-3"); a.Results[0].Cache != "hit" {
		t.Errorf("cache %s", a.Results[0].Cache)
	}
}

func TestProgressMetricsAndHealth(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c := quick
	c.Metrics = metrics.New()
	if c.Metrics.Ready() == nil {
		t.Error("ready before it runs")
	}
	r.run(c, allStages()...)
	var stages sync.Map
	var contracted atomic.Int64
	stop, err := r.client.Watch("watched", func(p wire.Progress) {
		if p.Done == p.Total {
			stages.Store(p.Stage, true)
		}
		if p.Stage == query.StageContract {
			contracted.Add(1)
		}
	})
	r.must(err)
	defer stop()
	r.must(r.nc.Flush())
	w, _ := request(
		t, "watched", heavy(t), query.Settings{Method: query.MethodExact},
		make([]factorgraph.Evidence, 60)...,
	)
	r.submit(w)
	r.wait("watched")
	for _, s := range allStages() {
		r.eventually(
			"progress of "+string(s), func() bool { _, ok := stages.Load(string(s)); return ok },
		)
	}
	r.must(c.Metrics.Ready())
	families, err := c.Metrics.Registry().Gather()
	r.must(err)
	done := 0.0
	for _, f := range families {
		if f.GetName() != "basetensor_outcomes_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == "done" {
					done += m.GetCounter().GetValue()
				}
			}
		}
	}
	if done < 4 {
		t.Errorf("%v messages done, a job has at least one per stage", done)
	}
	r.must(r.js.DeleteStream(r.ctx, "BTN_ANSWER"))
	if err := c.Metrics.Ready(); err == nil || !strings.Contains(err.Error(), "BTN_ANSWER") {
		t.Errorf("ready without a stream: %v", err)
	}
}

// The sweeper has every job in its hands for a while. That is no progress of the job. Only its process runs, which has no other work.
func TestSweeperTellsNoProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	sweeping := calm
	sweeping.SweepAfter = 6 * sweeping.Heartbeat
	r.run(sweeping, query.StageAggregate)
	var begun atomic.Value
	stop, err := r.client.Watch("swept", func(p wire.Progress) {
		if p.Done == 0 {
			begun.Store(p.Stage)
		}
	})
	r.must(err)
	defer stop()
	r.must(r.nc.Flush())
	w, _ := request(t, "swept", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	time.Sleep(2 * sweeping.SweepAfter)
	if s := begun.Load(); s != nil {
		t.Errorf("a job that nobody works on is begun by %v", s)
	}
	r.run(sweeping, query.StageReparam, query.StageLearn, query.StageContract)
	r.wait("swept")
}

// Streams get the room that the server has.
func TestSetupFitsTheServer(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	for _, name := range []string{
		"BTN_MODEL", "BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL", "BTN_ANSWER", "BTN_BLOB", "BTN_DLQ", "BTN_CONTROL",
		"BTN_DEADLINE", "BTN_GRAPH",
	} {
		r.must(r.js.DeleteStream(r.ctx, name))
	}
	const huge = int64(1) << 60
	c := quick
	c.InMemory, c.MaxBytes = true, huge
	if err := setUp(r.ctx, r.nc, c); err == nil {
		t.Error("an exabyte of memory was reserved")
	}
	// All but 200 MiB of the server's memory is taken: the streams share the rest.
	info, err := r.js.AccountInfo(r.ctx)
	r.must(err)
	taken := r.stack.MemoryLimit() - 200<<20
	t.Logf("limit %d MiB, reserved %d MiB", r.stack.MemoryLimit()>>20, info.ReservedMemory>>20)
	_, err = r.js.CreateStream(
		r.ctx,
		jetstream.StreamConfig{
			Name:     "OTHER",
			Subjects: []string{"other"},
			Storage:  jetstream.MemoryStorage,
			MaxBytes: taken,
		},
	)
	r.must(err)
	c.MaxBytes = 0
	r.must(setUp(r.ctx, r.nc, c))
	r.run(quick, allStages()...)
	r.works("narrow")
}
