package streams

// Making room in the streams: once a stream is more than half full, messages of answered jobs are purged, the oldest
// first.
//
// The server knows which jobs are answered: the sweeper acknowledges a model when its job has an answer, so all models
// up to the acknowledgement floor of its consumer are answered. All messages that are older than the first model above
// that floor belong to answered jobs. Any number of aggregators may purge at the same time, because purging twice
// changes nothing.

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

// roomEvery is the interval at which the streams are looked at, or less where answers are kept for seconds only. While
// none changes and none is pressed it doubles, up to roomIdle: beyond roomRefused clients are refused, whoever looks.
const (
	roomEvery = time.Second
	roomIdle  = 4 * time.Second
)

// growingStreams are the streams that grow with every job and are not emptied by acknowledgements.
var growingStreams = []string{
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
	SweepAfter time.Duration // the age at which the sweeper looks at a job; negative: never

	// Tell, unless it is nil, is called after every look with the streams' room and the age of the oldest job without answer.
	Tell func(rooms map[string]Room, oldest time.Duration)

	rates         map[string]*arrivalRate
	idlePause     time.Duration     // the pause that grew while nothing changed
	lastSequences map[string]uint64 // sequences of the streams' last messages, as seen last
	// All models up to this sequence were found answered, perhaps above the sweeper's floor, in the
	// stream that was created at that time.
	answeredUpTo  uint64
	modelsCreated time.Time

	mu    sync.Mutex
	crowd Crowd // under mu
}

// Crowd is what the sweeper needs to know about the streams.
type Crowd struct {
	Before time.Time // jobs without answer that were stored before this keep a full stream from being purged; zero: none does
	Times  bus.Times
	Many   bool // there are too many jobs without answer to look at them often
	Full   bool // jobs that wait before the first stage keep a full stream from being purged, too
}

// maxUnanswered is the number of jobs without answer up to which the sweeper looks at each as often as its age
// suggests.
const maxUnanswered = 1000

// Watch looks at the streams and makes room until ctx ends.
func (k *Keeper) Watch(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := k.makeRoom(ctx); err != nil && ctx.Err() == nil {
			k.Bus.Conn.Trouble.Warn(k.Log, "cannot make room", "error", err)
		}
		bus.Pause(ctx, k.pauseUntilLook())
	}
	return nil
}

// pauseUntilLook returns the pause until the next look at the streams.
func (k *Keeper) pauseUntilLook() time.Duration {
	pause := max(roomEvery, k.idlePause)
	if times := k.Crowded().Times; times.Margin > 0 {
		return min(pause, times.Margin)
	}
	return pause
}

// noteChanges sets the pause between looks. It doubles, up to roomIdle, if no stream has changed since the last look and
// none is fuller than roomPressed, above which its oldest messages are purged. Otherwise it is short again.
func (k *Keeper) noteChanges(states map[string]streamState) {
	isQuiet, lastSequences := true, map[string]uint64{}
	for name, s := range states {
		if name != bus.StreamBlob { // it always changes, because probes are stored there
			lastSequences[name] = s.State.LastSeq
		}
		isQuiet = isQuiet && s.usedShare <= roomPressed && lastSequences[name] == k.lastSequences[name]
	}
	if k.lastSequences = lastSequences; isQuiet {
		k.idlePause = min(2*max(roomEvery, k.idlePause), roomIdle)
	} else {
		k.idlePause = 0
	}
}

// streamState is a stream as the server describes it.
type streamState struct {
	*jetstream.StreamInfo
	usedShare float64 // share of MaxBytes; 0 for a stream without limit
}

// purgeTarget returns the sequence below which the messages of a stream would have to go so that its used share falls
// to roomLow, if all messages were of one size. It is 0 if the stream's used share is at most roomPressed. If the n
// messages of a stream use the share u, a message uses u/n, so n (u − roomLow) / u messages have to go.
func (s streamState) purgeTarget() uint64 {
	if s.usedShare <= roomPressed || s.State.Msgs == 0 {
		return 0
	}

	all := float64(s.State.LastSeq - s.State.FirstSeq + 1)
	return s.State.FirstSeq + uint64(all*(s.usedShare-roomLow)/s.usedShare)
}

// makeRoom looks at the streams once, and purges those that are too full.
func (k *Keeper) makeRoom(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()

	streams := map[string]streamState{}
	for _, name := range growingStreams {
		info, err := k.Bus.Conn.Info(ctx, name)
		if err != nil {
			return err
		}

		stream := streamState{StreamInfo: info}
		if limit := info.Config.MaxBytes; limit > 0 {
			stream.usedShare = float64(info.State.Bytes) / float64(limit)
		}
		streams[name] = stream
	}

	// The streams were asked before the sweeper, so its floor, up to which the jobs of all models are answered, is not older
	// than what is known about their messages.
	models := streams[bus.StreamModel]
	times := bus.TimesOf(models.Config.Metadata)
	sweeper, err := k.Bus.Conn.Consumer(ctx, bus.StreamModel, Sweeps.Name)
	if err != nil {
		return err
	}
	mark, err := k.computeWatermark(ctx, models, sweeper, times)
	if err != nil {
		return err
	}

	k.noteCrowd(streams, sweeper, mark)
	k.noteChanges(streams)
	return k.purgeAll(ctx, streams, mark)
}

// watermark bounds the messages that belong to answered jobs only. A job is open while it has no answer.
type watermark struct {
	askedAt   time.Time // the server's clock when it described the streams
	floor     uint64    // the jobs of all models up to this sequence are answered
	firstOpen time.Time // when the first model above the floor was stored; askedAt if there is none
	times     bus.Times
}

// purgeableBefore returns the time before which all messages of a stream may be purged. Models may be purged if they are
// older than the first model whose job has no answer, other messages if they are older by Margin. Models also have to be
// kept for Grace, answers for Answers, and blobs for Renew longer than other messages.
func (w watermark) purgeableBefore(stream string) time.Time {
	limit := w.firstOpen.Add(-w.times.Margin)
	switch stream {
	case bus.StreamModel:
		if grace := w.askedAt.Add(-w.times.Grace); grace.Before(w.firstOpen) {
			return grace
		}
		return w.firstOpen
	case bus.StreamAnswer:
		if keep := w.askedAt.Add(-w.times.Answers); keep.Before(limit) {
			return keep
		}
	case bus.StreamBlob:
		return limit.Add(-w.times.Renew)
	}
	return limit
}

// computeWatermark computes the watermark, up to which the jobs of all models are answered. It starts at the sweeper's
// floor, the sequence up to which the sweeper has acknowledged all models, and is raised past answered models above that.
// models is the server's description of their stream; it has to be older than the sweeper's floor.
func (k *Keeper) computeWatermark(
	ctx context.Context, models streamState, sweeper *jetstream.ConsumerInfo, times bus.Times,
) (watermark, error) {
	mark := watermark{
		askedAt:   models.TimeStamp,
		floor:     sweeper.AckFloor.Stream,
		firstOpen: models.TimeStamp,
		times:     times,
	}
	if mark.floor >= models.State.LastSeq {
		return mark, nil
	}

	if !models.Created.Equal(k.modelsCreated) { // a recreated stream counts from 1 again
		k.modelsCreated = models.Created
		k.answeredUpTo = 0
	}

	mark.floor = max(mark.floor, k.answeredUpTo)
	err := k.raiseFloor(ctx, &mark)
	return mark, err
}

// raiseFloor raises mark.floor, the sequence up to which the jobs of all models are answered, over models whose jobs are
// answered although the sweeper has not acknowledged them. It sets mark.firstOpen to the time of the first model above the
// floor. It looks up only models that the sweeper should have looked at by now: those older than twice SweepAfter.
func (k *Keeper) raiseFloor(ctx context.Context, mark *watermark) error {
	for range maxAnsweredSteps {
		firstModel, err := k.Bus.Log.FirstFrom(ctx, bus.StreamModel, mark.floor+1, time.Time{})
		if errors.Is(err, bus.ErrNotFound) {
			mark.firstOpen = mark.askedAt
			return nil
		}
		if err != nil {
			return err
		}

		// A model that was stored after the streams were described does not count yet.
		if mark.firstOpen = mark.askedAt; firstModel.Time.Before(mark.firstOpen) {
			mark.firstOpen = firstModel.Time
		}

		// Without a sweeper (SweepAfter < 0) no model is looked up.
		if k.SweepAfter < 0 || mark.askedAt.Sub(firstModel.Time) <= 2*k.SweepAfter {
			return nil
		}
		if isAnswered, err := k.isAnswered(ctx, firstModel.Subject); err != nil || !isAnswered {
			return err
		}
		mark.floor = firstModel.Sequence
		k.answeredUpTo = firstModel.Sequence
	}
	return nil
}

// maxAnsweredSteps bounds the number of answered jobs by which one look raises the floor.
const maxAnsweredSteps = 1000

// isAnswered reports whether the job of the model on a subject has its answer. It is asked for models that the sweeper
// should have acknowledged: if the message that an acknowledgement floor waited for was moved, the server may leave the
// floor unchanged for a minute and longer, although all above it is acknowledged (nats-server 2.15.2, checkPending).
func (k *Keeper) isAnswered(ctx context.Context, subject string) (bool, error) {
	model, err := message.ParseSubject(subject)
	if err != nil {
		return false, nil // not a subject of this program
	}
	return k.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(model.Job))
}

// purgeAll removes the oldest messages from the streams that are too full. Each such stream has a target, the sequence
// below which messages have to go, or 0 if it has room. A model goes before its answer, so that a job's id stays taken
// while either is there. So if the answers need room, the models before them go first.
func (k *Keeper) purgeAll(ctx context.Context, states map[string]streamState, mark watermark) error {
	models := states[bus.StreamModel]
	target := models.purgeTarget()
	answersTarget := states[bus.StreamAnswer].purgeTarget()
	if answersTarget > 0 {
		sequence, err := k.firstModelAfter(ctx, models, answersTarget, mark)
		if err != nil {
			return err
		}
		target = max(target, sequence)
	}

	if target > 0 {
		purgeable, err := k.firstNotBefore(ctx, models, mark.purgeableBefore(bus.StreamModel))
		if err != nil {
			return err
		}
		if err := k.purgeTo(ctx, models, min(target, purgeable, mark.floor+1)); err != nil {
			return err
		}
	}
	if answersTarget > 0 {
		if err := k.purgeAnswers(ctx, states[bus.StreamAnswer], answersTarget, mark); err != nil {
			return err
		}
	}

	// The others do not depend on each other.
	for _, name := range []string{bus.StreamPartial, bus.StreamDeadline, bus.StreamBlob} {
		if err := k.purgeBefore(
			ctx, states[name], states[name].purgeTarget(), mark.purgeableBefore(name),
		); err != nil {
			return err
		}
	}
	return nil
}

// firstModelAfter returns the sequence below which the models have to go before all answers below answersTarget may go.
// It is the sequence of the first model that was stored after those answers, and more than times.Margin after them.
func (k *Keeper) firstModelAfter(ctx context.Context, models streamState, answersTarget uint64, mark watermark) (uint64, error) {
	firstToStay, err := k.Bus.Log.FirstFrom(ctx, bus.StreamAnswer, answersTarget, time.Time{})
	if errors.Is(err, bus.ErrNotFound) { // all answers may go
		firstToStay.Time, err = mark.askedAt, nil
	}
	if err != nil {
		return 0, err
	}
	return k.firstNotBefore(ctx, models, firstToStay.Time.Add(mark.times.Margin))
}

// purgeAnswers removes answers below the sequence target. An answer stays until it was kept for its least time. It also
// stays while its model is there, so only answers older than the first stored model go, by times.Margin.
func (k *Keeper) purgeAnswers(ctx context.Context, answers streamState, target uint64, mark watermark) error {
	limit := mark.purgeableBefore(bus.StreamAnswer)
	firstModel, err := k.Bus.Log.FirstFrom(ctx, bus.StreamModel, 1, time.Time{})
	if errors.Is(err, bus.ErrNotFound) { // no model holds an answer back
		firstModel.Time, err = mark.askedAt, nil
	}
	if err != nil {
		return err
	}

	if oldestModel := firstModel.Time.Add(-mark.times.Margin); oldestModel.Before(limit) {
		limit = oldestModel
	}
	return k.purgeBefore(ctx, answers, target, limit)
}

// purgeBefore removes the messages of a stream that are both below the sequence target and older than a time. If target
// is 0, it does nothing.
func (k *Keeper) purgeBefore(ctx context.Context, s streamState, target uint64, limit time.Time) error {
	if target == 0 {
		return nil
	}

	purgeable, err := k.firstNotBefore(ctx, s, limit)
	if err != nil {
		return err
	}
	return k.purgeTo(ctx, s, min(target, purgeable))
}

// firstNotBefore returns the sequence of the first message of a stream that was stored at a time or later, or the one
// after the last message if all are older.
func (k *Keeper) firstNotBefore(ctx context.Context, s streamState, limit time.Time) (uint64, error) {
	first, err := k.Bus.Log.FirstFrom(ctx, s.Config.Name, 0, limit)
	if errors.Is(err, bus.ErrNotFound) {
		return s.State.LastSeq + 1, nil
	}
	return first.Sequence, err
}

// purgeTo removes the messages below a sequence.
func (k *Keeper) purgeTo(ctx context.Context, s streamState, sequence uint64) error {
	if sequence <= s.State.FirstSeq {
		return nil
	}

	k.Log.Debug("making room", "stream", s.Config.Name, "from", s.State.FirstSeq, "below", sequence)
	return k.Bus.Log.Purge(ctx, s.Config.Name, "", sequence)
}

// noteCrowd sets what the sweeper needs to know (Crowd). Jobs without answer that were stored before Crowd.Before keep a full
// stream from being purged, and the sweeper moves them to its end. The sweeper acknowledges a model when its job has an
// answer, so NumAckPending is the number of jobs without answer, as far as the sweeper has come. noteCrowd also calls Tell
// with the room in each stream and the age of the first job without answer.
func (k *Keeper) noteCrowd(states map[string]streamState, sweeper *jetstream.ConsumerInfo, mark watermark) {
	unanswered := sweeper.NumAckPending
	crowd := Crowd{Times: mark.times, Many: unanswered > maxUnanswered}
	for _, s := range states {
		isFull := s.usedShare > roomFull && s.Config.Name != bus.StreamModel
		crowd.Full = crowd.Full || isFull

		// Jobs without answer are moved to the end of a stream, so that the messages before them can be purged. That makes
		// little room if at least half of the messages belong to such jobs; then it is done only for a full stream.
		messages := max(s.State.Msgs, states[bus.StreamModel].State.Msgs)
		mostAreUnanswered := 2*uint64(unanswered) >= messages
		if s.usedShare <= roomLow || mostAreUnanswered && !isFull {
			continue
		}

		// Move jobs that are in the oldest two thirds of the stream's time.
		if stragglersBefore := mark.askedAt.Add(-mark.askedAt.Sub(s.State.FirstTime) / 3); stragglersBefore.After(crowd.Before) {
			crowd.Before = stragglersBefore
		}
	}

	// No job is moved before its model has been kept for the grace.
	if graceBefore := mark.askedAt.Add(-mark.times.Grace); graceBefore.Before(crowd.Before) {
		crowd.Before = graceBefore
	}

	k.mu.Lock()
	k.crowd = crowd
	k.mu.Unlock()

	if k.Tell != nil {
		k.Tell(k.measure(states, mark), mark.askedAt.Sub(mark.firstOpen))
	}
}

// Crowded returns what the last look found. A nil Keeper has found nothing.
func (k *Keeper) Crowded() Crowd {
	if k == nil {
		return Crowd{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.crowd
}
