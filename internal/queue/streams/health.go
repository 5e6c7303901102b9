package streams

import (
	"context"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Healthy returns nil if the connection is up and the streams of models and answers exist. Otherwise the error names
// what is missing.
func Healthy(ctx context.Context, c *bus.Conn) error {
	if s := c.NC.Status(); s != nats.CONNECTED {
		return fault.New(fault.Infrastructure, "pipeline: connection to NATS is %v", s)
	}

	for _, name := range []string{bus.StreamModel, bus.StreamAnswer} {
		if _, err := c.JS.Stream(ctx, name); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: stream %s: %w", name, err)
		}
	}
	return nil
}
