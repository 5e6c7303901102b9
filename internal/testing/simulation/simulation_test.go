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
	first     = flag.Uint64("seed", 1, "seed of the first schedule")
	tell      = flag.Bool("tell", false, "print all transcripts")
)

func TestMain(m *testing.M) {
	bus.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	workers.SpareHeap(len(stage.Names())) // one for all schedules, which would else clear theirs
	os.Exit(m.Run())
}

// example is a request with the results of infer.Run.
type example struct {
	request wire.Request
	want    []query.Result
}

// examples returns requests of several kinds, each of several tasks.
var examples = sync.OnceValue(func() (all []example) {
	for seed, s := range []query.Settings{{}, {}, {Method: query.MethodTruncated}, {}} {
		side := 3
		s.Budget = 1e6 // a late job's plan, of many tasks, has no more work for all its time
		if seed == 0 { // one that is larger than messages of 8 KiB
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

// TestSchedules: every stored job has exactly one answer, the right one, in time, whatever is lost or dies on the way.
func TestSchedules(t *testing.T) {
	if *processes > 1 {
		divided(t)
		return
	}
	examples()
	const enough = 3   // transcripts of violations
	const bubbles = 64 // schedules from which two bubbles are made, one for those with small messages
	failed := 0
	tells := func(o outcome) {
		if *tell {
			t.Logf("seed %d:\n%s", o.seed, o.transcript())
		}
		if len(o.wrong) > 0 {
			failed++
			t.Errorf("seed %d (-run TestSchedules -seed %d -schedules 1):\n%s\n\ntranscript:\n%s",
				o.seed, o.seed, strings.Join(o.wrong, "\n"), o.transcript())
		}
	}
	for from := *first; from < *first+uint64(*schedules) && failed < enough; from += bubbles {
		var large, small []uint64
		for seed := from; seed < min(from+bubbles, *first+uint64(*schedules)); seed++ {
			if ratesOf(seed).small {
				small = append(small, seed)
			} else {
				large = append(large, seed)
			}
		}
		simulate(t, large, tells)
		simulate(t, small, tells)
	}
}

// divided has other processes run the schedules, each on one processor: bubbles of one process would share the client library's pool. A
// process ends after some schedules, for ended bubbles leave memory behind, and collecting that takes longer and longer.
func divided(t *testing.T) {
	const most = 1024 // schedules of a process
	var all sync.WaitGroup
	var next atomic.Int64
	for range *processes {
		all.Go(func() {
			for !t.Failed() {
				from := int(next.Add(most)) - most
				if from >= *schedules {
					return
				}
				c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSchedules$", "-test.timeout=0",
					fmt.Sprint("-test.v=", *tell), fmt.Sprint("-tell=", *tell),
					fmt.Sprint("-schedules=", min(most, *schedules-from)), fmt.Sprint("-seed=", *first+uint64(from)))
				c.Env = append(os.Environ(), "GOMAXPROCS=1")
				out, err := c.CombinedOutput()
				if err != nil {
					t.Error(err)
				}
				if err != nil || *tell {
					t.Log(string(out))
				}
			}
		})
	}
	all.Wait()
}

// scripted runs a schedule with fates of its own: play submits jobs and looks at their answers.
func scripted(t *testing.T, s *schedule, play func(ctx context.Context, t *testing.T, c *client.Client)) {
	t.Helper()
	bubble(t, s.small, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		s.begin(ctx, t)
		ended := make(chan struct{})
		go s.disturb(ctx, ended)
		play(ctx, t, s.client)
		if t.Failed() {
			t.Log("transcript:\n" + s.transcript())
		}
		<-ended
		s.end()
	})
}

// TestSweeperSeesPastABusyLane: a job whose partial is lost is started again though reparam does not come to an end with an earlier one.
func TestSweeperSeesPastABusyLane(t *testing.T) {
	several := examples()[3] // of three tasks
	s, lost := &schedule{rates: rates{swept: true}}, false
	s.script = func(e memlog.Event) (f memlog.Fate) {
		f.Lose = e.Kind == memlog.Delivered && e.Consumer == "reparam" && strings.HasSuffix(e.Subject, ".job-busy")
		if e.Kind == memlog.Delivered && e.Stream == "BTN_PARTIAL" && !lost {
			lost = true
			s.soon(func() { s.purge(e.Stream, e.Subject) })
		}
		return f
	}
	scripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
		busy, w := several.request, several.request
		busy.Job, w.Job = "job-busy", "job-lost"
		if _, err := c.Submit(ctx, busy); err != nil {
			t.Error(err)
		}
		if err := s.job(ctx, w, 0, several.want); err != nil {
			t.Error(err)
		}
		if !lost {
			t.Error("no partial was lost")
		}
	})
}

// TestALateTaskEndsByItsDeadline: a job whose task comes late, and whose timer does nothing, is ended by the sweeper.
func TestALateTaskEndsByItsDeadline(t *testing.T) {
	s := &schedule{rates: rates{swept: true}, tries: 5}
	s.script = func(e memlog.Event) (f memlog.Fate) {
		f.Lose = e.Kind == memlog.Delivered &&
			(e.Stream == "BTN_DEADLINE" || e.Stream == "BTN_TASK" && time.Since(s.began) < time.Second)
		return f
	}
	scripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
		w := examples()[1].request // of one task, whose tries leave no marks
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

// TestALateJobWhoseAnswerIsLost: the sweeper ends a late job again whose tasks wait for a timer that went off.
func TestALateJobWhoseAnswerIsLost(t *testing.T) {
	s := &schedule{rates: rates{swept: true}, tries: 5}
	s.script = func(e memlog.Event) memlog.Fate {
		return memlog.Fate{Lose: e.Kind == memlog.Delivered && e.Stream == "BTN_TASK" && time.Since(s.began) < time.Second}
	}
	scripted(t, s, func(ctx context.Context, t *testing.T, c *client.Client) {
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
			s.purge("BTN_ANSWER", wire.AnswerSubject(w.Job)) // before the virtual time goes on, and the sweeper sees it
			if err := s.own.Flush(); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(s.began); took > 30*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// TestAPieceThatSeemsLost: a large model is read though a replica that lags has none of its pieces at first.
func TestAPieceThatSeemsLost(t *testing.T) {
	s, read := &schedule{rates: rates{stale: 1, small: true}}, 0
	s.script = func(e memlog.Event) (f memlog.Fate) {
		if e.Stream == "BTN_BLOB" && e.Kind == memlog.Read {
			read++
			f.Lose = read <= 2
		}
		return f
	}
	scripted(t, s, func(ctx context.Context, t *testing.T, _ *client.Client) {
		large := examples()[0]
		w := large.request
		w.Job = "job-large"
		if err := s.job(ctx, w, 0, large.want); err != nil {
			t.Error(err)
		}
		if took := time.Since(s.began); read < 3 || took > time.Minute {
			t.Errorf("%d reads of blobs, %v", read, took)
		}
	})
}
