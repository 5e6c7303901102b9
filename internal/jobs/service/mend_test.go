package service_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Streams and consumers that are deleted under load are made again by the workers, which go on: every
// job that is still stored is answered once and right, and clients that wait for a lost job learn of the loss.
func TestDeletedUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("many servers")
	}
	t.Parallel()
	deletions := []string{
		"BTN_MODEL", "BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL", "BTN_ANSWER", "BTN_BLOB", "BTN_DLQ", "BTN_CONTROL",
		"BTN_DEADLINE", "BTN_GRAPH",
	}
	lane := fmt.Sprintf("-%d", wire.Lane(""))
	deletions = append(
		deletions, "BTN_MODEL/reparam"+lane, "BTN_CONTROL/redrive"+lane, "BTN_NETWORK/learn"+lane,
		"BTN_TASK/contract"+lane, "BTN_PARTIAL/aggregate"+lane, "BTN_DEADLINE/deadline",
		"BTN_CONTROL/cancel", "BTN_MODEL/sweep",
	)
	for _, what := range deletions {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			c := quick
			c.SweepAfter = 300 * time.Millisecond
			r.run(c, allStages()...)
			w, p := request(t, "", grid(t, 2, 2, 1), query.Settings{})
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			const jobs = 40
			for i := range jobs {
				w.Job = fmt.Sprintf("job-%d", i)
				r.eventually(
					"submitted "+w.Job,
					func() bool { _, err := r.client.Submit(r.ctx, w); return err == nil },
				)
				if i != jobs/2 {
					continue
				}
				if stream, consumer, is := cut(what); is {
					r.must(r.js.DeleteConsumer(r.ctx, stream, consumer))
				} else {
					r.must(r.js.DeleteStream(r.ctx, what))
				}
			}
			for i := range jobs {
				job := fmt.Sprintf("job-%d", i)
				a, err := r.client.Wait(r.ctx, job)
				// until it is made again
				for ; errors.Is(err, client.ErrNotSetUp); a, err = r.client.Wait(r.ctx, job) {
					time.Sleep(10 * time.Millisecond)
				}
				if errors.Is(err, client.ErrUnknownJob) && what == "BTN_MODEL" {
					continue
				}
				r.must(err)
				want[0].Job = job
				if got, want := plain(t, a.Results), plain(t, want); got != want {
					t.Errorf("%s: %s %+v\ngot\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
				}
			}
			r.works("after")
		})
	}
}

// A stream of large bytes that somebody deleted is made again while nothing large is under way: then large jobs are answered, and
// large models registered.
func TestStoresAreMadeAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 1 << 14}, quick)
	c := quick
	c.SweepAfter = 300 * time.Millisecond
	r.run(c, allStages()...)
	w, p := request(t, "large", grid(t, 12, 20, 1), query.Settings{})
	if b, err := wire.Encode(&w); err != nil || len(b) < 1<<15 {
		t.Fatalf("a model of %d bytes, %v", len(b), err)
	}
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	large := func(job string) {
		t.Helper()
		w.Job = job
		r.eventually("submitted "+job, func() bool { _, err := r.client.Submit(r.ctx, w); return err == nil })
		want[0].Job = job
		a := r.wait(job)
		if got, want := plain(t, a.Results), plain(t, want); got != want {
			t.Errorf("%s: %s %+v\ngot\n%s\nwant\n%s", job, a.Status, a.Error, got, want)
		}
		r.eventually("registered", func() bool {
			_, err := r.client.PutModel(r.ctx, &wire.Graph{Model: w.Model})
			return err == nil
		})
	}
	large("before")
	for _, name := range []string{"BTN_BLOB", "BTN_GRAPH"} {
		r.must(r.js.DeleteStream(r.ctx, name))
		r.eventually("made again", func() bool { _, err := r.js.Stream(r.ctx, name); return err == nil })
	}
	large("after")
}

func cut(what string) (stream, consumer string, is bool) {
	for i := range what {
		if what[i] == '/' {
			return what[:i], what[i+1:], true
		}
	}
	return what, "", false
}

// A worker that finds nothing waits until somebody runs btn setup.
func TestWorkersWaitForSetup(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	names := r.js.StreamNames(r.ctx)
	for name := range names.Name() {
		r.must(r.js.DeleteStream(r.ctx, name))
	}
	r.run(quick, allStages()...)
	c := quick
	c.InMemory = true
	r.must(setUp(r.ctx, r.nc, c))
	r.works("then")
}

// Rebuilt consumers do not replay answered jobs, rebuilt streams keep answers for as long as before, and
// `btn setup` accepts the workers' streams.
func TestMadeAnewWithoutReplay(t *testing.T) {
	t.Parallel()
	setup := quick
	setup.KeepAtLeast, setup.Keep = 7*time.Minute, time.Hour
	r := newRig(t, embedded.Options{NoRedis: true}, setup)
	c := quick
	c.SweepAfter = 50 * time.Millisecond
	stop, _ := r.run(c, allStages()...)
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	const jobs = 300
	for i := range jobs {
		w.Job = fmt.Sprintf("old-%d", i)
		r.submit(w)
	}
	for i := range jobs {
		r.wait(fmt.Sprintf("old-%d", i))
	}
	r.eventually("all are known to be answered", func() bool {
		sweep, err := r.js.Consumer(r.ctx, "BTN_MODEL", "sweep")
		r.must(err)
		info := sweep.CachedInfo()
		return info.NumAckPending == 0 && info.NumPending == 0
	})
	stop()
	w.Job = "waiting"
	r.submit(w)
	for _, what := range []string{"BTN_MODEL/reparam", "BTN_PARTIAL/aggregate"} {
		stream, consumer, _ := cut(what)
		r.must(r.js.DeleteConsumer(r.ctx, stream, laneConsumer(consumer)))
	}
	r.must(r.js.DeleteStream(r.ctx, "BTN_NETWORK"))
	var replays atomic.Int64
	c = c.WithHook(func(s string, subject message.Subject) {
		if s == query.StageReparam && strings.HasPrefix(subject.Job, "old") {
			replays.Add(1)
		}
	})
	began := time.Now()
	r.run(c, allStages()...)
	r.wait("waiting")
	t.Logf("answered %v after the start", time.Since(began))
	r.works("new")
	model, err := r.js.Consumer(r.ctx, "BTN_MODEL", laneConsumer("reparam"))
	r.must(err)
	if n := model.CachedInfo().NumPending; replays.Load() > 0 || n > 0 {
		t.Errorf("%d answered jobs came again, %d wait", replays.Load(), n)
	}
	partial, err := r.js.Consumer(r.ctx, "BTN_PARTIAL", laneConsumer("aggregate"))
	r.must(err)
	if partial.CachedInfo().Config.OptStartTime == nil {
		t.Error("partials of answered jobs come again")
	}
	network, err := r.js.Stream(r.ctx, "BTN_NETWORK")
	r.must(err)
	if keep := network.CachedInfo().Config.Metadata["btn-keep-at-least"]; keep != "420000" {
		t.Errorf("the stream made anew keeps answers for %q ms", keep)
	}
	r.must(setUp(r.ctx, r.nc, setup))
}
