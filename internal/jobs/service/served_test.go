package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// The server refuses subjects without a consumer: a lane that does not exist, in any form, and subjects
// with a token too many or too few. The publisher learns that at once.
func TestStreamsTakeWhatIsServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	old := map[string][]string{ // streams of an earlier version, which set-up upgrades
		"BTN_MODEL": {message.Filter(message.KindModel)}, "BTN_DEADLINE": {
			message.Filter(message.KindTimer), message.Filter(message.KindDeadline),
		},
	}
	for name, subjects := range old {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		was := s.CachedInfo().Config
		was.Subjects = subjects
		_, err = r.js.UpdateStream(r.ctx, was)
		r.must(err)
	}
	r.publish(wire.Prefix+"model.99.stale", []byte("taken before the upgrade"))
	r.must(setUp(r.ctx, r.nc, calm))
	r.run(calm, allStages()...)
	w, _ := request(t, "job", grid(t, 2, 2, 1), query.Settings{})
	b, err := wire.Encode(&w)
	r.must(err)
	for _, subject := range []string{
		"model.99.job", "model.-1.job", "model.003.job", "model.16.job", "model.*.job", "model.>",
		"model.3.job.more.more", "model.3", "model.job",
		"network.16.job", "task.99.job.1.0", "task.0.job.1", "partial.0.x", "redrive.99.job",
		"answer.job.more.more", "cancel.job.more.more", "cancel",
		"timer.99.job",
		"timer.*.job", "deadline.016.job", "dlq.job", "blob.a.b.c", "graph.a.b.c", "nothing.job",
	} {
		ctx, cancel := context.WithTimeout(r.ctx, 2*time.Second)
		_, err := r.js.Publish(ctx, wire.Prefix+subject, b)
		cancel()
		if err == nil {
			t.Errorf("%s is acknowledged", subject)
		}
	}
	if n := r.messages("BTN_MODEL"); n != 1 {
		t.Errorf("%d models, want the one of before", n)
	}
	for lane := range wire.Lanes {
		for _, kind := range []message.Kind{
			message.KindModel, message.KindNetwork, message.KindTimer, message.KindDeadline, message.KindRedrive,
		} {
			s := message.Subject{Kind: kind, Lane: lane, Job: "other"}.String()
			if name, err := r.js.StreamNameBySubject(r.ctx, s); err != nil {
				t.Errorf("%s has no stream: %q %v", s, name, err)
			}
		}
	}
	r.works("after")
}

// No stream can recognise an invalid id: acknowledged jobs under one are answered.
func TestModelsUnderNoId(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	sweeping := calm
	sweeping.SweepAfter = 100 * time.Millisecond
	r.run(sweeping, allStages()...)
	w, _ := request(t, "job", grid(t, 2, 2, 1), query.Settings{})
	b, err := wire.Encode(&w)
	r.must(err)
	answers, err := r.js.Stream(r.ctx, "BTN_ANSWER")
	r.must(err)
	for _, id := range []string{"j$b", "jöb", "job!", strings.Repeat("x", 65)} {
		r.publish(wire.ModelSubject(3, id), b)
		var m *jetstream.RawStreamMsg
		r.eventually("the answer of "+id, func() bool {
			m, err = answers.GetLastMsgForSubject(r.ctx, wire.AnswerSubject(id))
			return err == nil
		})
		var a wire.Answer
		r.must(wire.Decode(m.Data, &a))
		if a.Job != message.NearestJob(id) || a.Status != wire.StatusError ||
			a.Error.Code != fault.BadInput ||
			!strings.Contains(a.Error.Message, "[A-Za-z0-9_-]{1,64}") {
			t.Errorf("%s: %+v", id, a)
		}
		if letters, err := r.client.DeadLettersOf(r.ctx, a.Job); err != nil || len(letters) != 1 {
			t.Errorf("%s: dead letters %v %v", id, letters, err)
		}
	}
	// a literal one: it has no subject of its own to be answered on
	r.publish(wire.ModelSubject(3, "*"), b)
	r.eventually("the dead letter of *", func() bool {
		letters, err := r.client.DeadLettersOf(r.ctx, "_")
		return err == nil && len(letters) == 1
	})
	r.publish(wire.Prefix+"cancel.j$b", b)
	r.publish(wire.Prefix+"cancel.*", b)
	r.eventually("the cancels are gone", func() bool { return r.messages("BTN_CONTROL") == 0 })
	r.works("after")
	if _, err := r.client.Submit(
		r.ctx, wire.Request{Job: "j$b", Text: "MARKOV\n1\n2\n0\n", Queries: []query.Query{{}}},
	); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("submitted under no id: %v", err)
	}
	if err := r.client.Cancel(r.ctx, "j$b", ""); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("cancelled under no id: %v", err)
	}
}

// Without streams a client gets an error that names the missing part, at once.
func TestNoStreams(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.must(r.js.DeleteStream(r.ctx, "BTN_MODEL"))
	w, _ := request(t, "job", grid(t, 2, 2, 1), query.Settings{})
	if _, err := r.client.Submit(r.ctx, w); fault.CodeOf(err) != fault.Infrastructure ||
		!strings.Contains(err.Error(), "btn setup") || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("submitted to no stream: %v", err)
	}
}
