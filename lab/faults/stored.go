package faults

// Stored state is deleted: streams, consumers, buckets, objects.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/nats-io/nats.go/jetstream"
)

var storedClasses = []*class{
	{
		name: "no-stream", about: "the stream of networks, tasks, partials, controls or deadlines is deleted", every: 4 * time.Second, worth: 4,
		strike: deleteStream(bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamControl, bus.StreamDeadline),
	},
	{
		name: "no-consumers", about: "all consumers of a stage are deleted", every: 4 * time.Second, worth: 4, strike: deleteConsumers,
	},
	{
		name: "no-objects", about: "some large networks, plans and requests are deleted", every: 2 * time.Second, worth: 4,
		requests: true, strike: deleteObjects,
	},
	{
		name: "no-bucket", about: "the bucket of large payloads or of large registered models is deleted", every: 4 * time.Second, worth: 4,
		bucket: true, requests: true, strike: deleteBucket,
	},
	{
		name: "no-answers", about: "the stream of answers is deleted: jobs under way are answered, perhaps again",
		every: 4 * time.Second, worth: 10, answers: true, strike: deleteStream(bus.StreamAnswer),
	},
	{
		name: "no-models", about: "the stream of models is deleted: a client is told, and submits again",
		every: 4 * time.Second, worth: 10, models: true, strike: deleteStream(bus.StreamModel),
	},
}

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

// deleteObjects deletes some of the large payloads. Large requests among them that nobody has read yet are lost, and their jobs'
// answers say so; workers make their own payloads again.
func deleteObjects(ctx context.Context, b *batch) error {
	store, err := b.s.js.ObjectStore(ctx, bus.BucketBlob)
	if err != nil {
		return err
	}
	list, err := store.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return err
	}
	s := b.begin("some of %d objects", len(list))
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	for _, one := range list {
		if b.draw(2) == 0 {
			if err := store.Delete(ctx, one.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
				return err
			}
		}
	}
	return nil
}

func deleteBucket(ctx context.Context, b *batch) error {
	name := []string{bus.BucketBlob, bus.BucketGraph}[b.draw(2)]
	s := b.begin("%s", name)
	if err := b.s.js.DeleteObjectStore(ctx, name); err != nil {
		return err
	}
	defer func() { b.l.during(s, s.at, s.at.Add(100*time.Millisecond)) }()
	return until(ctx, startWithin, func(ctx context.Context) error { _, err := b.s.js.ObjectStore(ctx, name); return err })
}
