package service_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// An accepted job finds room for its answer: jobs are refused before the stream of answers is full, and
// one that was under way meanwhile waits for room and is answered.
func TestFullAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	answers, err := r.js.Stream(r.ctx, "BTN_ANSWER")
	r.must(err)
	c := answers.CachedInfo().Config
	c.MaxBytes = 20_000
	_, err = r.js.UpdateStream(r.ctx, c)
	r.must(err)
	w, p := request(t, "early", grid(t, 2, 2, 1), query.Settings{})
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	r.submit(w)
	fill := func(from, to uint64) {
		for i := from; i < to; i++ {
			b, err := wire.Encode(&wire.Answer{
				Job:    fmt.Sprintf("old-%d", i),
				Digest: wire.Digest(nil),
				Status: wire.StatusError,
				Error:  &query.ErrorInfo{Code: fault.Internal, Message: "given up", Stage: "test"},
			})
			r.must(err)
			if _, err := r.js.Publish(
				r.ctx, wire.AnswerSubject(fmt.Sprintf("old-%d", i)), b,
			); err != nil {
				return // full
			}
			if info, err := answers.Info(r.ctx); err != nil || to < 1000 &&
				info.State.Bytes > 16_000 {
				r.must(err)
				return
			}
		}
	}
	fill(0, 999)
	other, err := client.New(r.nc, client.Options{})
	r.must(err)
	w.Job = "late"
	if _, err := other.Submit(r.ctx, w); !errors.Is(err, client.ErrFull) ||
		errors.Is(err, client.ErrBusy) {
		t.Errorf("submitted to nearly full answers: %v", err)
	}
	fill(1000, 10_000)
	r.run(quick, allStages()...)
	r.eventually("the early job's partial", func() bool { return r.messages("BTN_PARTIAL") == 1 })
	time.Sleep(300 * time.Millisecond)
	if _, err := r.client.Answer(r.ctx, "early"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("an answer in a full stream: %v", err)
	}
	r.must(answers.Purge(r.ctx))
	if got, want := plain(t, r.wait("early").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r.eventually("room", func() bool { _, err := other.Submit(r.ctx, w); return err == nil })
	r.wait("late")
}
