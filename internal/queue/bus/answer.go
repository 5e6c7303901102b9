package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Intervals at which WaitAnswer looks into the stream, because the republished answer may be lost with
// a connection. The first one is shorter.
const (
	firstLook = time.Second
	look      = 2 * time.Second
)

// ErrUnverified: answers came, and were not believed.
var ErrUnverified = errors.New("bus: answers came that do not verify by the keys given here (is there an --answers-seed?)")

// WaitAnswer returns the job's answer as soon as it is stored, with its whole payload. It listens to the republished answer and never to
// the answer's own subject, on which refused answers pass, too. Unless quiet is nil, it is called after a second without an answer and
// every two seconds then. An error of quiet ends the wait. If the stream had an answer that is not believed, the error wraps
// ErrUnverified.
func (l *Log) WaitAnswer(ctx context.Context, job string, quiet func(context.Context) error) (answer *nats.Msg, err error) {
	done := make(chan *nats.Msg, 4)
	sub, err := l.conn.NC.ChanSubscribe(wire.DoneSubject(job), done)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: wait for job %s: %w", job, err)
	}
	defer sub.Unsubscribe()
	unverified := false
	defer func() {
		if err != nil && unverified {
			err = fmt.Errorf("%w: %w", ErrUnverified, err)
		}
	}()

	for pause := firstLook; ; pause = look {
		stored, err := l.Get(ctx, StreamAnswer, wire.AnswerSubject(job))
		unverified = unverified || errors.Is(err, errForged)
		switch {
		case err == nil:
			return &nats.Msg{Header: stored.Header, Data: stored.Data}, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, ctx.Err())
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err // not for a look that took too long: the next one follows
		}

		m, err := l.nextAnswer(ctx, job, done, pause)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, err)
		case m != nil:
			data, err := l.blobs.Payload(ctx, message.Owner(job), m.Header, m.Data)
			return &nats.Msg{Header: m.Header, Data: data}, err
		}
		if quiet != nil {
			if err := quiet(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// nextAnswer returns the republished answer if it comes within a time, or else nil. It does not hear forged answers.
func (l *Log) nextAnswer(ctx context.Context, job string, done <-chan *nats.Msg, limit time.Duration) (m *nats.Msg, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case m := <-done:
			if l.signer.Genuine(wire.AnswerSubject(job), m.Header, m.Data) {
				return m, nil
			}
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
