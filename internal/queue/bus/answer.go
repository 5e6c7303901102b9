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

// Intervals at which WaitAnswer looks into the stream, because the republished answer may be lost with a connection.
const (
	firstPoll = time.Second
	poll      = 2 * time.Second
)

// ErrUnverified means that answers came and were not believed, because no key here verifies them.
var ErrUnverified = errors.New("bus: answers came that do not verify by the keys given here (is there an --answers-seed?)")

// WaitAnswer returns the job's answer, with its whole payload, as soon as it is stored. It looks into the stream again and
// again, and meanwhile listens to the subject on which the server republishes stored answers. (On the answer's own subject
// refused answers pass, too.) If onPoll is not nil, it is called after the first second without an answer and then every two
// seconds; its error ends the wait. If the stream had an answer that is not believed, the error wraps ErrUnverified.
func (l *Log) WaitAnswer(ctx context.Context, job string, onPoll func(context.Context) error) (answer *nats.Msg, err error) {
	republished := make(chan *nats.Msg, 4)
	sub, err := l.conn.NC.ChanSubscribe(wire.DoneSubject(job), republished)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: wait for job %s: %w", job, err)
	}
	defer sub.Unsubscribe()
	hasForged := false // the stream had a forged answer
	defer func() {
		if err != nil && hasForged {
			err = fmt.Errorf("%w: %w", ErrUnverified, err)
		}
	}()

	for pause := firstPoll; ; pause = poll {
		// Look into the stream. The look is repeated if it found nothing or took too long.
		stored, err := l.Get(ctx, StreamAnswer, wire.AnswerSubject(job))
		hasForged = hasForged || errors.Is(err, errForged)
		switch {
		case err == nil:
			return &nats.Msg{Header: stored.Header, Data: stored.Data}, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, ctx.Err())
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, context.DeadlineExceeded):
			return nil, err
		}

		m, err := l.nextAnswer(ctx, job, republished, pause)
		switch {
		case err != nil:
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, err)
		case m != nil:
			data, err := l.blobs.Payload(ctx, message.Owner(job), m.Header, m.Data)
			return &nats.Msg{Header: m.Header, Data: data}, err
		}
		if onPoll != nil {
			if err := onPoll(ctx); err != nil {
				return nil, err
			}
		}
	}
}

// nextAnswer waits up to limit for the republished answer of a job, and returns it. m is nil if none came in time. It
// ignores answers that do not verify.
func (l *Log) nextAnswer(ctx context.Context, job string, republished <-chan *nats.Msg, limit time.Duration) (m *nats.Msg, err error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case m := <-republished:
			if l.signer.IsGenuine(wire.AnswerSubject(job), m.Header, m.Data) {
				return m, nil
			}
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
