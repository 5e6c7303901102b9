package service_test

// Messages about a job that belong to another request.

import (
	"errors"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A deadline ends the request it was set for: no other of the same id, and none that is not there.
func TestDeadlineOfAnotherRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	w, _ := request(t, "mine", grid(t, 2, 2, 1), query.Settings{})
	digest := r.submit(w)
	past := time.Now().Add(-time.Minute).UnixMilli()
	r.send(
		message.DeadlineSubject(0, "mine"),
		&wire.Deadline{Job: "mine", Digest: wire.Digest([]byte("another")), Time: past},
	)
	r.send(
		message.DeadlineSubject(0, "nobody"),
		&wire.Deadline{Job: "nobody", Digest: digest, Time: past},
	)
	r.run(quick, query.StageAggregate)
	r.eventually(
		"the deadlines are taken up", func() bool { return r.messages("BTN_DEADLINE") == 0 },
	)
	for _, job := range []string{"mine", "nobody"} {
		if a, err := r.client.Answer(r.ctx, job); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("job %s was ended: %+v, %v", job, a, err)
		}
	}
	r.send(message.DeadlineSubject(0, "mine"), &wire.Deadline{Job: "mine", Digest: digest, Time: past})
	if a := r.wait("mine"); a.Status != wire.StatusDeadline {
		t.Errorf("status %s", a.Status)
	}
}

// Garbage among the dead letters leaves the others readable.
func TestGarbageAmongDeadLetters(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	garbage := []byte("\x81\xa1a\x01")
	r.publish(wire.ModelSubject(0, "letter"), garbage)
	r.wait("letter")
	r.publish(message.DLQSubject("learn-worker", "none"), garbage)
	letters, err := r.client.DeadLetters(r.ctx)
	r.must(err)
	if len(letters) != 2 || letters[0].Job != "letter" || letters[1].Job != "none" ||
		letters[1].Stage != "learn-worker" || letters[1].Payload != wire.Digest(garbage) || letters[1].Error.Message == "" {
		t.Errorf("dead letters %+v", letters)
	}
}
