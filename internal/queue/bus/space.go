package bus

// The means by which old messages of a stream make room: where a time lies in it, its front removed
// in one call, a message moved to its end.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MetadataKeepAtLeast is the key under which streams state the minimum retention of answers in
// milliseconds.
const MetadataKeepAtLeast = "btn-keep-at-least"

// DefaultKeepAtLeast is the value for a stream that does not say.
const DefaultKeepAtLeast = time.Minute

// headerStored is the header of a model or a partial that was moved to the end of its stream: when
// it was stored first, in Unix milliseconds.
const headerStored = "Btn-Stored"

// headerSpare is a header without meaning, on messages that may be moved while their stream is
// full. Then a message may be replaced only by one that is not larger, and a message that was moved
// has one more header. Moving leaves this one out.
const headerSpare = "Btn-Spare"

// withSpare returns m with headerSpare.
func withSpare(m *nats.Msg) *nats.Msg {
	m.Header[headerSpare] = []string{"room for what a message says that was moved"}
	return m
}

// Times are the ages from which messages may be purged. All follow from the least time for which
// answers are kept.
type Times struct {
	Answers time.Duration // answers are kept at least
	Grace   time.Duration // models of answered jobs are kept at least
	Renew   time.Duration // a blob that is older is written again when a job needs it
	Margin  time.Duration // the largest age of a job's stored data beyond the job's own
}

// TimesOf returns the times of a stream by its metadata.
func TimesOf(metadata map[string]string) Times {
	keep := DefaultKeepAtLeast
	if ms, err := strconv.ParseInt(metadata[MetadataKeepAtLeast], 10, 64); err == nil && ms > 0 {
		keep = time.Duration(ms) * time.Millisecond
	}

	return Times{
		Answers: keep,
		Grace:   min(keep, 15*time.Second),
		Renew:   min(keep/2, 15*time.Second),
		Margin:  min(keep/4, 15*time.Second),
	}
}

// StoredAt returns when a message was stored first: at, the server's time, or the time in the
// header of a moved message.
func StoredAt(h nats.Header, at time.Time) time.Time {
	v := h[headerStored]
	if len(v) == 0 {
		return at
	}

	ms, err := strconv.ParseInt(v[0], 10, 64)
	if first := time.UnixMilli(ms); err == nil && first.Before(at) {
		return first
	}
	return at
}

// Moved reports whether a message was moved to the end of its stream.
func Moved(h nats.Header) bool { return len(h[headerStored]) > 0 }

// Place is the position of a message in its stream.
type Place struct {
	Sequence uint64
	Subject  string
	Time     time.Time // when it was stored there
}

// From returns the first message of a stream from a sequence on, or, with sequence 0, the first one
// not older than a time. The error wraps ErrNotFound if there is none.
func (l *Log) From(ctx context.Context, stream string, sequence uint64, at time.Time) (Place, error) {
	q := question{Sequence: sequence, Next: ">"}
	if sequence == 0 {
		q.Start = &at
	}
	return l.place(ctx, stream, q)
}

// firstOf returns the first message of a stream with a subject that matches a filter. The error wraps ErrNotFound if there is none.
func (l *Log) firstOf(ctx context.Context, stream, filter string) (Place, error) {
	return l.place(ctx, stream, question{Sequence: 1, Next: filter})
}

// place returns the position of the message that a question selects.
func (l *Log) place(ctx context.Context, stream string, q question) (Place, error) {
	m, err := l.conn.direct(ctx, stream, q)
	if errors.Is(err, ErrNotFound) {
		return Place{}, fmt.Errorf("%w: in %s from there on", ErrNotFound, stream)
	}
	if err != nil {
		return Place{}, fault.New(fault.Infrastructure, "bus: look into %s: %w", stream, err)
	}
	return Place{m.Sequence, m.Subject, m.Time}, nil
}

// MoveToEnd stores a message again at the end of its stream, in the place of the old one. The
// server does both at once if a subject holds one message and a new one replaces it. (A rollup
// would do so too, but may move the acknowledgement floors of the stream's consumers beyond
// messages that wait: nats-server 2.15.2.) It moves nothing, and returns false, if the message is
// not the last one of its subject any more.
func (l *Log) MoveToEnd(ctx context.Context, m *jetstream.RawStreamMsg) (moved bool, err error) {
	return l.putMoved(ctx, m, m.Sequence)
}

// PutAgain is MoveToEnd for a message that is stored again if it has been purged meanwhile.
func (l *Log) PutAgain(ctx context.Context, m *jetstream.RawStreamMsg) error {
	moved, err := l.putMoved(ctx, m, m.Sequence)
	if err == nil && !moved {
		_, err = l.putMoved(ctx, m, 0)
	}
	return err
}

// putMoved stores a message at the end of its stream if the last one of its subject has that sequence,
// or, with 0, if there is none.
func (l *Log) putMoved(ctx context.Context, m *jetstream.RawStreamMsg, last uint64) (bool, error) {
	msg := asPublished(m)
	msg.Header[headerStored] = []string{
		strconv.FormatInt(StoredAt(m.Header, m.Time).UnixMilli(), 10),
	}

	err := l.conn.publishAfter(ctx, msg, last)
	if errors.Is(err, errTaken) {
		return false, nil
	}
	return err == nil, err
}

// asPublished returns a stored message as it was published, without the headers of the server, the client
// library and this package's headerSpare.
func asPublished(m *jetstream.RawStreamMsg) *nats.Msg {
	h := maps.Clone(m.Header)
	if h == nil {
		h = nats.Header{}
	}

	maps.DeleteFunc(h, func(name string, _ []string) bool {
		return name == headerSpare || strings.HasPrefix(name, "Nats-")
	})
	return &nats.Msg{Subject: m.Subject, Header: h, Data: slices.Clone(m.Data)}
}
