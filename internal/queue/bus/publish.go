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
	suspectAfter = 2 * time.Second        // a publish without an answer for so long is suspicious
	askEvery     = 500 * time.Millisecond // pause between questions whether the stream has skipped the publish
	askWithin    = 5 * time.Second        // time limit of one question
)

// lateAnswerGrace returns how much later than the answer to a later publish the answer to an earlier one may come.
// Streams answer in the order in which messages came, but streams of several replicas and the subscriptions of this
// process may be a little late. isSuspect says that the stream is known to store nothing.
func lateAnswerGrace(isSuspect bool) time.Duration {
	if isSuspect {
		return 200 * time.Millisecond
	}
	return time.Second
}

// CheckStorage returns ErrStorage with the subjects of the streams that are known to store nothing, or nil if there are
// none.
func (c *Conn) CheckStorage() error { return c.stalls.check() }

// watchStorage returns a context for publishes to a subject. It ends, with ErrStorage as its cause, if the subject's
// stream answers a message published later, but not these publishes. A stream that is merely slow answers in the order
// in which messages come, so the context does not end. isSuspect says that the stream is known to store nothing, so
// that less time is waited. The caller calls the returned function after its publishes.
func (c *Conn) watchStorage(ctx context.Context, subject string, isSuspect bool) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(ctx)

	reconnects := c.NC.Stats().Reconnects
	firstAsk := c.AnswerWithin(suspectAfter)
	if isSuspect {
		firstAsk = askEvery
	}

	// After a reconnection a missing answer says nothing: it may be lost with the old connection.
	timer := time.AfterFunc(firstAsk, func() {
		for inner.Err() == nil {
			if c.answersLaterPublish(inner, subject) && c.NC.Stats().Reconnects == reconnects {
				Pause(inner, lateAnswerGrace(isSuspect))
				if inner.Err() == nil && c.NC.Stats().Reconnects == reconnects {
					cancel(c.stalls.addStall(group(subject)))
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

// answersLaterPublish sends a message that the subject's stream has to refuse, because it is to follow a sequence that
// never comes, and reports whether the stream refuses it. If it does, it answers requests, and an earlier message without
// an answer was not stored.
func (c *Conn) answersLaterPublish(ctx context.Context, subject string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.AnswerWithin(askWithin))
	defer cancel()

	_, err := c.JS.PublishMsg(
		ctx, &nats.Msg{Subject: subject}, jetstream.WithExpectLastSequence(1<<62),
		jetstream.WithRetryAttempts(0),
	)

	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeWrongLastSequence
}

// publish stores a message, and repeats that as withRetries does. A repetition after a lost answer is harmless, because
// callers state the last sequence that they expect on the subject. The error wraps errTaken if the subject's last
// message is another than expected, and ErrFull if the stream has no room.
func (c *Conn) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	err := c.withRetries(ctx, func(ctx context.Context) error {
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
	return publishError(m.Subject, err)
}

// publishAfter stores m if the last message on its subject has the sequence lastSequence, or if that is 0 and the
// subject is empty. Otherwise the error wraps errTaken.
func (c *Conn) publishAfter(ctx context.Context, m *nats.Msg, lastSequence uint64) error {
	return c.publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(lastSequence))
}

// damagedTries is how often a message is sent if the worker that is to store it receives it damaged.
const damagedTries = 3

// Attempts to have a worker store a message while none runs, because it may be about to restart, and pauses between
// them. Together they are shorter than defaultTimeout, so that the error is that nobody responds.
const (
	workerTries = 16
	workerPause = 250 * time.Millisecond
)

// publishOnce is one attempt of publish. If the stream skips the message without an answer, its storage has failed, and
// the error wraps ErrStorage. While that is known, publishes fail at once, except for one a second.
func (c *Conn) publishOnce(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	if n := len(m.Subject); n > LongestSubject {
		return fault.New(fault.BadInput, "bus: a subject of %d characters, at most %d", n, LongestSubject)
	}
	if c.tenant != "" {
		return c.publishByWorker(ctx, m, opts...)
	}
	isSuspect, err := c.stalls.allowPublish(group(m.Subject)) // isSuspect: the stream is known to store nothing
	if err != nil {
		return err
	}

	inner, done := c.watchStorage(ctx, m.Subject, isSuspect)
	defer done()

	_, err = c.JS.PublishMsg(inner, m, opts...)
	if cause := context.Cause(inner); err != nil && errors.Is(cause, ErrStorage) {
		return cause
	}

	if isAnswered(err) {
		c.stalls.removeStall(group(m.Subject))
	}
	return err
}

// publishByWorker sends a message of a tenant's user to the worker that stores it, and waits for its answer. It sends
// the message again if the worker received it damaged.
func (c *Conn) publishByWorker(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	opts = append(opts, jetstream.WithRetryAttempts(workerTries), jetstream.WithRetryWait(workerPause))
	var err error
	for range damagedTries {
		_, err = c.JS.PublishMsg(ctx, m, opts...)
		var api *jetstream.APIError
		if !errors.As(err, &api) || api.ErrorCode != CodeDamaged {
			break
		}
	}
	return err
}

// isAnswered reports whether the error of a publish shows that its stream has answered: nil, or an error of the
// server's API.
func isAnswered(err error) bool {
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

// Probe finds out whether the server stores messages, for processes that have none to store. It stores a small blob
// again, unless somebody has done so in the last ProbeEvery and no stream is known to store nothing. Afterwards
// CheckStorage returns what was found out.
func (c *Conn) Probe(ctx context.Context) error {
	data := []byte(probeText + strings.Repeat(" ", probeBytes-len(probeText)))
	subject := message.BlobSubject("", wire.Digest(data))

	last, err := c.getLast(ctx, StreamBlob, subject)
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
	if errors.Is(err, errTaken) { // another process has stored the probe meanwhile
		return nil
	}
	return err
}

// errTaken means that the subject has another last message than the publish expected.
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

// publishError returns the error of a publish as one of this package: errTaken, ErrFull or ErrNoStream, among others.
// The server may report both a full stream and a taken subject with code 10077, which only the text distinguishes. But
// every publish here names the sequence that it expects, which the server checks first and reports with 10071.
func publishError(subject string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrStorage) {
		return err
	}

	// Nobody has answered. Messages of the vetted kinds are those that users may send.
	if errors.Is(err, jetstream.ErrNoStreamResponse) && slices.Contains(vettedKinds, message.KindOf(subject)) {
		return fault.New(fault.Infrastructure, "%w: publish %s: for a tenant or a client reparam-worker stores it: does one run? %w",
			ErrNoStream, subject, err)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fault.New(fault.Infrastructure, "%w: publish %s: %w", ErrNoStream, subject, err)
	}

	// The server, or the worker that stores for tenants, has answered with an error.
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
	}
	if err := refusalError(subject, api); err != nil {
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
