package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A contract-worker with OverflowAt leaves fewer tasks than that to others, and does not count as one that serves the lane. Tasks that
// nobody else takes it takes after all.
func TestOverflow(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	second := calm
	second.OverflowAt, second.NC = 3, r.nc
	says, err := r.nc.Subscribe(message.ServesSubject, func(msg *nats.Msg) {
		var m message.Serves
		if err := wire.Decode(msg.Data, &m); err != nil || !m.Gone {
			t.Errorf("jobs are to wait for its kind of processor: %v", err)
		}
	})
	r.must(err)
	defer says.Unsubscribe()
	r.run(calm, query.StageReparam, query.StageLearn, query.StageAggregate)
	r.run(second, query.StageContract)
	want := map[string]string{}
	for k := range 5 {
		job := fmt.Sprint("job-", k)
		w, p := request(t, job, grid(t, 2, 2, 1), query.Settings{})
		results, err := infer.Run(r.ctx, p)
		r.must(err)
		want[job] = plain(t, results)
		r.submit(w)
	}
	// Of five tasks three are taken: then two wait, which are too few.
	r.eventually("three are answered", func() bool { return r.messages("BTN_TASK") == 2 && r.messages("BTN_ANSWER") == 3 })
	r.eventually("nobody serves the lane", func() bool {
		err := r.client.Served(r.ctx, "")
		return err != nil && strings.Contains(err.Error(), "no contract-worker")
	})
	for job, want := range want {
		if a := r.wait(job); plain(t, a.Results) != want {
			t.Errorf("%s: %s %v: got\n%s\nwant\n%s", job, a.Status, a.Error, plain(t, a.Results), want)
		}
	}
}
