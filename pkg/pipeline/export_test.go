package pipeline

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NetworkVersion is part of the keys of remembered networks.
const NetworkVersion = networkVersion

// Watermark is what a keeper sees where the sweeper's acknowledgement floor stands: up to where models are known to be answered.
func Watermark(ctx context.Context, nc *nats.Conn, sweepAfter time.Duration, floor uint64) (uint64, error) {
	b, err := bus.New(nc)
	if err != nil {
		return 0, err
	}
	s, err := b.Stream(ctx, bus.StreamModel)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx)
	if err != nil {
		return 0, err
	}
	k := &keeper{w: &worker{bus: b, Config: Config{SweepAfter: sweepAfter}}}
	sweeper := &jetstream.ConsumerInfo{AckFloor: jetstream.SequenceInfo{Stream: floor}}
	w, err := k.watermark(ctx, space{StreamInfo: info}, sweeper, bus.TimesOf(info.Config.Metadata))
	return w.floor, err
}
