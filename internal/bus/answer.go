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

// look is how often Answer looks into the stream: a republished answer may be lost with a connection. The first time is sooner.
const (
	firstLook = time.Second
	look      = 2 * time.Second
)

// Answer returns the bytes of the job's answer as soon as there is one. It listens to the republished answer and never to the
// answer's own subject, where refused ones pass too.
func (b *Bus) Answer(ctx context.Context, job string) ([]byte, error) {
	return b.AnswerOr(ctx, job, func(context.Context) error { return nil })
}

// AnswerOr is Answer that asks, a second after the beginning and every two seconds then, whether to go on: an error of quiet ends it.
func (b *Bus) AnswerOr(ctx context.Context, job string, quiet func(context.Context) error) ([]byte, error) {
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
