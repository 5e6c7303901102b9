package streams

import (
	"context"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Healthy returns nil if the connection is up and the streams of models and answers exist, else an
// error that names the missing part.
func Healthy(ctx context.Context, nc *nats.Conn) error {
	if s := nc.Status(); s != nats.CONNECTED {
		return fault.New(fault.Infrastructure, "pipeline: connection to NATS is %v", s)
	}

	js, err := jetstream.New(nc)
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}

	for _, name := range []string{bus.StreamModel, bus.StreamAnswer} {
		if _, err := js.Stream(ctx, name); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: stream %s: %w", name, err)
		}
	}
	return nil
}
