package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

func TestResultsOfManyJobs(t *testing.T) {
	ctx, _, nc, c := open(t)
	type result struct {
		job string
		a   *wire.Answer
		err error
	}
	got := make(chan result, 100)
	stop, err := c.Results(
		context.WithoutCancel(
			ctx,
		),
		func(job string) bool { return strings.HasPrefix(job, "mine-") },
		func(job string, a *wire.Answer, err error) { got <- result{job, a, err} },
	)
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 20
	for i := range jobs {
		answer(t, nc, fmt.Sprintf("mine-%d", i), wire.StatusError, fmt.Sprint(i))
		// refused, and never seen
		answer(t, nc, fmt.Sprintf("mine-%d", i), wire.StatusError, "second")
		answer(t, nc, fmt.Sprintf("other-%d", i), wire.StatusError, "")
	}
	if err := nc.PublishMsg(
		&nats.Msg{Subject: wire.DoneSubject("mine-broken"), Data: []byte("nonsense")},
	); err != nil {
		t.Fatal(err)
	}
	for i := range jobs {
		r := <-got
		if r.err != nil || r.job != fmt.Sprintf("mine-%d", i) || r.a.Job != r.job ||
			r.a.Error.Message != fmt.Sprint(i) {
			t.Errorf("result %d: %+v", i, r)
		}
	}
	if r := <-got; r.job != "mine-broken" || r.a != nil || r.err == nil {
		t.Errorf("an answer that cannot be read: %+v", r)
	}
	stop()
	answer(t, nc, "mine-late", wire.StatusError, "")
	select {
	case r := <-got:
		t.Errorf("after stop: %+v", r)
	case <-time.After(50 * time.Millisecond):
	}
}
