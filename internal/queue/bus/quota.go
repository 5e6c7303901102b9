package bus

// Quotas of owners per stream. They protect the streams against one owner: what counts is what the server cannot remove yet. Of requests
// these are the ones without an answer, because an answered one can be removed (Retire).
//
// A server counts the bytes of streams and the messages of subjects, but no bytes of subjects. So sizes are read once and remembered:
// enough if a subject has the digest of its bytes, or is written once.

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

// ErrQuota: the owner of a message may hold no more bytes of its stream. Errors that wrap it have the code over_budget.
var ErrQuota = errors.New("quota")

// Quota is the maximum that an owner may hold in a stream.
type Quota struct {
	Bytes int64   // 0: any number
	Share float64 // of a quarter of the lane's backlog, as the number of requests without an answer; 0: any number
	Why   string  // the reason for Bytes, in words
	// Soft says that Bytes bind only while the stream is more than half full.
	Soft bool
}

// contents are the words for the messages of a stream, in errors.
var contents = map[string]string{
	StreamModel:  "requests",
	StreamAnswer: "answers",
	StreamBlob:   "large messages",
	StreamDead:   "dead letters",
	StreamGraph:  "registered models",
}

// Quotas bound the bytes of streams per owner. A nil one bounds nothing. Every process counts on its own: it looks at the server once a
// second, and before it refuses a message.
type Quotas struct {
	log     *Log
	quotaOf func(stream, owner string, room int64) Quota

	holds memo.LRU[hold, *holding]
	sizes memo.LRU[string, int64] // by subject

	mu     sync.Mutex
	spared map[string]time.Time // by owner, of the last second, under mu: see spare
}

// hold names the messages of one owner in one stream: those that count, or all.
type hold struct {
	stream, owner string
	all           bool
}

// holding is the last known size of a hold.
type holding struct {
	asking *semaphore.Weighted // of 1, held while the server is asked
	bytes  int64
	jobs   int
	listed bool // bytes and jobs are the owner's; else those of all owners together
	looked time.Time
	taken  bool          // messages were since
	took   time.Duration // of the last look
}

// Bounds of Quotas.
const (
	mostHolds    = 10_000
	mostSizes    = 1 << 17
	sizesPerLook = 256         // read by one look; others are counted by a later one
	holdsFor     = time.Second // age up to which a size is used
	refusesFor   = 100 * time.Millisecond
	// A look takes at most 1/looksRest of the time.
	looksRest = 10
)

// NewQuotas returns quotas of the streams of a log, whose user may look into them. quotaOf returns an owner's quota of a
// stream, given the stream's MaxBytes.
func NewQuotas(log *Log, quotaOf func(stream, owner string, room int64) Quota) *Quotas {
	return &Quotas{
		log: log, quotaOf: quotaOf, holds: memo.LRU[hold, *holding]{Entries: mostHolds}, sizes: memo.LRU[string, int64]{Entries: mostSizes},
		spared: map[string]time.Time{},
	}
}

// Admit is asked before bytes are stored on a subject of a stream. Its error refuses them.
type Admit func(ctx context.Context, stream, subject string, header nats.Header, bytes int) error

// ask calls f, unless it is nil.
func (f Admit) ask(ctx context.Context, stream, subject string, h nats.Header, bytes int) error {
	if f == nil {
		return nil
	}
	return f(ctx, stream, subject, h, bytes)
}

// storedBytes is the size of a stored message, or a little less: servers add headers, and files a frame.
func storedBytes(subject string, h nats.Header, data int) int64 {
	size := 16 + len(subject) + data
	for name, values := range h {
		if strings.HasPrefix(name, "Nats-") {
			continue
		}
		for _, v := range values {
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	return int64(size)
}

// Take counts a message that is about to be stored. The error wraps ErrQuota if its owner would hold too many bytes, and ErrBusy if too
// many of its requests wait for an answer. Where answers would be too many the old ones of the owner are removed first: only the
// aggregator stores answers, and may remove them.
func (q *Quotas) Take(ctx context.Context, stream, subject string, h nats.Header, data int) error {
	owner := message.OwnerOf(subject)
	if q == nil || owner == "" {
		return nil
	}
	size := storedBytes(subject, h, data)
	err := q.take(ctx, stream, owner, size)
	if stream == StreamAnswer && errors.Is(err, ErrQuota) {
		if err := q.spare(ctx, owner); err != nil {
			return err
		}
		err = q.take(ctx, stream, owner, size)
	}
	if err == nil {
		q.sizes.Put(subject, size, 1)
	}
	return err
}

// limit is a quota in a stream as it is now.
type limit struct {
	Quota
	jobs int // 0: any number
}

// limit returns the quota of an owner.
func (q *Quotas) limit(ctx context.Context, stream, owner string) (l limit, err error) {
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
		l.jobs = max(1, int(l.Share*float64(backlog)/4)) // a quarter may wait before each later stage
	}
	return l, nil
}

// exceeds reports whether a holding with a message of more bytes is above a quota.
func (l limit) exceeds(h *holding, more int64) (bytes, jobs bool) {
	return l.Bytes > 0 && h.bytes+more > l.Bytes, l.jobs > 0 && h.jobs >= l.jobs
}

// take counts a message of an owner that has more bytes.
func (q *Quotas) take(ctx context.Context, stream, owner string, more int64) error {
	l, err := q.limit(ctx, stream, owner)
	if err != nil || l.Bytes <= 0 && l.jobs == 0 {
		return err
	}
	h, err := q.holding(ctx, hold{stream: stream, owner: owner})
	if err != nil {
		return err
	}
	defer h.asking.Release(1)

	age := time.Since(h.looked)
	bytes, jobs := l.exceeds(h, more)
	if age > max(holdsFor, looksRest*h.took) || (bytes || jobs) && (!h.listed || h.taken || age > max(refusesFor, looksRest*h.took)) {
		if err := q.look(ctx, hold{stream: stream, owner: owner}, l, h, more); err != nil {
			return err
		}
	}
	switch bytes, jobs := l.exceeds(h, more); {
	case bytes:
		return fault.New(fault.OverBudget, "%w: %s of tenant %q take %d bytes of %s, and with %d more they exceed %d: %s",
			ErrQuota, contents[stream], owner, h.bytes, stream, more, l.Bytes, l.Why)
	case jobs:
		return fault.New(fault.Infrastructure, "%w of tenant %q: %d without an answer, at most %d", ErrBusy, owner, h.jobs, l.jobs)
	}
	h.bytes += more
	h.jobs++
	h.taken = true
	return nil
}

// holding returns a holding, which the caller alone has until it releases it.
func (q *Quotas) holding(ctx context.Context, key hold) (*holding, error) {
	h, ok := q.holds.Get(key)
	if !ok {
		h = q.holds.Add(key, &holding{asking: semaphore.NewWeighted(1)}, 1)
	}
	return h, h.asking.Acquire(ctx, 1)
}

// look brings a holding up to date. While the messages of all owners together, or a soft quota's half of the stream, leave room for so
// many bytes more nothing is listed.
func (q *Quotas) look(ctx context.Context, key hold, l limit, h *holding, more int64) error {
	began := time.Now()
	defer func() { h.looked, h.took, h.taken = time.Now(), time.Since(began), false }()
	info, err := q.log.conn.Info(ctx, key.stream)
	if err != nil {
		return err
	}
	total := holding{bytes: int64(info.State.Bytes), jobs: int(info.State.Msgs)}
	if l.Soft && total.bytes+more <= info.Config.MaxBytes/2 {
		total.bytes = 0
	}
	if bytes, jobs := l.exceeds(&total, more); !bytes && !jobs {
		h.bytes, h.jobs, h.listed = total.bytes, total.jobs, false
		return nil
	}

	subjects, err := q.subjects(ctx, key.stream, key.owner)
	if err != nil {
		return err
	}
	if h.bytes, err = q.sum(ctx, key.stream, subjects); err != nil {
		return err
	}
	h.jobs, h.listed = len(subjects), true
	if bytes, jobs := l.exceeds(h, more); key.stream != StreamModel || key.all || !bytes && !jobs {
		return nil
	}
	answered, err := q.answered(ctx, key.owner, subjects)
	if err != nil {
		return err
	}
	for _, subject := range answered {
		delete(subjects, subject)
	}
	h.jobs = len(subjects)
	h.bytes, err = q.sum(ctx, key.stream, subjects)
	return err
}

// subjects lists the subjects of an owner's messages in a stream.
func (q *Quotas) subjects(ctx context.Context, stream, owner string) (map[string]uint64, error) {
	union := map[string]uint64{}
	for _, group := range keptKinds {
		if group.stream != stream {
			continue
		}
		for _, kind := range group.kinds {
			subjects, err := q.log.Subjects(ctx, stream, message.OwnedBy(kind, owner))
			if err != nil {
				return nil, err
			}
			maps.Copy(union, subjects)
		}
	}
	return union, nil
}

// answered returns the subjects among those of an owner's requests whose jobs have an answer.
func (q *Quotas) answered(ctx context.Context, owner string, requests map[string]uint64) (subjects []string, err error) {
	answers, err := q.subjects(ctx, StreamAnswer, owner)
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

// sum returns the bytes of messages. Of those with an unknown size it reads sizesPerLook; others do not count yet.
func (q *Quotas) sum(ctx context.Context, stream string, subjects map[string]uint64) (bytes int64, err error) {
	var unknown []string
	for subject := range subjects {
		if size, ok := q.sizes.Get(subject); ok {
			bytes += size
		} else if len(unknown) < sizesPerLook {
			unknown = append(unknown, subject)
		}
	}

	sizes := make([]int64, len(unknown))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(piecesAtOnce)
	for i, subject := range unknown {
		g.Go(func() error {
			m, err := q.log.GetRaw(gctx, stream, subject)
			if errors.Is(err, ErrNotFound) {
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
