package bus

// Room that the owners of messages make themselves: an answered request goes at once, old answers and large messages when their owner
// needs the room. Only the aggregator may remove them.

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// Retire removes the request of an owner's job that has its answer. If the owner holds more than half of its quota of answers or of large
// messages its old ones go too. It costs one request to the server, and two more a second per owner.
func (q *Quotas) Retire(ctx context.Context, job string) error {
	owner := message.Owner(job)
	if q == nil || owner == "" {
		return nil
	}
	if err := q.bus.Purge(ctx, StreamModel, message.AnyLane(job), 0); err != nil {
		return err
	}
	for _, stream := range []string{StreamAnswer, StreamBlob} {
		crowded, err := q.crowded(ctx, stream, owner)
		if err != nil {
			return err
		}
		if crowded {
			return q.spare(ctx, owner)
		}
	}
	return nil
}

// crowded reports whether an owner holds more than half of its quota.
func (q *Quotas) crowded(ctx context.Context, stream, owner string) (bool, error) {
	l, err := q.limit(ctx, stream, owner)
	if err != nil || l.Bytes <= 0 {
		return false, err
	}
	l.Bytes /= 2
	l.Soft = false
	h, err := q.holding(ctx, stream, owner)
	if err != nil {
		return false, err
	}
	defer h.asking.Release(1)
	bytes, _ := l.exceeds(h, 0)
	if age := time.Since(h.looked); age > max(holdsFor, looksRest*h.took) || bytes && !h.listed {
		if err := q.look(ctx, stream, owner, l, h, 0); err != nil {
			return false, err
		}
	}
	bytes, _ = l.exceeds(h, 0)
	return bytes, nil
}

// spare removes an owner's old messages, whatever the room in the streams, once a second at most: answers that were kept for their least
// time, the requests of answered jobs before them, and large messages that no job without an answer and no younger answer needs.
func (q *Quotas) spare(ctx context.Context, owner string) error {
	now := time.Now()
	q.mu.Lock()
	maps.DeleteFunc(q.spared, func(_ string, at time.Time) bool { return now.Sub(at) > holdsFor })
	_, done := q.spared[owner]
	if !done {
		q.spared[owner] = now
	}
	q.mu.Unlock()
	if done {
		return nil
	}

	info, err := q.bus.Info(ctx, StreamAnswer)
	if err != nil {
		return err
	}
	requests, err := q.subjects(ctx, StreamModel, owner)
	if err != nil {
		return err
	}
	answered, err := q.answered(ctx, owner, requests)
	if err != nil {
		return err
	}
	for _, subject := range answered {
		if err := q.bus.Purge(ctx, StreamModel, subject, 0); err != nil {
			return err
		}
	}

	times := TimesOf(info.Config.Metadata)
	old := info.TimeStamp.Add(-times.Answers)
	if err := q.purge(ctx, StreamAnswer, message.KindAnswer, owner, old); err != nil {
		return err
	}
	first, err := q.bus.firstOf(ctx, StreamModel, message.OwnedBy(message.KindModel, owner))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && first.Time.Before(old) {
		old = first.Time
	}
	return q.purge(ctx, StreamBlob, message.KindBlob, owner, old.Add(-times.Margin-times.Renew))
}

// purge removes the messages of a kind of an owner that were stored before a time.
func (q *Quotas) purge(ctx context.Context, stream string, kind message.Kind, owner string, before time.Time) error {
	info, err := q.bus.Info(ctx, stream)
	if err != nil {
		return err
	}
	below := info.State.LastSeq + 1
	switch first, err := q.bus.From(ctx, stream, 0, before); {
	case err == nil:
		below = min(below, first.Sequence)
	case !errors.Is(err, ErrNotFound): // all are older
		return err
	}
	if err := q.bus.Purge(ctx, stream, message.OwnedBy(kind, owner), below); err != nil {
		return err
	}
	h, err := q.holding(ctx, stream, owner)
	if err != nil {
		return err
	}
	h.looked, h.listed = time.Time{}, false
	h.asking.Release(1)
	return nil
}
