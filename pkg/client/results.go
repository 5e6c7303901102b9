package client

// All answers through one subscription, for clients with many jobs under way.

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Bounds of the answers that wait for the function of Results. Answers above them are lost to it, and still to be had from Answer.
const (
	pendingResults = 1 << 20
	pendingBytes   = 512 << 20
)

// flushTimeout is how long the server is given to take the subscription.
const flushTimeout = 10 * time.Second

// Results calls receive with every answer that comes from now on until stop is called, if isWanted is
// true for its job (nil: for every job). It takes one subscription in place of one per job. An answer
// that cannot be read comes as the error, with its job's id. receive is called from one goroutine at a
// time. Answers may be lost with the connection, or if receive is slow: ask Answer for those that do
// not come.
//
// It listens to the republished answers and never to the answers' own subjects, where refused ones
// pass too. When it returns the server knows of the subscription: no answer to a job submitted
// later is missed.
func (c *Client) Results(
	ctx context.Context,
	isWanted func(job string) bool,
	receive func(job string, a *wire.Answer, err error),
) (stop func(), err error) {
	prefixLength := len(wire.DoneSubject(""))
	filter := message.Filter(message.KindDone)
	if owner := c.bus.Conn.Tenant(); owner != "" {
		filter = wire.DoneSubject(owner + ".*") // of its own jobs only, whose ids begin with the tenant
	}
	sub, err := c.nc.Subscribe(filter, func(m *nats.Msg) {
		job := m.Subject[min(prefixLength, len(m.Subject)):]
		if !wire.ValidJob(job) || isWanted != nil && !isWanted(job) {
			return
		}
		if !c.bus.Signer.IsGenuine(wire.AnswerSubject(job), m.Header, m.Data) {
			return
		}
		data, err := c.bus.Blobs.Payload(ctx, message.Owner(job), m.Header, m.Data)
		if err != nil {
			receive(job, nil, err)
			return
		}
		a, err := decodeAnswer(data)
		receive(job, a, err)
	})

	if err == nil {
		err = c.settle(ctx, sub)
	}
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "client: results: %w", err)
	}
	return func() { sub.Unsubscribe() }, nil
}

// settle gives a subscription its limits and waits until the server knows of it. After an error it is no longer subscribed.
func (c *Client) settle(ctx context.Context, sub *nats.Subscription) error {
	err := sub.SetPendingLimits(pendingResults, pendingBytes)
	if err == nil {
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		err = c.nc.FlushWithContext(flush)
	}
	if err != nil {
		sub.Unsubscribe() // the first error counts
	}
	return err
}
