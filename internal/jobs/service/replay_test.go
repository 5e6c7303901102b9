package service_test

// Replays that come while a worker still has a message of the failed job in its hands.

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// A worker that gives a message up stores the answer first and takes the message out of its queue
// then. A replay in between must not take that message for its own.
func TestReplayBeforeTheFailedMessageIsGone(t *testing.T) {
	t.Parallel()
	for _, at := range []struct {
		stream, consumer string
		before, after    []string
	}{
		{"BTN_CONTROL", "redrive", nil, allStages()},
		{"BTN_NETWORK", "learn", []string{query.StageReparam}, allStages()[1:]},
		{
			"BTN_TASK", "contract", []string{query.StageReparam, query.StageLearn},
			allStages()[2:],
		},
		{
			"BTN_PARTIAL", "aggregate",
			[]string{query.StageReparam, query.StageLearn, query.StageContract},
			allStages()[3:],
		},
	} {
		t.Run(at.consumer, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			w, p := request(t, "again", grid(t, 2, 2, 1), query.Settings{})
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			if len(at.before) > 0 {
				r.run(quick, at.before...)
			}
			digest := r.submit(w)
			lane := wire.Lane(w.Tenant)
			// a job that was started again, its model long out of the queue
			if len(at.before) == 0 {
				r.must(r.take("BTN_MODEL", "reparam").Term())
				r.send(
					message.RedriveSubject(lane, "again"),
					&message.Redrive{Job: "again", Reason: "test", Time: 1},
				)
			}
			failed := r.take(at.stream, at.consumer)
			r.send(wire.AnswerSubject("again"), &wire.Answer{
				Job:    "again",
				Digest: digest,
				Status: wire.StatusError,
				Error: &query.ErrorInfo{
					Code:    fault.Internal,
					Message: "given up",
					Stage:   at.consumer,
				},
			})
			r.must(r.client.Replay(r.ctx, "again"))
			if len(at.before) > 0 { // the replay is on its way as far as it comes
				r.eventually(
					"the replay is taken up", func() bool { return r.messages("BTN_CONTROL") == 0 },
				)
			}
			if at.consumer == "contract" {
				r.eventually(
					"the network is learned", func() bool { return r.messages("BTN_NETWORK") == 0 },
				)
			}
			r.must(failed.TermWithReason("given up"))
			r.must(r.nc.FlushWithContext(r.ctx))
			r.run(quick, at.after...)
			a := r.wait("again")
			if got, want := plain(
				t, a.Results,
			), plain(t, want); a.Status != wire.StatusOK || got != want {
				t.Errorf("replayed: status %s, got\n%s\nwant\n%s", a.Status, got, want)
			}
		})
	}
}

// take is a worker's fetch of one message, which stays in its hands.
func (r *rig) take(stream, consumer string) jetstream.Msg {
	r.t.Helper()
	c, err := r.js.Consumer(r.ctx, stream, laneConsumer(consumer))
	r.must(err)
	msg, err := c.Next(jetstream.FetchMaxWait(time.Minute))
	r.must(err)
	go func() { // its heartbeat
		for r.ctx.Err() == nil && msg.InProgress() == nil {
			time.Sleep(quick.Heartbeat)
		}
	}()
	return msg
}
