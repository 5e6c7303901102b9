package simulation

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

var (
	schedules = flag.Int("schedules", 40, "number of schedules")
	processes = flag.Int("processes", 1, "number of processes that run them; of several each has one processor")
	firstSeed = flag.Uint64("seed", 1, "seed of the first schedule")
	tellAll   = flag.Bool("tell", false, "print all transcripts")
)

// TestMain gives the workers a clock that faults can move, and one spare heap for all schedules, instead of one for each.
func TestMain(m *testing.M) {
	bus.Clock = func() time.Time { return time.Now().Add(time.Duration(clockOffset.Load())) }
	workers.SpareHeap(len(stage.Names()))
	os.Exit(m.Run())
}

// example is a request with the results of infer.Run.
type example struct {
	request wire.Request
	want    []query.Result
}

// examples returns four requests about grids, which have one to three queries. The first is larger than 8 KiB, the others are small.
var examples = sync.OnceValue(func() (all []example) {
	for seed, s := range []query.Settings{{}, {}, {Method: query.MethodTruncated}, {}} {
		side := 3
		s.Budget = 1e6 // a late job's plan, of many tasks, has no more work for all its time
		if seed == 0 {
			side, s.Budget = 12, 1e8
		}
		m, err := generate.Grid(side, side, generate.Ising{Delta: 0.5, Seed: uint64(seed)})
		if err != nil {
			panic(err)
		}
		body, err := wire.NewModel(m)
		if err != nil {
			panic(err)
		}
		var queries []query.Query
		for i := range max(1, seed) {
			queries = append(queries, query.Query{Evidence: factorgraph.Observe(map[int]int{i: i % 2}), Marginals: i == 1})
		}
		want, err := infer.Run(context.Background(), infer.Request{Model: m, Settings: s, Queries: queries})
		if err != nil {
			panic(err)
		}
		all = append(all, example{wire.Request{Model: body, Settings: s, Queries: queries}, want})
	}
	return all
})

// onceStuck lists seeds of schedules that once did not end: they are run in any case. 205: a first answer that waited for the server held a
// mutex for which a timer waited.
var onceStuck = []uint64{205}

// TestSchedules: every stored job has exactly one answer, the right one, in time, whatever is lost or dies on the way.
func TestSchedules(t *testing.T) {
	if *processes > 1 {
		runInProcesses(t)
		return
	}
	examples()          // before virtual time begins
	const maxFailed = 3 // schedules with violations after which the test ends
	const batch = 64    // schedules from which two bubbles are made, one for those with small messages
	failed := 0
	report := func(o outcome) {
		if *tellAll {
			t.Logf("seed %d:\n%s", o.seed, o.transcript())
		}
		if len(o.violations) > 0 {
			failed++
			t.Errorf("seed %d (-run TestSchedules -seed %d -schedules 1):\n%s\n\ntranscript:\n%s",
				o.seed, o.seed, strings.Join(o.violations, "\n"), o.transcript())
		}
	}
	for _, seed := range onceStuck {
		simulate(t, []uint64{seed}, report)
	}
	end := *firstSeed + uint64(*schedules)
	for start := *firstSeed; start < end && failed < maxFailed; start += batch {
		var large, small []uint64 // seeds by the size of messages
		for seed := start; seed < min(start+batch, end); seed++ {
			if ratesOf(seed).isSmall {
				small = append(small, seed)
			} else {
				large = append(large, seed)
			}
		}
		simulate(t, large, report)
		simulate(t, small, report)
	}
}

// runInProcesses has several processes run the schedules, each on one processor: bubbles of one process would share the client library's
// pool. A process ends after some schedules and another follows, since ended bubbles leave memory behind, and collecting that takes ever
// longer.
func runInProcesses(t *testing.T) {
	const perProcess = 1024 // schedules of a process
	var runners sync.WaitGroup
	var next atomic.Int64
	for range *processes {
		runners.Go(func() {
			for !t.Failed() {
				start := int(next.Add(perProcess)) - perProcess
				if start >= *schedules {
					return
				}
				c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSchedules$", "-test.timeout=0",
					fmt.Sprint("-test.v=", *tellAll), fmt.Sprint("-tell=", *tellAll),
					fmt.Sprint("-schedules=", min(perProcess, *schedules-start)), fmt.Sprint("-seed=", *firstSeed+uint64(start)))
				c.Env = append(os.Environ(), "GOMAXPROCS=1")
				out, err := c.CombinedOutput()
				if err != nil {
					t.Error(err)
				}
				if err != nil || *tellAll {
					t.Log(string(out))
				}
			}
		})
	}
	runners.Wait()
}

// runScripted runs a schedule whose script decides the fates of events. play submits jobs and checks their answers.
func runScripted(t *testing.T, s *schedule, play func(ctx context.Context, t *testing.T, c *client.Client)) {
	t.Helper()
	runInBubble(t, s.isSmall, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		s.begin(ctx, t)
		ended := make(chan struct{})
		go s.runActions(ctx, ended)
		play(ctx, t, s.client)
		if t.Failed() {
			t.Log("transcript:\n" + s.transcript())
		}
		<-ended
		s.end()
	})
}

// TestSweeperSeesPastABusyLane: the sweeper starts a job again whose partial is lost, even while an earlier job never gets through reparam.
func TestSweeperSeesPastABusyLane(t *testing.T) {
	threeTasks := examples()[3]
	s, isLost := &schedule{rates: rates{isSwept: true}}, false
	s.script = func(e memlog.Event) (f memlog.Fate) {
		f.Lose = e.Kind == memlog.Delivered && e.Consumer == "reparam" && strings.HasSuffix(e.Subject, ".job-busy")

		// The first partial vanishes.
		if e.Kind == memlog.Delivered && e.Stream == "BTN_PARTIAL" && !isLost {
			isLost = true
			s.doSoon(func() { s.purge(e.Stream, e.Subject) })
		}
		return f
	}
	runScripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
		busy, w := threeTasks.request, threeTasks.request
		busy.Job, w.Job = "job-busy", "job-lost"
		if _, err := c.Submit(ctx, busy); err != nil {
			t.Error(err)
		}
		if err := s.runJob(ctx, w, 0, threeTasks.want); err != nil {
			t.Error(err)
		}
		if !isLost {
			t.Error("no partial was lost")
		}
	})
}

// TestALateTaskEndsByItsDeadline: the sweeper ends a job whose tasks are not delivered in its first second, and whose deadline's message is
// never delivered.
func TestALateTaskEndsByItsDeadline(t *testing.T) {
	s := &schedule{rates: rates{isSwept: true}, maxDeliveries: 5}
	s.script = func(e memlog.Event) (f memlog.Fate) {
		f.Lose = e.Kind == memlog.Delivered &&
			(e.Stream == "BTN_DEADLINE" || e.Stream == "BTN_TASK" && time.Since(s.began) < time.Second)
		return f
	}
	runScripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
		w := examples()[1].request // of one task, whose failed deliveries leave nothing behind
		w.Job, w.DeadlineMS = "job-late", 500
		if _, err := c.Submit(ctx, w); err != nil {
			t.Error(err)
			return
		}
		a, err := c.Wait(ctx, w.Job)
		if err != nil || a.Status != wire.StatusDeadline {
			t.Errorf("%+v, %v", a, err)
		}
		if took := time.Since(s.began); took > 30*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestALateJobWhoseAnswerIsLost: if the answer of a job that ended by its deadline is lost, the sweeper ends the job again.
func TestALateJobWhoseAnswerIsLost(t *testing.T) {
	s := &schedule{rates: rates{isSwept: true}, maxDeliveries: 5}
	s.script = func(e memlog.Event) memlog.Fate {
		return memlog.Fate{Lose: e.Kind == memlog.Delivered && e.Stream == "BTN_TASK" && time.Since(s.began) < time.Second}
	}
	runScripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
		w := examples()[1].request
		w.Job, w.DeadlineMS = "job-late", 500
		if _, err := c.Submit(ctx, w); err != nil {
			t.Error(err)
			return
		}
		for range 2 {
			a, err := c.Wait(ctx, w.Job)
			if err != nil || a.Status != wire.StatusDeadline || a.Error.Stage != query.StageAggregate {
				t.Errorf("%+v, %v", a, err)
				return
			}

			// Lose the answer before virtual time goes on and the sweeper sees it.
			s.purge("BTN_ANSWER", wire.AnswerSubject(w.Job))
			if err := s.connection.Flush(); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(s.began); took > 30*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestAPieceThatSeemsLost: a large model, which is stored in pieces, is read even if the first two reads find no piece, as on a replica
// that lags.
func TestAPieceThatSeemsLost(t *testing.T) {
	s, reads := &schedule{rates: rates{stale: 1, isSmall: true}}, 0
	s.script = func(e memlog.Event) (f memlog.Fate) {
		if e.Stream == "BTN_BLOB" && e.Kind == memlog.Read {
			reads++
			f.Lose = reads <= 2
		}
		return f
	}
	runScripted(t, s, func(ctx context.Context, t *testing.T, _ *client.Client) {
		large := examples()[0]
		w := large.request
		w.Job = "job-large"
		if err := s.runJob(ctx, w, 0, large.want); err != nil {
			t.Error(err)
		}
		if took := time.Since(s.began); reads < 3 || took > time.Minute {
			t.Errorf("%d reads of blobs, %v", reads, took)
		}
	})
}
