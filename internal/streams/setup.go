package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// The room tried for all streams together when Config.MaxBytes is 0, and the least that makes sense.
const (
	roomInFiles  = int64(16) << 30
	roomInMemory = int64(4) << 30
	leastRoom    = int64(64) << 20
)

// Setup creates the streams and consumers that are missing and brings the others up to date. It may be called at any
// time, by any number of processes. Streams that exist keep their size unless Config.MaxBytes is given. Without it the room
// is halved from 16 GiB (4 GiB in memory) until the server reserves it.
func Setup(ctx context.Context, nc *nats.Conn, c Config) error {
	c = c.WithDefaults()
	js, err := jetstream.New(nc)
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: setup: %w", err)
	}
	room := c.MaxBytes
	if room == 0 {
		room = roomInFiles
		if c.InMemory {
			room = roomInMemory
		}
	}
	for {
		created, err := setupStreams(ctx, js, c, room)
		if err == nil {
			break
		}
		if !lacksRoom(err) || c.MaxBytes > 0 || room/2 < leastRoom {
			return fault.New(fault.Infrastructure, "pipeline: setup with %d MiB for all streams: %w", room>>20, err)
		}
		for _, name := range created { // they are empty: this call made them
			if err := js.DeleteStream(ctx, name); err != nil {
				return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", name, err)
			}
		}
		room /= 2
	}
	for _, f := range feeds {
		if err := setupConsumers(ctx, js, f, c); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: setup: stream %s: %w", f.Stream, err)
		}
	}
	return nil
}

// setupTries is how often consumers are set up that others make or delete at the same time: every worker makes those anew that it
// misses once.
const setupTries = 100

// meanwhile reports whether the server refused a consumer because somebody else made or deleted one after it was looked up: it is there or
// gone, or another of the work queue takes the same subjects.
func meanwhile(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerDoesNotExist) ||
		errors.As(err, &api) && (api.ErrorCode == 10099 || api.ErrorCode == 10100)
}

// lacksRoom reports whether the server refused to reserve that many bytes.
func lacksRoom(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode {
	case 10002, 10023, 10028, 10047: // account, server, memory, storage
		return true
	}
	return false
}

func setupStreams(ctx context.Context, js jetstream.JetStream, c Config, room int64) (created []string, err error) {
	for _, o := range objectStores(c) { // first: what becomes smaller makes room for what becomes larger
		fresh, err := setupObjects(ctx, js, c, o, room, c.MaxBytes > 0)
		if err != nil {
			return created, err
		}
		if fresh {
			created = append(created, o.stream)
		}
	}
	for _, want := range topology(c) {
		want.MaxBytes *= room / shares
		fresh, err := setupStream(ctx, js, want, c.MaxBytes > 0)
		if err != nil {
			return created, fmt.Errorf("stream %s: %w", want.Name, err)
		}
		if fresh {
			created = append(created, want.Name)
		}
	}
	return created, nil
}

// setupObjects creates an object store if it is missing, or gives it its size if it is to have that.
func setupObjects(ctx context.Context, js jetstream.JetStream, c Config, o objectStore, room int64, resize bool) (fresh bool, err error) {
	s, err := js.Stream(ctx, o.stream)
	if err == nil && resize {
		have := s.CachedInfo().Config
		have.MaxBytes = o.MaxBytes * (room / shares)
		_, err = js.UpdateStream(ctx, have)
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		fresh, o.MaxBytes = true, o.MaxBytes*(room/shares)
		_, err = js.CreateOrUpdateObjectStore(ctx, o.ObjectStoreConfig)
	}
	if err != nil {
		return false, fmt.Errorf("object store %s: %w", o.Bucket, err)
	}
	return fresh, nil
}

// setupStream creates a stream or updates what may be updated: storage and retention of an existing one stay.
func setupStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, resize bool) (fresh bool, err error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, want)
		return err == nil, err
	}
	if err != nil {
		return false, err
	}
	have := s.CachedInfo().Config
	if old := have.Metadata[bus.MetadataBacklog]; old != "" && want.Metadata[bus.MetadataBacklog] == "0" {
		want.Metadata[bus.MetadataBacklog] = old
	}
	if old := have.Metadata[bus.MetadataKeepAtLeast]; old != "" && want.Metadata[bus.MetadataKeepAtLeast] == "" {
		want.Metadata[bus.MetadataKeepAtLeast] = old
	}
	want.Storage, want.Retention, want.PersistMode = have.Storage, have.Retention, have.PersistMode
	if !resize {
		want.MaxBytes = have.MaxBytes
	}
	_, err = js.UpdateStream(ctx, want)
	return false, err
}

// setupConsumers makes the feed's consumers and removes those of the other split: on a work queue the two would overlap. It begins again
// where others make or delete consumers at the same time.
func setupConsumers(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	err := setupConsumersOnce(ctx, js, f, c)
	for tries := 0; tries < setupTries && meanwhile(err); tries++ {
		err = setupConsumersOnce(ctx, js, f, c)
	}
	return err
}

func setupConsumersOnce(ctx context.Context, js jetstream.JetStream, f Feed, c Config) error {
	s, err := js.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, cc := range f.consumers(c) {
		wanted[cc.Durable] = true
	}
	other := c
	other.OneConsumer = !c.OneConsumer
	names := s.ConsumerNames(ctx)
	existing := map[string]bool{}
	for name := range names.Name() {
		existing[name] = true
	}
	if err := names.Err(); err != nil {
		return err
	}
	for _, cc := range f.consumers(other) {
		if existing[cc.Durable] && !wanted[cc.Durable] {
			if err := s.DeleteConsumer(ctx, cc.Durable); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return err
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(wire.Lanes)
	for _, cc := range f.consumers(c) {
		g.Go(func() error {
			set := s.CreateConsumer
			if is, err := s.Consumer(ctx, cc.Durable); err == nil { // where it began is not to be changed
				have := is.CachedInfo().Config
				cc.DeliverPolicy, cc.OptStartSeq, cc.OptStartTime = have.DeliverPolicy, have.OptStartSeq, have.OptStartTime
				set = s.UpdateConsumer
			} else if !errors.Is(err, jetstream.ErrConsumerNotFound) {
				return fmt.Errorf("consumer %s: %w", cc.Durable, err)
			}
			if _, err := set(ctx, cc); err != nil {
				return fmt.Errorf("consumer %s: %w", cc.Durable, err)
			}
			return nil
		})
	}
	return g.Wait()
}
