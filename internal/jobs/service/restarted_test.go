package service_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A replayed job is looked after like any other: its lost messages are made again, and its message goes
// with its answer.
func TestReplayedJobIsLookedAfter(t *testing.T) {
	t.Parallel()
	watching := quick
	watching.SweepAfter = 100 * time.Millisecond
	for _, lost := range []string{"BTN_NETWORK", "BTN_TASK"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			w, p := request(t, "replayed", grid(t, 2, 2, 1), query.Settings{})
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			digest := r.submit(w)
			r.must(r.take("BTN_MODEL", "reparam").Term()) // the first run is over, and failed
			r.send(wire.AnswerSubject("replayed"), &wire.Answer{
				Job:    "replayed",
				Digest: digest,
				Status: wire.StatusError,
				Error: &query.ErrorInfo{
					Code:    fault.Internal,
					Message: "given up",
					Stage:   "learn-worker",
				},
			})
			r.must(r.client.Replay(r.ctx, "replayed"))
			stop, _ := r.run(watching, query.StageReparam)
			r.eventually(
				"the replay's network", func() bool { return r.messages("BTN_NETWORK") == 1 },
			)
			if lost == "BTN_TASK" {
				learn, _ := r.run(watching, query.StageLearn)
				r.eventually(
					"the replay's task", func() bool { return r.messages("BTN_TASK") == 1 },
				)
				learn()
			}
			stop()
			s, err := r.js.Stream(r.ctx, lost)
			r.must(err)
			r.must(s.Purge(r.ctx))
			r.run(watching, allStages()...)
			if got, want := plain(t, r.wait("replayed").Results), plain(t, want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			r.eventually(
				"the message is gone", func() bool { return r.messages("BTN_CONTROL") == 0 },
			)
		})
	}
}
