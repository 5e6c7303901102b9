package bus

// Quotas of owners per stream, which protect the streams against one owner. Messages count that cannot be removed yet.
// Requests with an answer do not count, because they can be removed (RemoveAnswered).
//
// A server counts the bytes of streams and the messages of subjects, but no bytes of subjects. So sizes are read once
// and remembered: enough if a subject has the digest of its bytes, or is written once.

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// ErrQuota means that the owner of a message may hold no more bytes of its stream. Errors that wrap it have the code
// over_budget.
var ErrQuota = errors.New("quota")

// Quota is the maximum that an owner may hold in a stream.
type Quota struct {
	Bytes             int64   // 0: any number
	Share             float64 // maximum number of requests without an answer, as a share of a quarter of the lane's backlog; 0: any number
	Why               string  // the reason for Bytes, in words
	BindsWhenHalfFull bool    // Bytes bind only while the stream is more than half full
}

// contents are the words for the messages of a stream, in errors.
var contents = map[string]string{
	StreamModel:  "requests",
	StreamAnswer: "answers",
	StreamBlob:   "large messages",
	StreamDead:   "dead letters",
	StreamGraph:  "registered models",
}

// Quotas bound the bytes that each owner holds in each stream. A nil one bounds nothing. Every process counts by
// itself: it asks the server for the present size at most once a second, and before it refuses a message.
type Quotas struct {
	log     *Log
	quotaOf func(stream, owner string, room int64) Quota

	holdings memo.LRU[holdingKey, *holding]
	sizes    memo.LRU[string, int64] // by subject

	mu          sync.Mutex
	lastRemoval map[string]time.Time // of removeOld by owner, for the last second; under mu
}

// holdingKey names the messages of one owner in one stream.
type holdingKey struct {
	stream, owner    string
	includesAnswered bool // also the requests of answered jobs
}

// holding is what is known about the size of an owner's messages in a stream.
type holding struct {
	turn      *semaphore.Weighted // of 1, held while the server is asked
	bytes     int64
	requests  int           // number of messages; in StreamModel these are requests
	isExact   bool          // bytes and requests are the owner's, perhaps with answered requests; else those of all owners together
	lookedAt  time.Time     // when the server was asked last
	grewSince bool          // messages were counted since then
	lookTime  time.Duration // how long the server took to answer
}

// isOlderThan reports whether the server was asked longer ago than limit. If its answer took long, the size may be
// older: the pause between two looks is at least lookPauseFactor times the time of a look.
func (h *holding) isOlderThan(limit time.Duration) bool {
	return time.Since(h.lookedAt) > max(limit, lookPauseFactor*h.lookTime)
}

// Bounds of Quotas.
const (
	maxHoldings     = 10_000
	maxSizes        = 1 << 17
	sizesPerLook    = 256         // read by one look; others are counted by a later one
	holdingFreshFor = time.Second // age up to which a size is used
	refusalFreshFor = 100 * time.Millisecond
	lookPauseFactor = 10 // after a look that took t, no further look for lookPauseFactor * t
)

// NewQuotas returns quotas for the streams of a log, whose user has the right to ask for their contents. quotaOf
// returns an owner's quota of a stream. Its argument room is the stream's MaxBytes.
func NewQuotas(log *Log, quotaOf func(stream, owner string, room int64) Quota) *Quotas {
	return &Quotas{
		log: log, quotaOf: quotaOf,
		holdings: memo.LRU[holdingKey, *holding]{Entries: maxHoldings}, sizes: memo.LRU[string, int64]{Entries: maxSizes},
		lastRemoval: map[string]time.Time{},
	}
}

// Admit is called before bytes are stored on a subject of a stream. If it returns an error, they are not stored.
type Admit func(ctx context.Context, stream, subject string, header nats.Header, bytes int) error

// ask calls f, unless it is nil.
func (f Admit) ask(ctx context.Context, stream, subject string, h nats.Header, bytes int) error {
	if f == nil {
		return nil
	}
	return f(ctx, stream, subject, h, bytes)
}

// storedBytes returns the size of a stored message with data bytes of payload, or a little less: a server adds headers of
// its own, which do not count, and in files a few bytes for each message.
func storedBytes(subject string, h nats.Header, data int) int64 {
	const base = 16 // sequence and time, as servers count them in memory; files have a little more
	size := base + len(subject) + data
	for name, values := range h {
		isServers := strings.HasPrefix(name, "Nats-")
		if isServers {
			continue
		}
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return int64(size)
}

// Reserve counts a message that is about to be stored with data bytes of payload. The error wraps ErrQuota if its owner
// would hold too many bytes, and ErrBusy if too many of its requests wait for an answer. If an answer would be too
// many, the owner's old answers are removed first: only the aggregator stores answers, and may remove them.
func (q *Quotas) Reserve(ctx context.Context, stream, subject string, h nats.Header, data int) error {
	owner := message.OwnerOf(subject)
	if q == nil || owner == "" {
		return nil
	}
	size := storedBytes(subject, h, data)
	err := q.reserve(ctx, stream, owner, size)
	if stream == StreamAnswer && errors.Is(err, ErrQuota) {
		if err := q.removeOld(ctx, owner); err != nil {
			return err
		}
		err = q.reserve(ctx, stream, owner, size)
	}
	if err == nil {
		q.sizes.Put(subject, size, 1) // so that a later count need not fetch the message; 1: sizes is bounded by its entries
	}
	return err
}

// limit is a quota in a stream as it is now.
type limit struct {
	Quota
	requests int // maximum number of requests without an answer; 0: any number
}

// currentLimit returns the limit of an owner in a stream. Its number of requests is the owner's share of a quarter of the
// backlog, the number of jobs that may wait in a lane.
func (q *Quotas) currentLimit(ctx context.Context, stream, owner string) (l limit, err error) {
	s, err := q.log.conn.Stream(ctx, stream)
	if err != nil {
		return l, err
	}
	l.Quota = q.quotaOf(stream, owner, s.CachedInfo().Config.MaxBytes)
	if stream == StreamModel && l.Share > 0 {
		backlog, err := q.log.conn.Backlog(ctx)
		if err != nil {
			return l, err
		}
		l.requests = max(1, int(l.Share*float64(backlog)/4)) // only a quarter may wait before each of the later stages
	}
	return l, nil
}

// exceeds reports whether a holding would be above the limit of bytes, and above that of requests, with one more
// message of moreBytes.
func (l limit) exceeds(h *holding, moreBytes int64) (overBytes, overRequests bool) {
	return l.Bytes > 0 && h.bytes+moreBytes > l.Bytes, l.requests > 0 && h.requests >= l.requests
}

// reserve counts one more message of an owner, of moreBytes, in what the owner holds, or returns an error as Reserve does.
// It first asks the server for the present size if the known size is old. It also asks if it would refuse the message and
// the known size may be wrong.
func (q *Quotas) reserve(ctx context.Context, stream, owner string, moreBytes int64) error {
	l, err := q.currentLimit(ctx, stream, owner)
	if err != nil || l.Bytes <= 0 && l.requests == 0 { // 0: there is no limit
		return err
	}
	h, err := q.holding(ctx, holdingKey{stream: stream, owner: owner})
	if err != nil {
		return err
	}
	defer h.turn.Release(1)

	overBytes, overRequests := l.exceeds(h, moreBytes)
	mayBeWrong := !h.isExact || h.grewSince || h.isOlderThan(refusalFreshFor)
	if h.isOlderThan(holdingFreshFor) || (overBytes || overRequests) && mayBeWrong {
		if err := q.refresh(ctx, holdingKey{stream: stream, owner: owner}, l, h, moreBytes); err != nil {
			return err
		}
	}

	switch overBytes, overRequests := l.exceeds(h, moreBytes); {
	case overBytes:
		return fault.New(fault.OverBudget, "%w: %s of tenant %q take %d bytes of %s, and with %d more they exceed %d: %s",
			ErrQuota, contents[stream], owner, h.bytes, stream, moreBytes, l.Bytes, l.Why)
	case overRequests:
		return fault.New(fault.Infrastructure, "%w of tenant %q: %d without an answer, at most %d", ErrBusy, owner, h.requests, l.requests)
	}
	h.bytes += moreBytes
	h.requests++
	h.grewSince = true
	return nil
}

// holding returns what is known of the messages that key names. The caller has it alone until it releases h.turn.
func (q *Quotas) holding(ctx context.Context, key holdingKey) (*holding, error) {
	h, ok := q.holdings.Get(key)
	if !ok {
		h = q.holdings.Add(key, &holding{turn: semaphore.NewWeighted(1)}, 1)
	}
	return h, h.turn.Acquire(ctx, 1)
}

// refresh sets the holding h to the present size of the messages that key names. The size of the whole stream, which
// the server knows, is enough if one more message of moreBytes would fit into the limit l even then. Otherwise refresh
// counts the owner's messages.
func (q *Quotas) refresh(ctx context.Context, key holdingKey, l limit, h *holding, moreBytes int64) error {
	began := time.Now()
	defer func() { h.lookedAt, h.lookTime, h.grewSince = time.Now(), time.Since(began), false }()

	info, err := q.log.conn.Info(ctx, key.stream)
	if err != nil {
		return err
	}
	total := holding{bytes: int64(info.State.Bytes), requests: int(info.State.Msgs)}
	if l.BindsWhenHalfFull && total.bytes+moreBytes <= info.Config.MaxBytes/2 {
		total.bytes = 0 // the limit of bytes does not bind
	}
	if overBytes, overRequests := l.exceeds(&total, moreBytes); !overBytes && !overRequests {
		h.bytes, h.requests, h.isExact = total.bytes, total.requests, false
		return nil
	}
	return q.count(ctx, key, l, h, moreBytes)
}

// count sets the holding h to the number and the size of the owner's messages. Answered requests do not count, but to find
// them the server has to be asked for the owner's answers, too. So they are only looked for, and left out, if one more
// message of moreBytes would exceed the limit l with them. h.isExact is set in either case: no other owner's messages are
// in h.
func (q *Quotas) count(ctx context.Context, key holdingKey, l limit, h *holding, moreBytes int64) error {
	subjects, err := q.ownerSubjects(ctx, key.stream, key.owner)
	if err != nil {
		return err
	}
	if h.bytes, err = q.totalBytes(ctx, key.stream, subjects); err != nil {
		return err
	}
	h.requests, h.isExact = len(subjects), true
	overBytes, overRequests := l.exceeds(h, moreBytes)
	mayHaveAnswered := key.stream == StreamModel && !key.includesAnswered
	if !mayHaveAnswered || !overBytes && !overRequests {
		return nil
	}

	answered, err := q.answeredRequests(ctx, key.owner, subjects)
	if err != nil {
		return err
	}
	for _, subject := range answered { // answered requests do not count
		delete(subjects, subject)
	}
	h.requests = len(subjects)
	h.bytes, err = q.totalBytes(ctx, key.stream, subjects)
	return err
}

// ownerSubjects returns the subjects of an owner's messages in a stream, of all kinds that the stream keeps, with the
// number of messages on each.
func (q *Quotas) ownerSubjects(ctx context.Context, stream, owner string) (map[string]uint64, error) {
	union := map[string]uint64{}
	for _, group := range keptKinds {
		if group.stream != stream {
			continue
		}
		for _, kind := range group.kinds {
			subjects, err := q.log.Subjects(ctx, stream, message.OwnerFilter(kind, owner))
			if err != nil {
				return nil, err
			}
			maps.Copy(union, subjects)
		}
	}
	return union, nil
}

// answeredRequests returns those subjects of an owner's requests whose jobs have an answer.
func (q *Quotas) answeredRequests(ctx context.Context, owner string, requests map[string]uint64) (subjects []string, err error) {
	answers, err := q.ownerSubjects(ctx, StreamAnswer, owner)
	if err != nil {
		return nil, err
	}
	for subject := range requests {
		s, err := message.ParseSubject(subject)
		if err != nil {
			continue
		}
		if _, ok := answers[wire.AnswerSubject(s.Job)]; ok {
			subjects = append(subjects, subject)
		}
	}
	return subjects, nil
}

// totalBytes returns the total size of the messages on the subjects. It fetches the messages of at most sizesPerLook
// subjects whose size is unknown. Further ones do not count yet.
func (q *Quotas) totalBytes(ctx context.Context, stream string, subjects map[string]uint64) (bytes int64, err error) {
	var unsized []string // subjects whose messages are fetched
	for subject := range subjects {
		if size, ok := q.sizes.Get(subject); ok {
			bytes += size
		} else if len(unsized) < sizesPerLook {
			unsized = append(unsized, subject)
		}
	}

	sizes := make([]int64, len(unsized))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(piecesAtOnce)
	for i, subject := range unsized {
		g.Go(func() error {
			m, err := q.log.GetRaw(gctx, stream, subject)
			if errors.Is(err, ErrNotFound) { // it was removed since it was listed
				return nil
			}
			if err == nil {
				sizes[i] = storedBytes(subject, m.Header, len(m.Data))
				q.sizes.Put(subject, sizes[i], 1)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	for _, size := range sizes {
		bytes += size
	}
	return bytes, nil
}
