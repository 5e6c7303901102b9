package streams

// Streams and consumers that somebody deleted are made again by the workers that need them, as
// those are that are left.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// Mender makes missing streams and consumers again.
type Mender struct {
	Bus   *bus.Bus
	Log   *slog.Logger
	Feeds []Feed // whose consumers it makes: a stage makes its own

	mending *semaphore.Weighted // of 1
	refused bool                // the server refuses the right to make anything; under mending
}

// NewMender returns a mender over a connection, of the consumers of feeds.
func NewMender(b *bus.Bus, log *slog.Logger, feeds ...Feed) *Mender {
	return &Mender{Bus: b, Log: log, Feeds: feeds, mending: semaphore.NewWeighted(1)}
}

// ErrRefused: the user may make no streams and consumers.
var ErrRefused = errors.New("streams: this user may make no streams and consumers (run `btn setup` as the operator)")

// Mend makes the streams that are missing, and the consumers of its feeds. It reads their options (retention and
// room) off the streams that are left. Where there are none, nobody has run `btn setup`, and the
// error wraps bus.ErrNoStream. Where the server refuses the right to make them, the error wraps ErrRefused, and later calls ask no more.
func (m *Mender) Mend(ctx context.Context) error {
	if err := m.mending.Acquire(ctx, 1); err != nil {
		return err
	}
	defer m.mending.Release(1)
	if m.refused {
		return fault.Wrap(fault.Infrastructure, ErrRefused)
	}

	c, room, have, err := inUse(ctx, m.Bus.Conn.JS)
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: %w", err)
	}
	if len(have) == 0 {
		return fault.New(fault.Infrastructure, "pipeline: %w", bus.ErrNoStream)
	}
	for _, f := range feeds {
		switch one, err := m.Bus.Conn.JS.Consumer(ctx, f.Stream, f.Name); {
		case err != nil:
		case f.Laned:
			c.OneConsumer = true
		case f.Name == Deadlines.Name:
			c.AckWait = one.CachedInfo().Config.AckWait
		}
	}
	c = c.WithDefaults()

	for _, want := range topology(c) {
		if have[want.Name] {
			continue
		}
		want.MaxBytes = bytesOf(want, room)
		_, err := m.Bus.Conn.JS.CreateStream(ctx, want)
		err = m.orRefused(err)
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fault.New(
				fault.Infrastructure, "pipeline: stream %s, which is missing: %w", want.Name, err,
			)
		}
		m.Log.Error(
			"a stream was missing and is made again, empty: its content is lost", "stream",
			want.Name,
		)
	}

	// Without the answers the sweeper's acknowledgements say nothing: it looks at every stored job
	// again.
	if !have[bus.StreamAnswer] {
		if err := m.Bus.Conn.JS.DeleteConsumer(
			ctx, bus.StreamModel, Sweeps.Name,
		); err != nil && !bus.Missing(err) {
			return fault.New(fault.Infrastructure, "pipeline: sweep: %w", err)
		}
	}

	for _, f := range m.Feeds {
		if err := m.mendConsumers(ctx, f, c); err != nil {
			return fault.New(
				fault.Infrastructure, "pipeline: consumers of stream %s: %w", f.Stream, err,
			)
		}
	}
	return nil
}

// orRefused returns ErrRefused in the place of an error of a request to make something, if the server refused the right to it: it tells
// the connection, and leaves the request without an answer.
func (m *Mender) orRefused(err error) error {
	if last := m.Bus.Conn.NC.LastError(); err != nil && errors.Is(last, nats.ErrPermissionViolation) && created.MatchString(last.Error()) {
		m.refused = true
		return ErrRefused
	}
	return err
}

// created is in the subjects of requests to make something.
var created = regexp.MustCompile(`(STREAM|CONSUMER)\.CREATE\.`)

// mendConsumers makes the missing consumers of a feed.
func (m *Mender) mendConsumers(ctx context.Context, f Feed, c Config) error {
	s, err := m.Bus.Conn.JS.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}

	existing, err := consumersOf(ctx, s)
	if err != nil {
		return err
	}

	var begin func(*jetstream.ConsumerConfig) // of missing ones
	for _, cc := range f.consumers(c) {
		if existing[cc.Durable] {
			continue
		}
		if begin == nil {
			if begin, err = m.afterAnswered(ctx, f); err != nil {
				return err
			}
		}
		begin(&cc)
		_, err := s.CreateConsumer(ctx, cc)
		err = m.orRefused(err)
		if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return fmt.Errorf("consumer %s: %w", cc.Durable, err)
		}
		m.Log.Warn(
			"a consumer was missing and is made again", "stream", f.Stream, "consumer", cc.Durable,
		)
	}
	return nil
}

// afterAnswered returns a function that lets a new consumer begin behind the messages of answered
// jobs, as far as the sweeper knows them: to look up the answers of a day takes long. The sweeper's
// own consumer begins with the first message, because its acknowledgements tell which jobs are
// answered.
func (m *Mender) afterAnswered(
	ctx context.Context, f Feed,
) (func(*jetstream.ConsumerConfig), error) {
	all := func(*jetstream.ConsumerConfig) {}
	if !f.Laned || f.Stream != bus.StreamModel && f.Stream != bus.StreamPartial {
		return all, nil // a work queue holds only unfinished work
	}

	info, err := m.Bus.Conn.Info(ctx, bus.StreamModel)
	if err != nil {
		return nil, err
	}
	sweeper, err := m.Bus.Conn.Consumer(ctx, bus.StreamModel, Sweeps.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}

	models := space{StreamInfo: info}
	mark, err := (&Keeper{Bus: m.Bus, Log: m.Log}).watermark(
		ctx, models, sweeper, bus.TimesOf(models.Config.Metadata),
	)
	if err != nil || mark.floor == 0 {
		return all, err
	}

	return func(cc *jetstream.ConsumerConfig) {
		if f.Stream == bus.StreamModel {
			cc.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
			cc.OptStartSeq = mark.floor + 1
			return
		}

		before := mark.frees(bus.StreamPartial)
		cc.DeliverPolicy = jetstream.DeliverByStartTimePolicy
		cc.OptStartTime = &before
	}, nil
}
