package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Intervals at which Answer looks into the stream, because the republished answer may be lost with
// a connection. The first one is shorter.
const (
	firstLook = time.Second
	look      = 2 * time.Second
)

// Answer returns the bytes of the job's answer as soon as it is stored. It listens to the
// republished answer and never to the answer's own subject, on which refused ones pass as well.
func (b *Bus) Answer(ctx context.Context, job string) ([]byte, error) {
	return b.AnswerOr(ctx, job, func(context.Context) error { return nil })
}

// AnswerOr is Answer that calls quiet after a second without an answer and every two seconds then;
// an error of quiet ends it.
func (b *Bus) AnswerOr(
	ctx context.Context, job string, quiet func(context.Context) error,
) ([]byte, error) {
	done := make(chan *nats.Msg, 4)
	sub, err := b.NC.ChanSubscribe(wire.DoneSubject(job), done)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: wait for job %s: %w", job, err)
	}
	defer sub.Unsubscribe()

	for pause := firstLook; ; pause = look {
		stored, err := b.Get(ctx, StreamAnswer, wire.AnswerSubject(job))
		switch {
		case err == nil:
			return stored.Data, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, ctx.Err())
		case !errors.Is(err, ErrNotFound):
			return nil, err
		}

		timer := time.NewTimer(pause)
		select {
		case m := <-done:
			timer.Stop()
			return b.Payload(ctx, m.Header, m.Data)
		case <-timer.C:
			if err := quiet(ctx); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("bus: wait for job %s: %w", job, ctx.Err())
		}
	}
}
