package streams

// Streams and consumers that somebody deleted are made again by the workers that need them, as those are that are left.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go/jetstream"
)

// Mender makes streams and consumers again that are missing.
type Mender struct {
	Bus *bus.Bus
	Log *slog.Logger

	mu sync.Mutex
}

// Mend makes the streams and consumers that are missing. What they are to be like, how long things are kept and how
// much room there is, the others tell. Where there are none, nobody has run `btn setup`, and the error wraps
// bus.ErrNoStream.
func (m *Mender) Mend(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, room, have, err := m.settingsInUse(ctx)
	if err != nil {
		return err
	}
	for _, want := range topology(c) {
		if have[want.Name] {
			continue
		}
		want.MaxBytes *= room / shares
		_, err := m.Bus.JS.CreateStream(ctx, want)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fault.New(fault.Infrastructure, "pipeline: stream %s, which is missing: %w", want.Name, err)
		}
		m.Log.Error("a stream was missing and is made again, empty: what it held is lost", "stream", want.Name)
	}
	for _, o := range objectStores(c) {
		if _, err := setupObjects(ctx, m.Bus.JS, c, o, room, false); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: %w", err)
		}
	}
	if !have[bus.StreamAnswer] { // the sweeper looks at every stored job again
		if err := m.Bus.JS.DeleteConsumer(ctx, bus.StreamModel, Sweeps.Name); err != nil && !bus.Missing(err) {
			return fault.New(fault.Infrastructure, "pipeline: sweep: %w", err)
		}
	}
	for _, f := range feeds {
		if err := m.mendConsumers(ctx, f, c); err != nil {
			return fault.New(fault.Infrastructure, "pipeline: consumers of stream %s: %w", f.Stream, err)
		}
	}
	return nil
}

func (m *Mender) mendConsumers(ctx context.Context, f Feed, c Config) error {
	s, err := m.Bus.JS.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}
	existing := map[string]bool{}
	names := s.ConsumerNames(ctx)
	for name := range names.Name() {
		existing[name] = true
	}
	if err := names.Err(); err != nil {
		return err
	}
	begin := func(*jetstream.ConsumerConfig) {}
	for _, cc := range f.consumers(c) {
		if !existing[cc.Durable] && f.Laned {
			if begin, err = m.afterAnswered(ctx, f); err != nil {
				return err
			}
			break
		}
	}
	for _, cc := range f.consumers(c) {
		if existing[cc.Durable] {
			continue
		}
		begin(&cc)
		if _, err := s.CreateConsumer(ctx, cc); err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return fmt.Errorf("consumer %s: %w", cc.Durable, err)
		}
		m.Log.Warn("a consumer was missing and is made again", "stream", f.Stream, "consumer", cc.Durable)
	}
	return nil
}

// afterAnswered has a consumer that is made anew begin behind what belongs to answered jobs, as far as the sweeper
// knows them: a day of these takes long to look up. The sweeper's own consumer begins with the first message: from
// what it acknowledges it is known which jobs are answered.
func (m *Mender) afterAnswered(ctx context.Context, f Feed) (func(*jetstream.ConsumerConfig), error) {
	all := func(*jetstream.ConsumerConfig) {}
	if f.Stream != bus.StreamModel && f.Stream != bus.StreamPartial {
		return all, nil // a work queue: what it holds is not done
	}
	s, err := m.Bus.JS.Stream(ctx, bus.StreamModel)
	if err != nil {
		return nil, err
	}
	sweeper, err := s.Consumer(ctx, Sweeps.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	models := space{StreamInfo: s.CachedInfo()}
	mark, err := (&Keeper{Bus: m.Bus, Log: m.Log}).watermark(ctx, models, sweeper.CachedInfo(), bus.TimesOf(models.Config.Metadata))
	if err != nil || mark.floor == 0 {
		return all, err
	}
	return func(cc *jetstream.ConsumerConfig) {
		if f.Stream == bus.StreamModel {
			cc.DeliverPolicy, cc.OptStartSeq = jetstream.DeliverByStartSequencePolicy, mark.floor+1
			return
		}
		before := mark.frees(bus.StreamPartial)
		cc.DeliverPolicy, cc.OptStartTime = jetstream.DeliverByStartTimePolicy, &before
	}, nil
}

// settingsInUse reads off what is there how the rest is to be.
func (m *Mender) settingsInUse(ctx context.Context) (c Config, room int64, have map[string]bool, err error) {
	c, have = Config{}.WithDefaults(), map[string]bool{}
	for _, like := range topology(c) {
		s, err := m.Bus.JS.Stream(ctx, like.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return c, 0, nil, fault.New(fault.Infrastructure, "pipeline: stream %s: %w", like.Name, err)
		}
		is := s.CachedInfo().Config
		have[like.Name] = true
		c.Replicas, c.InMemory = is.Replicas, is.Storage == jetstream.MemoryStorage
		room = max(room, is.MaxBytes/like.MaxBytes*shares)
		switch like.Name {
		case bus.StreamModel, bus.StreamAnswer:
			c.Keep = is.MaxAge
		}
		if n := is.Metadata[bus.MetadataBacklog]; n != "" {
			fmt.Sscan(n, &c.Backlog)
		}
		if is.Metadata[bus.MetadataKeepAtLeast] != "" {
			c.KeepAtLeast = bus.TimesOf(is.Metadata).Answers
		}
		for _, f := range feeds {
			if f.Stream != like.Name || !f.Laned {
				continue
			}
			if _, err := s.Consumer(ctx, f.Name); err == nil {
				c.OneConsumer = true
			}
		}
	}
	if len(have) == 0 {
		return c, 0, nil, fault.New(fault.Infrastructure, "pipeline: %w", bus.ErrNoStream)
	}
	if s, err := m.Bus.JS.Stream(ctx, bus.StreamDeadline); err == nil {
		if one, err := s.Consumer(ctx, Deadlines.Name); err == nil {
			c.AckWait = one.CachedInfo().Config.AckWait
		}
	}
	return c, room, have, nil
}
