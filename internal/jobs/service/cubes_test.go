package service_test

// A search in cubes: contract-workers share it, die in the middle of it, and remember its circuits.

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// clauses are so many that a search with little work goes on in cubes.
func clauses(t *testing.T) *factorgraph.Model {
	t.Helper()
	m, err := generate.Constraints(generate.ConstraintOptions{Variables: 48, Constraints: 96, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// inCubes are settings under which a search may continue in cubes.
var inCubes = query.Settings{Method: query.MethodCircuit, Budget: 60 << 10}

// TestCubesHaveTheSameBits: one, two and three contract-workers give the answer of four functions in a row.
func TestCubesHaveTheSameBits(t *testing.T) {
	t.Parallel()
	w, p := request(t, "cubes", clauses(t), inCubes, factorgraph.Evidence{}, factorgraph.Observe(map[int]int{3: 1}))
	w.Queries[0].Marginals, p.Queries[0].Marginals = true, true
	want, err := infer.Run(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 3} {
		r := newRig(t, embedded.Options{NoRedis: true}, calm)
		for _, s := range allStages() {
			if s != query.StageContract {
				r.run(calm, s)
			}
		}
		for range workers {
			r.run(calm, query.StageContract)
		}
		r.submit(w)
		if got, want := plain(t, r.wait("cubes").Results), plain(t, want); got != want {
			t.Errorf("%d contract-workers: got\n%s\nwant\n%s", workers, got, want)
		}
		if want[0].Components < 8 || r.messages("BTN_PARTIAL") < 8 {
			t.Errorf("%d cubes in %d messages", want[0].Components, r.messages("BTN_PARTIAL"))
		}
	}
}

// TestCubeOfAKilledWorker: another one takes its cube.
func TestCubeOfAKilledWorker(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	for _, s := range allStages() {
		if s != query.StageContract {
			r.run(quick, s)
		}
	}
	w, p := request(t, "cubes", clauses(t), inCubes, factorgraph.Evidence{})
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	began, die := make(chan struct{}), make(chan struct{})
	cubes := atomic.Int32{}
	_, kill := r.run(quick.WithHook(func(string, message.Subject) {
		if cubes.Add(1) == 3 { // it has answered some
			close(began)
			<-die
		}
	}), query.StageContract)
	r.submit(w)
	<-began
	go func() { time.Sleep(time.Millisecond); close(die) }()
	kill()
	r.run(quick, query.StageContract)
	if got, want := plain(t, r.wait("cubes").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if n := r.messages("BTN_ANSWER"); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// TestDeadlineInTheMiddleOfCubes: the answer states the number of contracted cubes.
func TestDeadlineInTheMiddleOfCubes(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	for _, s := range allStages() {
		if s != query.StageContract {
			r.run(calm, s)
		}
	}
	w, p := request(t, "late", clauses(t), inCubes, factorgraph.Evidence{})
	whole, err := infer.Run(r.ctx, p)
	r.must(err)
	ended, cubes := make(chan struct{}), atomic.Int32{}
	r.run(calm.WithHook(func(string, message.Subject) {
		if cubes.Add(1) > 3 {
			<-ended
		}
	}), query.StageContract)
	digest := r.submit(w)
	r.eventually("three cubes are contracted", func() bool { return r.messages("BTN_PARTIAL") == 3 })
	past := time.Now().Add(-time.Minute).UnixMilli()
	r.send(message.DeadlineSubject(wire.Lane(""), "late"), &wire.Deadline{Job: "late", Digest: digest, Time: past})
	r.failed("late", wire.StatusDeadline, fault.Deadline, fmt.Sprintf("with 3 of %d tasks contracted", whole[0].Components))
	close(ended)
}

// TestCubesAreRemembered: the second query makes circuits; other contract-workers evaluate the circuits of all cubes under other
// evidence, and search nothing.
func TestCubesAreRemembered(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	m := clauses(t)
	for _, s := range allStages() {
		if s != query.StageContract {
			r.run(calm, s)
		}
	}
	wants := map[string]float64{} // ln Z in one process, by evidence
	// ask returns the answer under evidence, with the numbers of cache hits and misses of circuits.
	ask := func(job string, e factorgraph.Evidence) (result query.Result, hits, misses float64) {
		c := calm
		c.Metrics = metrics.New()
		stop, _ := r.run(c, query.StageContract)
		w, p := request(t, job, m, inCubes, e)
		r.submit(w)
		a := r.wait(job)
		if a.Status != wire.StatusOK {
			t.Fatalf("%s: %v", job, a.Error)
		}
		want, known := wants[fmt.Sprint(e)]
		if !known {
			results, err := infer.Run(r.ctx, p)
			r.must(err)
			want = *results[0].LogZ
			wants[fmt.Sprint(e)] = want
		}
		if off := *a.Results[0].LogZ - want; !(off < 1e-11 && off > -1e-11) {
			t.Errorf("%s: ln Z = %v, %v in one process", job, *a.Results[0].LogZ, want)
		}
		stop()
		const kind = "circuit"
		return a.Results[0], max(r.sample(c.Metrics, "basetensor_cache_hits_total", kind, "redis"), 0),
			max(r.sample(c.Metrics, "basetensor_cache_misses_total", kind), 0)
	}

	first, hits, misses := ask("first", factorgraph.Evidence{})
	n := float64(first.Components)
	if hits != 0 || misses != 0 {
		t.Errorf("at first, when cubes are counted: %v hits, %v misses of %v", hits, misses, n)
	}
	for try := 1; ; try++ { // a busy machine may have forgotten the plan: then cubes are counted again
		_, hits, misses := ask(fmt.Sprint("second", try), factorgraph.Evidence{})
		if hits == 0 && misses == n {
			break
		}
		if try == 5 || misses != 0 {
			t.Fatalf("when circuits are made: %v hits, %v misses of %v", hits, misses, n)
		}
	}
	for job, e := range map[string]factorgraph.Evidence{
		"again": {}, "observed": factorgraph.Observe(map[int]int{3: 1, 17: 0}), "otherwise": factorgraph.Observe(map[int]int{3: 0, 40: 1}),
	} {
		for try := 1; ; try++ { // a busy machine works on a task twice, and both count
			got, hits, misses := ask(fmt.Sprint(job, try), e)
			if hits == n && misses == 0 && got.Cache == btn.CacheHit {
				break
			}
			if try == 5 {
				t.Errorf("%s: %v hits, %v misses of %v, the plan is a %s", job, hits, misses, n, got.Cache)
				break
			}
		}
	}
}
