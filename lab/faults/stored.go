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
		err := until(ctx, startWithin, func(ctx context.Context) error {
			err := b.s.js.DeleteStream(ctx, name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
		return until(ctx, startWithin, func(ctx context.Context) error { _, err := b.s.js.Stream(ctx, name); return err })
	}
}

func deleteConsumers(ctx context.Context, b *batch) error {
	streams := []string{bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamControl}
	name := streams[b.draw(len(streams))]
	s := b.begin("%s", name)
	gone := map[string]bool{}
	err := until(ctx, startWithin, func(ctx context.Context) error {
		stream, err := b.s.js.Stream(ctx, name)
		if err != nil {
			return err
		}
		all := stream.ListConsumers(ctx)
		for c := range all.Info() {
			if gone[c.Name] {
				continue // it is there again
			}
			if err := stream.DeleteConsumer(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
			gone[c.Name] = true
		}
		if err := all.Err(); !errors.Is(err, jetstream.ErrEndOfData) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	return until(ctx, startWithin, func(ctx context.Context) error {
		for c := range gone {
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
	var stream jetstream.Stream
	var subjects []string
	err := until(ctx, startWithin, func(ctx context.Context) (err error) {
		if stream, err = b.s.js.Stream(ctx, bus.StreamBlob); err != nil {
			return err
		}
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(message.Filter(message.KindBlob)))
		if err != nil {
			return err
		}
		subjects = slices.Sorted(maps.Keys(info.State.Subjects))
		return nil
	})
	if err != nil {
		return err
	}
	s := b.begin("some of %d blobs", len(subjects))
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	for _, subject := range subjects {
		if b.draw(2) == 0 {
			purge := func(ctx context.Context) error { return stream.Purge(ctx, jetstream.WithPurgeSubject(subject)) }
			if err := until(ctx, startWithin, purge); err != nil {
				return err
			}
		}
	}
	return nil
}
