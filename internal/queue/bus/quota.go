package bus

// Quotas of owners per stream, in bytes. A server counts the bytes of streams and the messages of subjects, but no
// bytes of subjects. So sizes are read once and remembered: enough where a subject has the digest of its bytes, or is
// written once.

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/network/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// ErrQuota: the owner of a message may hold no more bytes of its stream. Errors that wrap it have the code over_budget.
var ErrQuota = errors.New("quota")

// Quota is the maximum number of bytes for an owner, and the reason in words.
type Quota struct {
	Bytes int64 // 0: any number
	Why   string
}

// held has the words for the messages of a stream, in errors.
var held = map[string]string{
	StreamModel:  "requests",
	StreamAnswer: "answers",
	StreamBlob:   "large messages",
	StreamDead:   "dead letters",
	StreamGraph:  "registered models",
}

// Quotas bound the bytes of streams per owner. A nil one bounds nothing. Every process counts on its own: it looks at
// the server before it takes a message that brings an owner above half of its quota.
type Quotas struct {
	bus *Bus
	of  func(stream, owner string, room int64) Quota

	holds memo.LRU[hold, *holding]
	sizes memo.LRU[string, int64] // by subject
}

// hold names the bytes of one owner in one stream.
type hold struct{ stream, owner string }

// holding is the last known size of a hold.
type holding struct {
	asking *semaphore.Weighted // of 1, held while the server is asked
	bytes  int64
	looked time.Time
}

// Bounds of Quotas.
const (
	mostHolds  = 10_000
	mostSizes  = 1 << 17
	sizesAtOne = 16          // read by one look; the rest count as average
	holdsFor   = time.Second // age up to which a size is used, below half of the quota
	refusesFor = 100 * time.Millisecond
	besideData = 256 // bytes of a stored message beside its payload, about
)

// NewQuotas returns quotas of the streams of a Bus, whose user may look into them. of returns an owner's quota of a
// stream, given the stream's MaxBytes.
func NewQuotas(b *Bus, of func(stream, owner string, room int64) Quota) *Quotas {
	return &Quotas{bus: b, of: of, holds: memo.LRU[hold, *holding]{Entries: mostHolds}, sizes: memo.LRU[string, int64]{Entries: mostSizes}}
}

// Within has b store within quotas. It is called before anything else is done with the Bus.
func (b *shelves) Within(q *Quotas) { b.quotas = q }

// Quotas returns the quotas of Within, or nil.
func (b *shelves) Quotas() *Quotas { return b.quotas }

// Take counts a message of so many bytes that is about to be stored under a subject of its owner. The error wraps ErrQuota if the owner
// would hold too many.
func (q *Quotas) Take(ctx context.Context, stream, subject string, bytes int) error {
	owner := message.OwnerOf(subject)
	if q == nil || owner == "" {
		return nil
	}
	size := int64(bytes + besideData)
	err := q.take(ctx, stream, owner, size, 0)
	if err == nil {
		q.sizes.Put(subject, size, 1)
	}
	return err
}

// Over returns an error that wraps ErrQuota if the owner of a stored message holds an eighth more than its quota: then
// messages were stored without Take.
func (q *Quotas) Over(ctx context.Context, stream, subject string) error {
	owner := message.OwnerOf(subject)
	if q == nil || owner == "" {
		return nil
	}
	return q.take(ctx, stream, owner, 0, 8)
}

// take counts more bytes of an owner, up to its quota and 1/part of it; part 0: the quota alone.
func (q *Quotas) take(ctx context.Context, stream, owner string, more, part int64) error {
	s, err := q.bus.Stream(ctx, stream)
	if err != nil {
		return err
	}
	quota := q.of(stream, owner, s.CachedInfo().Config.MaxBytes)
	most := quota.Bytes
	if most <= 0 {
		return nil
	}
	if part > 0 {
		most += most / part
	}
	of := hold{stream, owner}
	h, ok := q.holds.Get(of)
	if !ok {
		h = q.holds.Add(of, &holding{asking: semaphore.NewWeighted(1)}, 1)
	}
	if err := h.asking.Acquire(ctx, 1); err != nil {
		return err
	}
	defer h.asking.Release(1)

	good := time.Duration(0)
	switch {
	case more == 0 || h.bytes+more <= most/2:
		good = holdsFor
	case h.bytes+more > most:
		good = refusesFor
	}
	if time.Since(h.looked) >= good {
		if h.bytes, err = q.look(ctx, stream, owner); err != nil {
			return err
		}
		h.looked = time.Now()
	}
	if h.bytes+more > most {
		return fault.New(fault.OverBudget, "%w: %s of tenant %q take %d bytes of %s, and with %d more they exceed %d: %s",
			ErrQuota, held[stream], owner, h.bytes, stream, more, most, quota.Why)
	}
	h.bytes += more
	return nil
}

// look returns the bytes that an owner holds of a stream: known sizes, some that it reads, and the average for the
// rest.
func (q *Quotas) look(ctx context.Context, stream, owner string) (bytes int64, err error) {
	var unknown []string
	known := int64(0)
	for _, kept := range keptKinds {
		if kept.stream != stream {
			continue
		}
		for _, kind := range kept.kinds {
			subjects, err := q.bus.Subjects(ctx, stream, message.OwnedBy(kind, owner))
			if err != nil {
				return 0, err
			}
			for subject := range subjects {
				if size, ok := q.sizes.Get(subject); ok {
					bytes += size
					known++
				} else {
					unknown = append(unknown, subject)
				}
			}
		}
	}

	read := unknown[:min(len(unknown), sizesAtOne)]
	sizes := make([]int64, len(read))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for i, subject := range read {
		g.Go(func() error {
			m, err := q.bus.Raw(gctx, stream, subject)
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			if err == nil {
				sizes[i] = int64(len(m.Data) + besideData)
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
		known++
	}
	if rest := int64(len(unknown) - len(read)); rest > 0 {
		bytes += bytes / known * rest
	}
	return bytes, nil
}

// Codes of refusals by the worker that stores for tenants, in the form of a stream's. The server has no such codes.
const (
	CodeQuota   jetstream.ErrorCode = 60001
	CodeBusy    jetstream.ErrorCode = 60002
	CodeRefused jetstream.ErrorCode = 60003
	CodeDamaged jetstream.ErrorCode = 60004
)

// CodeOf returns the code for an error of Admitted.
func CodeOf(err error) jetstream.ErrorCode {
	switch {
	case errors.Is(err, ErrQuota):
		return CodeQuota
	case fault.CodeOf(err) == fault.BadInput:
		return CodeRefused
	}
	return CodeBusy
}

// refusedFor returns the error for a refusal by the worker that stores for tenants; nil for a refusal by a stream.
func refusedFor(subject string, api *jetstream.APIError) error {
	switch api.ErrorCode {
	case CodeQuota:
		return fault.New(fault.OverBudget, "%w: %s", ErrQuota, strings.TrimPrefix(api.Description, ErrQuota.Error()+": "))
	case CodeBusy:
		return fault.New(fault.Infrastructure, "%w: store %s: %s", ErrFull, subject, api.Description)
	case CodeDamaged:
		return fault.New(fault.Damaged, "bus: store %s: %s", subject, api.Description)
	case CodeRefused:
		return fault.New(fault.BadInput, "bus: store %s: %s", subject, api.Description)
	}
	return nil
}

// CheckKept returns an error, with the code bad_input, for a message on the subject of a blob, a registered model or a name that its readers could not
// read: bytes of another digest, a list of pieces that is none, a name without versions, a header of another kind of message.
func CheckKept(subject string, h nats.Header, data []byte) error {
	if len(h[headerObject]) > 0 {
		return fault.New(fault.BadInput, "bus: header %s: an owner has no objects", headerObject)
	}
	if owner, name, ok := ParseAlias(subject); ok {
		if Apart(h) {
			return checkNamed(h, data)
		}
		a := Alias{Owner: owner, Name: name}
		if err := a.read(data); err != nil || len(a.Versions) > 0 {
			return err
		}
		return fault.New(fault.BadInput, "bus: the name %s has no versions", a.full())
	}
	s, err := message.ParseSubject(subject)
	switch {
	case err != nil:
		return fault.Wrap(fault.BadInput, err)
	case Apart(h):
		return fault.New(fault.BadInput, "bus: header %s: bytes under their digest are not elsewhere", headerBlob)
	case len(h[headerPieces]) > 0:
		if _, err = piecesOf(data); err != nil {
			return &fault.Error{Code: fault.BadInput, Err: err}
		}
		return nil
	}
	if got := wire.Digest(data); got != s.Digest {
		return fault.New(fault.BadInput, "%w: they have the digest %s", ErrDigest, got)
	}
	return nil
}

// checkNamed checks that a message whose payload is a blob has the blob's digest as its data.
func checkNamed(h nats.Header, data []byte) error {
	if name := blobOf(h); !form.IsDigest(name) || name != string(data) {
		return fault.New(fault.BadInput, "bus: header %s: %.80q, the data are %.80q", headerBlob, name, data)
	}
	return nil
}
