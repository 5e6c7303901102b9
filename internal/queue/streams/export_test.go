package streams

import (
	"context"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/nats-io/nats.go/jetstream"
)

// Answered is up to where models are known to be answered to a keeper that sees the sweeper's
// acknowledgement floor stand there.
func (k *Keeper) Answered(ctx context.Context, floor uint64) (uint64, error) {
	s, err := k.Bus.Conn.Stream(ctx, bus.StreamModel)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	sweeper := &jetstream.ConsumerInfo{AckFloor: jetstream.SequenceInfo{Stream: floor}}
	w, err := k.computeWatermark(ctx, streamState{StreamInfo: info}, sweeper, bus.TimesOf(info.Config.Metadata))
	return w.floor, err
}

// SetupConsumers sets up one feed's consumers.
var SetupConsumers = setupConsumers

// Consumers are the consumers that a feed should have.
func (f Feed) Consumers(
	c Config,
) []jetstream.ConsumerConfig {
	return f.consumerConfigs(c.WithDefaults())
}
