package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A client that waits in vain learns why: nobody works, or not at that stage, or not for that lane. The
// wait goes on, and ends with the answer.
func TestWaitingTellsThatNobodyServes(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	w, _ := request(t, "alone", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	told, done := make(chan error, 100), make(chan *wire.Answer, 1)
	go func() {
		a, err := r.client.WaitTelling(r.ctx, "alone", func(err error) { told <- err })
		if err != nil {
			t.Error(err)
		}
		done <- a
	}()
	next := func(text string) { // on a busy machine a stage that runs may seem away for a moment
		t.Helper()
		for {
			select {
			case err := <-told:
				if !errors.Is(err, client.ErrNoWorkers) {
					t.Errorf("told %v, want %s", err, text)
				}
				if strings.Contains(err.Error(), text) {
					return
				}
				t.Logf("told %v before %s", err, text)
			case <-r.ctx.Done():
				t.Fatalf("not told: %s", text)
			}
		}
	}
	next("no reparam-worker is running")
	r.run(quick, query.StageReparam)
	next("no learn-worker is running")
	other := quick
	other.Lanes = []int{(wire.Lane("") + 1) % wire.Lanes}
	r.run(other, query.StageLearn)
	next("no learn-worker takes jobs of lane 3")
	r.run(quick, query.StageLearn)
	next("no contract-worker is running")
	r.run(quick, query.StageContract, query.StageAggregate)
	if a := <-done; a == nil || a.Status != wire.StatusOK {
		t.Errorf("the answer: %+v", a)
	}
	r.eventually("it is served", func() bool { return r.client.Served(r.ctx, "") == nil })
}

// A job that is not stored, and one whose stream is gone, are not waited for for ever.
func TestWaitingForNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	wait := func() error {
		ctx, cancel := context.WithTimeout(r.ctx, guard)
		defer cancel()
		_, err := r.client.Wait(ctx, "nobody")
		return err
	}
	if err := wait(); !errors.Is(err, client.ErrUnknownJob) {
		t.Errorf("an unknown job: %v", err)
	}
	w, _ := request(t, "nobody", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	s, err := r.js.Stream(r.ctx, "BTN_MODEL")
	r.must(err)
	r.must(s.Purge(r.ctx))
	if err := wait(); !errors.Is(err, client.ErrUnknownJob) {
		t.Errorf("a job that was lost: %v", err)
	}
	r.must(r.js.DeleteStream(r.ctx, "BTN_MODEL"))
	if err := wait(); !errors.Is(err, client.ErrNotSetUp) ||
		!strings.Contains(err.Error(), "btn setup") {
		t.Errorf("no stream: %v", err)
	}
}
