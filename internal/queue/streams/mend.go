package streams

// Streams and consumers that somebody deleted are made again by the workers that need them, with the options of the
// streams that are left.

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
	Feeds []Feed // the feeds whose consumers it makes: a stage makes its own

	turn      *semaphore.Weighted // of 1: held by the one call of Mend that works
	isRefused bool                // the server refuses the right to make anything; under turn
}

// NewMender returns a mender for streams and for the consumers of feeds.
func NewMender(b *bus.Bus, log *slog.Logger, feeds ...Feed) *Mender {
	return &Mender{Bus: b, Log: log, Feeds: feeds, turn: semaphore.NewWeighted(1)}
}

// ErrRefused means that the user may make no streams and consumers.
var ErrRefused = errors.New("streams: this user may make no streams and consumers (run `btn setup` as the operator)")

// Mend makes the streams that are missing, and the missing consumers of its feeds. Their options (retention and room)
// are those of the streams that are left. If there are none, nobody has run `btn setup`, and the error wraps
// bus.ErrNoStream. If the server refuses the right to make them, the error wraps ErrRefused, and later calls do not ask
// again.
func (m *Mender) Mend(ctx context.Context) error {
	if err := m.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer m.turn.Release(1)
	if m.isRefused {
		return fault.Wrap(fault.Infrastructure, ErrRefused)
	}

	c, room, existing, err := existingOptions(ctx, m.Bus.Conn.JS)
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: %w", err)
	}
	if len(existing) == 0 {
		return fault.New(fault.Infrastructure, "pipeline: %w", bus.ErrNoStream)
	}
	c = m.consumerOptions(ctx, c).WithDefaults()
	if err := m.makeStreams(ctx, c, room, existing); err != nil {
		return err
	}

	// The sweeper has acknowledged jobs with an answer. If the answers are lost, it has to look at every stored job again, so
	// delete its consumer, which is made again from the start.
	if !existing[bus.StreamAnswer] {
		err := m.Bus.Conn.JS.DeleteConsumer(ctx, bus.StreamModel, Sweeps.Name)
		if err != nil && !bus.IsMissing(err) {
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

// consumerOptions returns c with the options that existing consumers show: OneConsumer if a feed that may have a
// consumer per lane has one over all lanes, and the AckWait of the consumer of deadlines.
func (m *Mender) consumerOptions(ctx context.Context, c Config) Config {
	for _, f := range feeds {
		switch consumer, err := m.Bus.Conn.JS.Consumer(ctx, f.Stream, f.Name); {
		case err != nil: // there is no such consumer, or it cannot be found out
		case f.MayHaveLanes:
			c.OneConsumer = true
		case f.Name == Deadlines.Name:
			c.AckWait = consumer.CachedInfo().Config.AckWait
		}
	}
	return c
}

// makeStreams makes the streams that are not among the existing ones. room is the number of bytes for all streams.
func (m *Mender) makeStreams(ctx context.Context, c Config, room int64, existing map[string]bool) error {
	for _, config := range topology(c) {
		if existing[config.Name] {
			continue
		}
		config.MaxBytes = streamBytes(config, room)
		_, err := m.Bus.Conn.JS.CreateStream(ctx, config)
		err = m.asRefusal(err)                                                  // ErrRefused if this user may not make it
		if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // a name in use: another worker was faster
			return fault.New(
				fault.Infrastructure, "pipeline: stream %s, which is missing: %w", config.Name, err,
			)
		}
		m.Log.Error(
			"a stream was missing and is made again, empty: its content is lost", "stream",
			config.Name,
		)
	}
	return nil
}

// asRefusal returns ErrRefused instead of err if the server refused the right to make a stream or a consumer, and sets
// isRefused. The server does not answer such a request; it reports the refusal as an error of the connection, which the
// connection keeps as its last one. Other errors are returned as they are.
func (m *Mender) asRefusal(err error) error {
	last := m.Bus.Conn.NC.LastError()
	if err != nil && errors.Is(last, nats.ErrPermissionViolation) && createRequest.MatchString(last.Error()) {
		m.isRefused = true
		return ErrRefused
	}
	return err
}

// createRequest matches the subjects of requests to make a stream or a consumer.
var createRequest = regexp.MustCompile(`(STREAM|CONSUMER)\.CREATE\.`)

// mendConsumers makes the missing consumers of a feed.
func (m *Mender) mendConsumers(ctx context.Context, f Feed, c Config) error {
	s, err := m.Bus.Conn.JS.Stream(ctx, f.Stream)
	if err != nil {
		return err
	}

	existing, err := consumerNames(ctx, s)
	if err != nil {
		return err
	}

	var setStart func(*jetstream.ConsumerConfig) // sets where a missing consumer begins; found out once, if any is missing
	for _, cc := range f.consumerConfigs(c) {
		if existing[cc.Durable] {
			continue
		}
		if setStart == nil {
			if setStart, err = m.skipAnswered(ctx, f); err != nil {
				return err
			}
		}
		setStart(&cc)
		_, err := s.CreateConsumer(ctx, cc)
		err = m.asRefusal(err) // ErrRefused if this user may not make it
		if err != nil && !errors.Is(err, jetstream.ErrConsumerExists) {
			return fmt.Errorf("consumer %s: %w", cc.Durable, err)
		}
		m.Log.Warn(
			"a consumer was missing and is made again", "stream", f.Stream, "consumer", cc.Durable,
		)
	}
	return nil
}

// skipAnswered returns a function that sets where a new consumer of a feed begins: behind the messages of answered jobs.
// Otherwise the workers would look up the answers of a day, which takes long. The sweeper acknowledges a job's model when
// the job has its answer, so the sweeper's acknowledgements tell which jobs are answered. Therefore the sweeper's own
// consumer begins with the first message.
func (m *Mender) skipAnswered(
	ctx context.Context, f Feed,
) (func(*jetstream.ConsumerConfig), error) {
	fromStart := func(*jetstream.ConsumerConfig) {} // a new consumer begins with the first message by default
	if !f.MayHaveLanes || f.Stream != bus.StreamModel && f.Stream != bus.StreamPartial {
		return fromStart, nil // the sweeper's, or of a work queue, which holds only unfinished work
	}
	mark, err := m.sweptMark(ctx) // mark.floor: the jobs of all models up to this sequence are answered
	if err != nil || mark.floor == 0 {
		return fromStart, err
	}
	if f.Stream == bus.StreamModel {
		return func(cc *jetstream.ConsumerConfig) {
			cc.DeliverPolicy = jetstream.DeliverByStartSequencePolicy
			cc.OptStartSeq = mark.floor + 1 // the first model whose job may have no answer
		}, nil
	}
	return func(cc *jetstream.ConsumerConfig) {
		before := mark.purgeableBefore(bus.StreamPartial)
		cc.DeliverPolicy = jetstream.DeliverByStartTimePolicy
		cc.OptStartTime = &before
	}, nil
}

// sweptMark returns the watermark of the stored models: the jobs of all models up to its floor have their answers. It
// returns the zero watermark, whose floor is 0, if there is no sweeper.
func (m *Mender) sweptMark(ctx context.Context) (mark watermark, err error) {
	info, err := m.Bus.Conn.Info(ctx, bus.StreamModel)
	if err != nil {
		return mark, err
	}
	sweeper, err := m.Bus.Conn.Consumer(ctx, bus.StreamModel, Sweeps.Name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return mark, nil
	}
	if err != nil {
		return mark, err
	}
	models := streamState{StreamInfo: info}
	// This Keeper has SweepAfter 0: it looks for answers of models of any age.
	return (&Keeper{Bus: m.Bus, Log: m.Log}).computeWatermark(ctx, models, sweeper, bus.TimesOf(models.Config.Metadata))
}
