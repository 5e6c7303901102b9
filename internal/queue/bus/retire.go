package bus

// Removal of an owner's old messages when the owner holds more than a quarter of a quota: answered requests, old
// answers and old large messages. Only the aggregator may remove them.

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// RemoveAnswered removes what an owner no longer needs after one of its jobs was answered. If the owner holds more than a
// quarter of its quota of requests, it removes the job's request. If the owner holds more than a quarter of its quota of
// answers, it removes the owner's old messages. For the sizes it sends at most two requests to the server per second and
// owner, and above a quarter one more for each job.
func (q *Quotas) RemoveAnswered(ctx context.Context, job string) error {
	owner := message.Owner(job)
	if q == nil || owner == "" {
		return nil
	}
	for _, stream := range []string{StreamModel, StreamAnswer} {
		isCrowded, err := q.isCrowded(ctx, stream, owner)
		switch {
		case err == nil && isCrowded && stream == StreamModel:
			err = q.log.Purge(ctx, StreamModel, message.AnyLaneFilter(job), 0) // 0: whatever its sequence is
		case err == nil && isCrowded:
			err = q.removeOld(ctx, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveOldMessages removes the old messages of each owner who holds more than a quarter of its quota of large messages. It takes
// time in proportion to the number of large messages.
func (q *Quotas) RemoveOldMessages(ctx context.Context) error {
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
		isCrowded, err := q.isCrowded(ctx, StreamBlob, owner)
		if err == nil && isCrowded {
			err = q.removeOld(ctx, owner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isCrowded reports whether an owner holds more than a quarter of its quota in a stream. Answered requests count here,
// too.
func (q *Quotas) isCrowded(ctx context.Context, stream, owner string) (bool, error) {
	l, err := q.currentLimit(ctx, stream, owner)
	if err != nil || l.Bytes <= 0 && l.requests == 0 { // 0: there is no limit
		return false, err
	}
	// A quarter of the limit; its number of requests is rounded up, because 0 means any number.
	l.Bytes, l.requests, l.BindsWhenHalfFull = l.Bytes/4, (l.requests+3)/4, false

	key := holdingKey{stream: stream, owner: owner, includesAnswered: true}
	h, err := q.holding(ctx, key)
	if err != nil {
		return false, err
	}
	defer h.turn.Release(1)
	if h.isOlderThan(holdingFreshFor) {
		if err := q.refresh(ctx, key, l, h, 0); err != nil { // 0: for no further message
			return false, err
		}
	}
	overBytes, overRequests := l.exceeds(h, 0)
	return overBytes || overRequests, nil
}

// removeOld removes an owner's old messages from three streams, at most once a second:
//   - the requests of answered jobs,
//   - answers older than the least time for which answers are kept,
//   - large messages that no job without an answer and no younger answer needs, judged by age.
//
// It does so even if the streams have room.
func (q *Quotas) removeOld(ctx context.Context, owner string) error {
	if !q.beginRemoval(owner) {
		return nil
	}
	info, err := q.log.conn.Info(ctx, StreamAnswer)
	if err != nil {
		return err
	}
	if err := q.removeAnsweredRequests(ctx, owner); err != nil {
		return err
	}

	// Old answers.
	times := TimesOf(info.Config.Metadata)
	oldest := info.TimeStamp.Add(-times.Answers) // what was stored before is no longer needed
	if err := q.purgeOlder(ctx, StreamAnswer, message.KindAnswer, owner, oldest); err != nil {
		return err
	}

	// Large messages. Those of the owner's first request without an answer are needed as well. A job may use a blob that
	// is older than itself: by Margin, and by Renew if another job had stored the blob before.
	first, err := q.log.firstOf(ctx, StreamModel, message.OwnerFilter(message.KindModel, owner))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && first.Time.Before(oldest) {
		oldest = first.Time
	}
	return q.purgeOlder(ctx, StreamBlob, message.KindBlob, owner, oldest.Add(-times.Margin-times.Renew))
}

// beginRemoval reports whether an owner's old messages may be removed now. They may not if the last removal was at most
// holdingFreshFor ago. If they may, beginRemoval notes the time as that of the last removal. Older times are forgotten.
func (q *Quotas) beginRemoval(owner string) bool {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.lastRemoval, func(_ string, at time.Time) bool { return now.Sub(at) > holdingFreshFor })
	if _, isRecent := q.lastRemoval[owner]; isRecent {
		return false
	}
	q.lastRemoval[owner] = now
	return true
}

// removeAnsweredRequests removes an owner's requests whose jobs have an answer.
func (q *Quotas) removeAnsweredRequests(ctx context.Context, owner string) error {
	requests, err := q.ownerSubjects(ctx, StreamModel, owner)
	if err != nil {
		return err
	}
	answered, err := q.answeredRequests(ctx, owner, requests)
	if err != nil {
		return err
	}
	for _, subject := range answered {
		if err := q.log.Purge(ctx, StreamModel, subject, 0); err != nil { // 0: whatever its sequence is
			return err
		}
	}
	return nil
}

// purgeOlder removes an owner's messages of a kind that were stored before a time. It also marks as old the number and
// size of messages that the owner holds in the stream, with and without answered requests, so that they are counted anew.
func (q *Quotas) purgeOlder(ctx context.Context, stream string, kind message.Kind, owner string, limit time.Time) error {
	info, err := q.log.conn.Info(ctx, stream)
	if err != nil {
		return err
	}

	// below is the sequence of the first message that is young enough to stay.
	below := info.State.LastSeq + 1
	switch first, err := q.log.FirstFrom(ctx, stream, 0, limit); { // 0: by its time
	case err == nil:
		below = min(below, first.Sequence)
	case !errors.Is(err, ErrNotFound): // if nothing is found, all are older
		return err
	}
	if err := q.log.Purge(ctx, stream, message.OwnerFilter(kind, owner), below); err != nil {
		return err
	}

	for _, includesAnswered := range []bool{false, true} {
		h, err := q.holding(ctx, holdingKey{stream, owner, includesAnswered})
		if err != nil {
			return err
		}
		h.lookedAt, h.isExact = time.Time{}, false // the next use asks the server
		h.turn.Release(1)
	}
	return nil
}
