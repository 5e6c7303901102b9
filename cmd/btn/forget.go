package main

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/console"
)

// forgetCmd erases a tenant's data.
type forgetCmd struct {
	Tenant string `arg:"" help:"Whose jobs, answers, models and dead letters are erased."`
	natsFlag
}

// Run erases it and prints its size.
func (c *forgetCmd) Run(ctx context.Context, t *console.Terminal) error {
	options, err := c.AsNATS.Options()
	if err != nil {
		return err
	}
	nc, err := bus.Connect(c.NATS, "btn-forget", nil, options...)
	if err != nil {
		return err
	}
	defer nc.Close()
	b, err := bus.New(nc)
	if err != nil {
		return err
	}
	b.As(c.AsNATS.Tenant)

	f, err := b.Forget(ctx, c.Tenant)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.Out, "%s is forgotten: %d jobs, %d messages\n", c.Tenant, f.Jobs, f.Messages)
	return nil
}
