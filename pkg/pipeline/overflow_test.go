package pipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A contract-worker with OverflowAt leaves fewer tasks than that to others, and does not count as one that serves the lane. Without the
// setup for it, and once that is taken back, it ends and says so. Workers that run go on whatever setup says.
func TestOverflow(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true, Listen: true}, calm) // a nats-server
	setup := func(overflow *bool) {
		t.Helper()
		c := calm
		c.Overflow = overflow
		r.must(pipeline.Setup(r.ctx, r.nc, c))
	}
	policy := func(want jetstream.PriorityPolicy) bool {
		c, err := r.js.Consumer(r.ctx, "BTN_TASK", "contract-3")
		return err == nil && c.CachedInfo().Config.PriorityPolicy == want
	}
	second := calm
	second.OverflowAt, second.NC = 3, r.nc
	refused := func(err error) {
		t.Helper()
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "btn setup --overflow") {
			t.Errorf("without the setup: %v", err)
		}
	}
	refused(pipeline.Run(r.ctx, second, pipeline.StageContract))

	r.run(calm, pipeline.StageReparam, pipeline.StageLearn, pipeline.StageAggregate)
	stop, _ := r.run(calm, pipeline.StageContract)
	r.works("before")
	setup(new(true))
	r.works("with-a-group")
	setup(nil)
	r.must(r.js.DeleteConsumer(r.ctx, "BTN_TASK", "contract-3"))
	r.eventually("the consumer is made again, with its group", func() bool { return policy(jetstream.PriorityPolicyOverflow) })
	r.works("made-again")
	stop()

	says, err := r.nc.Subscribe(message.ServesSubject, func(msg *nats.Msg) {
		var m message.Serves
		if err := wire.Decode(msg.Data, &m); err != nil || !m.Gone {
			t.Errorf("jobs are to wait for its kind of processor: %v", err)
		}
	})
	r.must(err)
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Run(r.ctx, second, pipeline.StageContract) }()
	want := map[string]string{}
	for k := range 5 {
		job := fmt.Sprint("job-", k)
		w, p := request(t, job, grid(t, 2, 2, 1), btn.Settings{})
		results, err := infer.Run(r.ctx, p)
		r.must(err)
		want[job] = plain(t, results)
		r.submit(w)
	}
	// Of five tasks three are taken: then two wait, which are too few.
	r.eventually("three are answered", func() bool { return r.messages("BTN_TASK") == 2 && r.messages("BTN_ANSWER") == 3+3 })
	r.eventually("nobody serves the lane", func() bool {
		err := r.client.Served(r.ctx, "")
		return err != nil && strings.Contains(err.Error(), "no contract-worker")
	})
	setup(new(false))
	refused(<-ended)
	if left := r.messages("BTN_TASK"); left != 2 || !policy(jetstream.PriorityPolicyNone) {
		t.Errorf("%d tasks wait, want 2", left)
	}
	r.must(says.Unsubscribe())
	r.run(calm, pipeline.StageContract)
	for job, want := range want {
		if a := r.wait(job); plain(t, a.Results) != want {
			t.Errorf("%s: %s %v: got\n%s\nwant\n%s", job, a.Status, a.Error, plain(t, a.Results), want)
		}
	}
}
