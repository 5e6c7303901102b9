package bus

// Storing a message, and finding out if its stream stores nothing.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Times of finding out whether a stream stores anything.
const (
	storeWithin = 2 * time.Second // a publish without an answer for so long is suspicious
	// pause between questions whether the stream has skipped it
	askEvery  = 500 * time.Millisecond
	askWithin = 5 * time.Second // for one question
)

// grace is the time by which the answer to an earlier publish may follow the answer to a later one.
// Streams answer in the order in which messages came; streams of several replicas, and the
// subscriptions of this process, may be a little late.
func grace(known bool) time.Duration {
	if known {
		return 200 * time.Millisecond
	}
	return time.Second
}

// CheckStorage returns ErrStorage with the subjects of the streams that store nothing, or nil if none is known to do so.
func (c *Conn) CheckStorage() error { return c.stalls.check() }

// watch returns a context that ends, with ErrStorage as its cause, when the stream of a subject
// answers a message published later and has not answered the publishes since this call. A server
// that is merely slow answers in the order in which messages come, so it is waited for.
func (c *Conn) watch(ctx context.Context, subject string, known bool) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(ctx)

	connection := c.NC.Stats().Reconnects
	after := c.AnswerWithin(storeWithin)
	if known {
		after = askEvery
	}

	timer := time.AfterFunc(after, func() {
		for inner.Err() == nil {
			if c.passes(inner, subject) && c.NC.Stats().Reconnects == connection {
				Pause(inner, grace(known))
				if inner.Err() == nil && c.NC.Stats().Reconnects == connection {
					cancel(c.stalls.add(group(subject)))
				}
				return
			}
			Pause(inner, askEvery)
		}
	})
	return inner, func() {
		timer.Stop()
		cancel(nil)
	}
}

// Pause waits for a time, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// passes reports whether a stream answers a message that it cannot take, because it would have to
// follow one that never comes.
func (c *Conn) passes(ctx context.Context, subject string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.AnswerWithin(askWithin))
	defer cancel()

	_, err := c.JS.PublishMsg(
		ctx, &nats.Msg{Subject: subject}, jetstream.WithExpectLastSequence(1<<62),
		jetstream.WithRetryAttempts(0),
	)

	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}

// publish stores a message. In a cluster it persists: every message here states the expected last
// message of its subject, so that one stored without an answer is found. The error wraps errTaken if that is another, and ErrFull if the
// stream has no room.
func (c *Conn) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	err := c.persist(ctx, func(ctx context.Context) error {
		err := c.publishOnce(ctx, m, opts...)
		if c.inCluster() && errors.Is(err, jetstream.ErrNoStreamResponse) {
			// Either its stream has no leader, or no stream takes the subject.
			_, unknown := c.JS.StreamNameBySubject(ctx, m.Subject)
			if errors.Is(unknown, jetstream.ErrStreamNotFound) {
				return fmt.Errorf("%w: %w", ErrNoStream, err)
			}
		}
		return err
	})
	return refusal(m.Subject, err)
}

// publishAfter stores m after the message with the sequence last, 0: after none. The error wraps errTaken if the subject has another
// message.
func (c *Conn) publishAfter(ctx context.Context, m *nats.Msg, last uint64) error {
	return c.publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(last))
}

// sendings is how often a message is sent that a worker receives damaged.
const sendings = 3

// Attempts, and pauses between them, to have a worker store a message while none runs: it may be restarted. Together they are shorter than
// answerWithin, so that the error is that nobody is there.
const (
	keptTries = 16
	keptPause = 250 * time.Millisecond
)

// publishOnce is one attempt. If the stream skips the message without an answer, its storage has
// failed; while that is known publishes fail at once, except for one a second.
func (c *Conn) publishOnce(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	if n := len(m.Subject); n > LongestSubject {
		return fault.New(fault.BadInput, "bus: a subject of %d characters, at most %d", n, LongestSubject)
	}
	if c.tenant != "" { // a worker stores it, and answers no question of watch
		opts = append(opts, jetstream.WithRetryAttempts(keptTries), jetstream.WithRetryWait(keptPause))
		var err error
		for range sendings {
			_, err = c.JS.PublishMsg(ctx, m, opts...)
			var api *jetstream.APIError
			if !errors.As(err, &api) || api.ErrorCode != CodeDamaged {
				break
			}
		}
		return err
	}
	known, err := c.stalls.try(group(m.Subject))
	if err != nil {
		return err
	}

	inner, done := c.watch(ctx, m.Subject, known)
	defer done()

	_, err = c.JS.PublishMsg(inner, m, opts...)
	if cause := context.Cause(inner); err != nil && errors.Is(cause, ErrStorage) {
		return cause
	}

	if answered(err) {
		c.stalls.remove(group(m.Subject))
	}
	return err
}

// answered reports whether a stream has answered a publish.
func answered(err error) bool {
	var api *jetstream.APIError
	return err == nil || errors.As(err, &api)
}

// The probe's message.
const (
	probeText  = "basetensor: does the server store anything?"
	probeBytes = 4096 // the last page of a file may have room for less, also when the disk has none
)

// ProbeEvery is the interval at which a probe is stored, by all workers together.
const ProbeEvery = 4 * time.Second

// Probe finds out whether the server stores messages, for processes that have none to store: it
// stores a small blob again, unless somebody has done so lately. CheckStorage then returns the result.
func (c *Conn) Probe(ctx context.Context) error {
	data := []byte(probeText + strings.Repeat(" ", probeBytes-len(probeText)))
	subject := message.BlobSubject("", wire.Digest(data))

	last, err := c.last(ctx, StreamBlob, subject)
	var sequence uint64 // of the last probe, 0 if there is none
	switch {
	case err == nil && c.Since(last.Time) < ProbeEvery && c.stalls.check() == nil:
		return nil
	case err == nil:
		sequence = last.Sequence
	case !errors.Is(err, ErrNotFound):
		return err
	}

	err = c.publishAfter(ctx, &nats.Msg{Subject: subject, Data: data}, sequence)
	if errors.Is(err, errTaken) { // another process did
		return nil
	}
	return err
}

// errTaken: the subject has its message already.
var errTaken = errors.New("bus: subject is taken")

// Error codes of the server.
const (
	codeWrongLastSequence = jetstream.JSErrCodeStreamWrongLastSequence // 10071
	// 10164: a message of the subject is on its way to the replicas
	codeInFlight = jetstream.JSErrCodeStreamWrongLastSequenceConstant
	// a full stream, and a full subject
	codeStoreFailed = 10077
	// a cluster is choosing a leader
	codeNoLeader = 10008
)

// refusal returns the error of a publish as one of this package: errTaken or ErrFull, among others.
// The server may report both with code 10077, which only the text distinguishes; but every publish
// here names the sequence that it expects, which is checked first and gives 10071.
func refusal(subject string, err error) error {
	if err == nil {
		return nil
	}
	var api *jetstream.APIError
	if errors.Is(err, ErrStorage) {
		return err
	}

	if errors.Is(err, jetstream.ErrNoStreamResponse) && slices.Contains(vettedKinds, message.KindOf(subject)) {
		return fault.New(fault.Infrastructure, "%w: publish %s: for a tenant or a client reparam-worker stores it: does one run? %w",
			ErrNoStream, subject, err)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fault.New(fault.Infrastructure, "%w: publish %s: %w", ErrNoStream, subject, err)
	}

	if !errors.As(err, &api) {
		return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
	}

	if err := refusedFor(subject, api); err != nil {
		return err
	}
	switch {
	case api.ErrorCode == codeWrongLastSequence,
		api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "per subject"):
		return fmt.Errorf("%w: %s", errTaken, subject)
	case api.ErrorCode == codeStoreFailed:
		return fault.New(
			fault.Infrastructure, "%w: publish %s: %s", ErrFull, subject, api.Description,
		)
	}
	return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
}
