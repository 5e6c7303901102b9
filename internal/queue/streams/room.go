package streams

// Room in the streams: answered jobs go, the oldest first, once a stream is more than half full.
//
// Which jobs are answered the server knows: the sweeper acknowledges a model when its job has an
// answer, so all models up to the acknowledgement floor of its consumer are answered. All messages
// from before the first model above that floor belong to answered jobs. The memory between two
// looks only saves work, and purging twice is purging once: any number of aggregators may do it.

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Shares of a stream's MaxBytes. Above roomPressed its oldest messages are purged, down to roomLow.
// Above roomLow jobs that take long are moved to the end. Above roomRefused clients are refused
// (bus.Room). Above roomFull the jobs that wait before the first stage may themselves prevent
// purging, and are moved as well.
const (
	roomPressed = 0.5
	roomLow     = 0.375
	roomFull    = 0.875
)

// roomEvery is the interval at which the streams are looked at, or less where answers are kept for seconds only. While none changes and
// none is pressed it doubles, up to roomIdle: beyond roomRefused clients are refused, whoever looks.
const (
	roomEvery = time.Second
	roomIdle  = 4 * time.Second
)

// grown lists the streams that grow with every job and are not emptied by acknowledgements.
var grown = []string{
	bus.StreamModel,
	bus.StreamPartial,
	bus.StreamAnswer,
	bus.StreamBlob,
	bus.StreamDeadline,
}

// Keeper makes room in the streams. It runs in an aggregator.
type Keeper struct {
	Bus        *bus.Bus
	Log        *slog.Logger
	SweepAfter time.Duration // the age at which a job is looked after; negative: never

	// Tell is called after every look, with the age of the oldest job that has no answer; it may be
	// nil.
	Tell func(rooms map[string]Room, oldest time.Duration)

	rates map[string]*rate
	idle  time.Duration     // the pause that grew while nothing changed
	ends  map[string]uint64 // sequences of the streams' last messages, as seen last
	// All models up to this sequence were found answered, perhaps above the sweeper's floor, in the
	// stream that was created at that time.
	answered uint64
	created  time.Time

	mu    sync.Mutex
	crowd Crowd // under mu
}

// Crowd is the sweeper's information about the streams.
type Crowd struct {
	Before time.Time // jobs stored before this are in the way; zero: none is
	Times  bus.Times
	Many   bool // there are too many jobs without answer to look at them often
	Full   bool // jobs that wait before the first stage are in the way as well
}

// manyUnanswered is the number of jobs without answer up to which the sweeper looks at each as
// often as its age suggests.
const manyUnanswered = 1000

// Watch makes room until ctx ends.
func (k *Keeper) Watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.look(ctx); err != nil && ctx.Err() == nil {
			k.Bus.Conn.Trouble.Warn(k.Log, "cannot make room", "error", err)
		}
		bus.Pause(ctx, k.rest())
	}
	return nil
}

// rest returns the pause until the next look.
func (k *Keeper) rest() time.Duration {
	rest := max(roomEvery, k.idle)
	if times := k.Crowded().Times; times.Margin > 0 {
		return min(rest, times.Margin)
	}
	return rest
}

// lull notes whether streams have changed since the last look.
func (k *Keeper) lull(spaces map[string]space) {
	still, ends := true, map[string]uint64{}
	for name, s := range spaces {
		if name != bus.StreamBlob { // where probes are stored
			ends[name] = s.State.LastSeq
		}
		still = still && s.used <= roomPressed && ends[name] == k.ends[name]
	}
	if k.ends = ends; still {
		k.idle = min(2*max(roomEvery, k.idle), roomIdle)
	} else {
		k.idle = 0
	}
}

// space is a stream as the server describes it.
type space struct {
	*jetstream.StreamInfo
	used float64 // share of MaxBytes; 0 for a stream without limit
}

// target returns the sequence up to which a stream that is too full would be purged to be at
// roomLow if all messages were of one size; 0: it is not too full.
func (s space) target() uint64 {
	if s.used <= roomPressed || s.State.Msgs == 0 {
		return 0
	}

	// With share u used, of n messages n (u − low) / u go.
	all := float64(s.State.LastSeq - s.State.FirstSeq + 1)
	return s.State.FirstSeq + uint64(all*(s.used-roomLow)/s.used)
}

// look looks at the streams once, and makes room where it is needed.
func (k *Keeper) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	spaces := map[string]space{}
	for _, name := range grown {
		info, err := k.Bus.Conn.Info(ctx, name)
		if err != nil {
			return err
		}

		one := space{StreamInfo: info}
		if most := info.Config.MaxBytes; most > 0 {
			one.used = float64(info.State.Bytes) / float64(most)
		}
		spaces[name] = one
	}

	// The streams were asked before the sweeper: its floor holds for all messages that they held.
	models := spaces[bus.StreamModel]
	times := bus.TimesOf(models.Config.Metadata)
	sweeper, err := k.Bus.Conn.Consumer(ctx, bus.StreamModel, Sweeps.Name)
	if err != nil {
		return err
	}
	w, err := k.watermark(ctx, models, sweeper, times)
	if err != nil {
		return err
	}

	k.note(spaces, sweeper, w)
	k.lull(spaces)
	return k.purge(ctx, spaces, w)
}

// watermark bounds the messages that belong to answered jobs only.
type watermark struct {
	asked  time.Time // the server's clock when it described the streams
	floor  uint64    // models up to this sequence are answered
	oldest time.Time // when the first model above the floor was stored; asked, if there is none
	times  bus.Times
}

// frees returns the time before which all messages of a stream may be purged.
func (w watermark) frees(stream string) time.Time {
	before := w.oldest.Add(-w.times.Margin)
	switch stream {
	case bus.StreamModel:
		if grace := w.asked.Add(-w.times.Grace); grace.Before(w.oldest) {
			return grace
		}
		return w.oldest
	case bus.StreamAnswer:
		if keep := w.asked.Add(-w.times.Answers); keep.Before(before) {
			return keep
		}
	case bus.StreamBlob:
		return before.Add(-w.times.Renew)
	}
	return before
}

// watermark computes the watermark from answers of the server: first about the streams, then about
// the floor, then about the models above it.
func (k *Keeper) watermark(
	ctx context.Context, models space, sweeper *jetstream.ConsumerInfo, times bus.Times,
) (watermark, error) {
	w := watermark{
		asked:  models.TimeStamp,
		floor:  sweeper.AckFloor.Stream,
		oldest: models.TimeStamp,
		times:  times,
	}
	if w.floor >= models.State.LastSeq {
		return w, nil
	}

	if !models.Created.Equal(k.created) { // a recreated stream counts from 1 again
		k.created = models.Created
		k.answered = 0
	}
	w.floor = max(w.floor, k.answered)
	for range answeredAtOnce {
		first, err := k.Bus.Log.From(ctx, bus.StreamModel, w.floor+1, time.Time{})
		if errors.Is(err, bus.ErrNotFound) {
			w.oldest = models.TimeStamp
			return w, nil
		}
		if err != nil {
			return w, err
		}

		if w.oldest = models.TimeStamp; first.Time.Before(w.oldest) {
			w.oldest = first.Time
		}

		// Only models that the sweeper should have looked at by now are looked up.
		if k.SweepAfter < 0 || w.asked.Sub(first.Time) <= 2*k.SweepAfter {
			return w, nil
		}
		if answered, err := k.isAnswered(ctx, first.Subject); err != nil || !answered {
			return w, err
		}
		w.floor = first.Sequence
		k.answered = first.Sequence
	}
	return w, nil
}

// answeredAtOnce is the number of answered jobs above the floor that one look passes at most.
const answeredAtOnce = 1000

// isAnswered reports whether the job of a model has its answer. It is asked where the sweeper
// should have acknowledged the model: the server may leave an acknowledgement floor unchanged for a
// minute and longer although all above it is acknowledged, when the message it waited for was moved
// (nats-server 2.15.2, checkPending).
func (k *Keeper) isAnswered(ctx context.Context, subject string) (bool, error) {
	model, err := message.ParseSubject(subject)
	if err != nil {
		return false, nil // not a subject of this program
	}
	return k.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(model.Job))
}

// purge removes the oldest messages from the streams that are too full. A model goes before its
// answer, so that a job id is taken for as long as either is there; where answers need room the
// models before them go.
func (k *Keeper) purge(ctx context.Context, spaces map[string]space, w watermark) error {
	to := spaces[bus.StreamModel].target()
	answers := spaces[bus.StreamAnswer].target()
	if answers > 0 {
		last, err := k.Bus.Log.From(ctx, bus.StreamAnswer, answers, time.Time{})
		if errors.Is(err, bus.ErrNotFound) {
			last.Time, err = w.asked, nil
		}
		if err != nil {
			return err
		}

		before, err := k.before(ctx, spaces[bus.StreamModel], last.Time.Add(w.times.Margin))
		if err != nil {
			return err
		}
		to = max(to, before)
	}

	if to > 0 {
		old, err := k.before(ctx, spaces[bus.StreamModel], w.frees(bus.StreamModel))
		if err != nil {
			return err
		}
		if err := k.purgeTo(ctx, spaces[bus.StreamModel], min(to, old, w.floor+1)); err != nil {
			return err
		}
	}

	if answers > 0 {
		if err := k.purgeAnswers(ctx, spaces[bus.StreamAnswer], answers, w); err != nil {
			return err
		}
	}

	// The others do not depend on each other.
	for _, name := range []string{bus.StreamPartial, bus.StreamDeadline, bus.StreamBlob} {
		if err := k.purgeBefore(
			ctx, spaces[name], spaces[name].target(), w.frees(name),
		); err != nil {
			return err
		}
	}
	return nil
}

// purgeAnswers removes answers that were kept for long enough and whose models are gone, that is
// those stored before the first model that is left.
func (k *Keeper) purgeAnswers(ctx context.Context, answers space, to uint64, w watermark) error {
	before := w.frees(bus.StreamAnswer)
	first, err := k.Bus.Log.From(ctx, bus.StreamModel, 1, time.Time{})
	if errors.Is(err, bus.ErrNotFound) {
		first.Time, err = w.asked, nil
	}
	if err != nil {
		return err
	}

	if left := first.Time.Add(-w.times.Margin); left.Before(before) {
		before = left
	}
	return k.purgeBefore(ctx, answers, to, before)
}

// purgeBefore removes the messages below a sequence that are older than a time.
func (k *Keeper) purgeBefore(ctx context.Context, s space, to uint64, at time.Time) error {
	if to == 0 {
		return nil
	}

	old, err := k.before(ctx, s, at)
	if err != nil {
		return err
	}
	return k.purgeTo(ctx, s, min(to, old))
}

// before returns the sequence below which all messages are older than a time.
func (k *Keeper) before(ctx context.Context, s space, at time.Time) (uint64, error) {
	first, err := k.Bus.Log.From(ctx, s.Config.Name, 0, at)
	if errors.Is(err, bus.ErrNotFound) {
		return s.State.LastSeq + 1, nil
	}
	return first.Sequence, err
}

// purgeTo removes the messages below a sequence.
func (k *Keeper) purgeTo(ctx context.Context, s space, sequence uint64) error {
	if sequence <= s.State.FirstSeq {
		return nil
	}

	k.Log.Debug("making room", "stream", s.Config.Name, "from", s.State.FirstSeq, "below", sequence)
	return k.Bus.Log.Purge(ctx, s.Config.Name, "", sequence)
}

// note tells the sweeper which jobs are in the way, and the metrics the room.
func (k *Keeper) note(spaces map[string]space, sweeper *jetstream.ConsumerInfo, w watermark) {
	c := Crowd{Times: w.times, Many: sweeper.NumAckPending > manyUnanswered}
	for _, s := range spaces {
		// Where many jobs have no answer they are no stragglers: moving them would make no room, unless
		// the full stream is behind them.
		full := s.used > roomFull && s.Config.Name != bus.StreamModel

		c.Full = c.Full || full
		most := max(s.State.Msgs, spaces[bus.StreamModel].State.Msgs)
		if s.used <= roomLow || !full && 2*uint64(sweeper.NumAckPending) >= most {
			continue
		}

		// The jobs of the oldest two thirds of the stream's time are in the way.
		if late := w.asked.Add(-w.asked.Sub(s.State.FirstTime) / 3); late.After(c.Before) {
			c.Before = late
		}
	}

	// No job is in the way before its model has been kept for the grace.
	if old := w.asked.Add(-w.times.Grace); old.Before(c.Before) {
		c.Before = old
	}

	k.mu.Lock()
	k.crowd = c
	k.mu.Unlock()

	if k.Tell != nil {
		k.Tell(k.measure(spaces, w), w.asked.Sub(w.oldest))
	}
}

// Crowded returns the last one seen.
func (k *Keeper) Crowded() Crowd {
	if k == nil {
		return Crowd{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.crowd
}
