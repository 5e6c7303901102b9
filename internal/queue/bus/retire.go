package bus

// Room that is made for an owner by its own messages: above a quarter of a quota answered requests go, old answers and old large
// messages. Only the aggregator may remove them.

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// Retire is told that an owner's job has its answer. Above a quarter of its quota of requests it removes the job's, and above a quarter
// of that of answers the owner's old messages. It costs two requests to the server a second and owner, and one more per job above a
// quarter.
func (q *Quotas) Retire(ctx context.Context, job string) error {
	owner := message.Owner(job)
	if q == nil || owner == "" {
		return nil
	}
	for _, stream := range []string{StreamModel, StreamAnswer} {
		crowded, err := q.crowded(ctx, stream, owner)
		switch {
		case err == nil && crowded && stream == StreamModel:
			err = q.log.Purge(ctx, StreamModel, message.AnyLane(job), 0)
		case err == nil && crowded:
			err = q.spare(ctx, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Spare removes the old messages of all owners who hold more than a quarter of their quota of large messages. It takes time in
// proportion to the number of these.
func (q *Quotas) Spare(ctx context.Context) error {
	if q == nil {
		return nil
	}
	subjects, err := q.log.Subjects(ctx, StreamBlob, message.BlobSubject("*", "*"))
	if err != nil {
		return err
	}
	owners := map[string]bool{}
	for subject := range subjects {
		if owner := message.OwnerOf(subject); owner != "" {
			owners[owner] = true
		}
	}
	for owner := range owners {
		crowded, err := q.crowded(ctx, StreamBlob, owner)
		if err == nil && crowded {
			err = q.spare(ctx, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crowded reports whether an owner holds more than a quarter of its quota, answered requests among it.
func (q *Quotas) crowded(ctx context.Context, stream, owner string) (bool, error) {
	l, err := q.limit(ctx, stream, owner)
	if err != nil || l.Bytes <= 0 && l.jobs == 0 {
		return false, err
	}
	l.Bytes, l.jobs, l.Soft = l.Bytes/4, (l.jobs+3)/4, false
	key := hold{stream, owner, true}
	h, err := q.holding(ctx, key)
	if err != nil {
		return false, err
	}
	defer h.asking.Release(1)
	if time.Since(h.looked) > max(holdsFor, looksRest*h.took) {
		if err := q.look(ctx, key, l, h, 0); err != nil {
			return false, err
		}
	}
	bytes, jobs := l.exceeds(h, 0)
	return bytes || jobs, nil
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

	info, err := q.log.conn.Info(ctx, StreamAnswer)
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
		if err := q.log.Purge(ctx, StreamModel, subject, 0); err != nil {
			return err
		}
	}

	times := TimesOf(info.Config.Metadata)
	old := info.TimeStamp.Add(-times.Answers)
	if err := q.purge(ctx, StreamAnswer, message.KindAnswer, owner, old); err != nil {
		return err
	}
	first, err := q.log.firstOf(ctx, StreamModel, message.OwnedBy(message.KindModel, owner))
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
	info, err := q.log.conn.Info(ctx, stream)
	if err != nil {
		return err
	}
	below := info.State.LastSeq + 1
	switch first, err := q.log.From(ctx, stream, 0, before); {
	case err == nil:
		below = min(below, first.Sequence)
	case !errors.Is(err, ErrNotFound): // all are older
		return err
	}
	if err := q.log.Purge(ctx, stream, message.OwnedBy(kind, owner), below); err != nil {
		return err
	}
	for _, all := range []bool{false, true} {
		h, err := q.holding(ctx, hold{stream, owner, all})
		if err != nil {
			return err
		}
		h.looked, h.listed = time.Time{}, false
		h.asking.Release(1)
	}
	return nil
}
