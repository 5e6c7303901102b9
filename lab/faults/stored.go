package faults

// Stored state is deleted: streams, consumers, large payloads.

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/nats-io/nats.go/jetstream"
)

// deleteStream deletes one of these.
func deleteStream(names ...string) func(context.Context, *batch) error {
	return func(ctx context.Context, b *batch) error {
		name := names[b.draw(len(names))]
		s := b.begin("%s", name)
		if err := b.s.js.DeleteStream(ctx, name); err != nil {
			return err
		}
		defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
		return until(ctx, startWithin, func(ctx context.Context) error { _, err := b.s.js.Stream(ctx, name); return err })
	}
}

func deleteConsumers(ctx context.Context, b *batch) error {
	streams := []string{bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamControl}
	name := streams[b.draw(len(streams))]
	stream, err := b.s.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	s := b.begin("%s", name)
	var gone []string
	for c := range stream.ListConsumers(ctx).Info() {
		if err := stream.DeleteConsumer(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		gone = append(gone, c.Name)
	}
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	return until(ctx, startWithin, func(ctx context.Context) error {
		for _, c := range gone {
			if _, err := b.s.js.Consumer(ctx, name, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// deletePieces deletes some of the stored large payloads, or pieces of them. Large requests among them that nobody has read yet are
// lost, and their jobs' answers say so; workers make their own payloads again.
func deletePieces(ctx context.Context, b *batch) error {
	stream, err := b.s.js.Stream(ctx, bus.StreamBlob)
	if err != nil {
		return err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(message.Filter(message.KindBlob)))
	if err != nil {
		return err
	}
	subjects := slices.Sorted(maps.Keys(info.State.Subjects))
	s := b.begin("some of %d blobs", len(subjects))
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	for _, subject := range subjects {
		if b.draw(2) == 0 {
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
				return err
			}
		}
	}
	return nil
}
