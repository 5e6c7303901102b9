package client

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Watch calls receive with the job's progress until stop is called. Progress is for people: some may
// be lost. receive is called from one goroutine at a time.
func (c *Client) Watch(job string, receive func(wire.Progress)) (stop func(), err error) {
	if err := c.checkJob(job); err != nil {
		return nil, err
	}
	sub, err := c.nc.Subscribe(wire.ProgressSubject(job), func(m *nats.Msg) {
		var p wire.Progress
		if wire.Decode(m.Data, &p) == nil { // progress that cannot be read is dropped
			receive(p)
		}
	})
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "client: watch job %s: %w", job, err)
	}
	return func() { sub.Unsubscribe() }, nil
}

// Cancel asks that a job end without a result. A job that has its answer keeps it; the answer says
// which it was.
func (c *Client) Cancel(ctx context.Context, job, reason string) error {
	if err := c.checkJob(job); err != nil {
		return err
	}
	m := &wire.Cancel{Job: job, Reason: reason, Time: time.Now().UnixMilli()}
	b, err := wire.Encode(m)
	if err != nil {
		return err
	}
	_, err = c.bus.Log.PutOnce(
		ctx,
		bus.StreamControl,
		&nats.Msg{
			Subject: wire.CancelSubject(job),
			Header:  message.Headers(m, job, "", ""), // without a digest and a tenant
			Data:    b,
		},
	)
	return err
}
