package bus

// Operations by which old messages of a stream make room: to find the first message from a time on, and to move a
// message to the end, so that everything before a sequence can be removed.

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

// DefaultKeepAtLeast is the minimum retention of answers for a stream that states none.
const DefaultKeepAtLeast = time.Minute

// headerStored is the header of a model or a partial that was moved to the end of its stream. It has the time when the
// message was stored first, in Unix milliseconds.
const headerStored = "Btn-Stored"

// headerSpare is a header without meaning, on messages that may be moved while their stream is full. A full stream
// replaces a message only by one that is not larger, and a moved message gets headerStored. It gives up headerSpare for
// it.
const headerSpare = "Btn-Spare"

// withSpare adds headerSpare to m, a header that the message gives up if it is moved in a full stream, and returns m.
func withSpare(m *nats.Msg) *nats.Msg {
	m.Header[headerSpare] = []string{"room for what a message says that was moved"}
	return m
}

// Times are the ages from which messages may be purged. All follow from the least time for which
// answers are kept.
type Times struct {
	Answers time.Duration // least time for which answers are kept
	Grace   time.Duration // least time for which models of answered jobs are kept
	Renew   time.Duration // a blob that is older is moved to the end of its stream when a job needs it
	Margin  time.Duration // by how much a job's stored data may be older than the job
}

// TimesOf returns the times of a stream, which follow from the minimum retention of answers in its metadata.
func TimesOf(metadata map[string]string) Times {
	keepAnswers := DefaultKeepAtLeast
	if ms, err := strconv.ParseInt(metadata[MetadataKeepAtLeast], 10, 64); err == nil && ms > 0 {
		keepAnswers = time.Duration(ms) * time.Millisecond
	}

	return Times{
		Answers: keepAnswers,
		Grace:   min(keepAnswers, 15*time.Second),
		Renew:   min(keepAnswers/2, 15*time.Second),
		Margin:  min(keepAnswers/4, 15*time.Second),
	}
}

// StoredAt returns when a message with headers h was stored first. stated is the time that the server states. If the
// message was moved to the end of its stream since, the first time is in a header.
func StoredAt(h nats.Header, stated time.Time) time.Time {
	values := h[headerStored]
	if len(values) == 0 {
		return stated
	}

	ms, err := strconv.ParseInt(values[0], 10, 64)
	if firstStored := time.UnixMilli(ms); err == nil && firstStored.Before(stated) {
		return firstStored
	}
	return stated
}

// WasMoved reports whether a message with headers h was moved to the end of its stream.
func WasMoved(h nats.Header) bool { return len(h[headerStored]) > 0 }

// Place is the position of a message in its stream.
type Place struct {
	Sequence uint64
	Subject  string
	Time     time.Time // when it was stored there
}

// FirstFrom returns the first message of a stream from a sequence on. If the sequence is 0, it returns the first message
// that was stored at the time earliest or later. The error wraps ErrNotFound if there is none.
func (l *Log) FirstFrom(ctx context.Context, stream string, sequence uint64, earliest time.Time) (Place, error) {
	q := question{Sequence: sequence, Next: ">"}
	if sequence == 0 {
		q.Start = &earliest
	}
	return l.findPlace(ctx, stream, q)
}

// firstOf returns the first message of a stream with a subject that matches a filter. The error wraps ErrNotFound if
// there is none.
func (l *Log) firstOf(ctx context.Context, stream, filter string) (Place, error) {
	return l.findPlace(ctx, stream, question{Sequence: 1, Next: filter})
}

// findPlace returns the position of the message that a question selects.
func (l *Log) findPlace(ctx context.Context, stream string, q question) (Place, error) {
	m, err := l.conn.getDirect(ctx, stream, q)
	if errors.Is(err, ErrNotFound) {
		return Place{}, fmt.Errorf("%w: in %s from there on", ErrNotFound, stream)
	}
	if err != nil {
		return Place{}, fault.New(fault.Infrastructure, "bus: look into %s: %w", stream, err)
	}
	return Place{m.Sequence, m.Subject, m.Time}, nil
}

// MoveToEnd stores a message again at the end of its stream, where it replaces the old one in one step. It moves
// nothing, and returns false, if the message is not the last one of its subject any more.
//
// The server replaces a message in one step because a subject holds only one. (A rollup would do so too, but may move
// the acknowledgement floors of the stream's consumers beyond messages that wait: nats-server 2.15.2.)
func (l *Log) MoveToEnd(ctx context.Context, m *jetstream.RawStreamMsg) (moved bool, err error) {
	return l.putMoved(ctx, m, m.Sequence)
}

// PutAgain is MoveToEnd, except that it also stores the message again if it has been purged meanwhile.
func (l *Log) PutAgain(ctx context.Context, m *jetstream.RawStreamMsg) error {
	moved, err := l.putMoved(ctx, m, m.Sequence)
	if err == nil && !moved {
		_, err = l.putMoved(ctx, m, 0)
	}
	return err
}

// putMoved stores a message at the end of its stream, with the time when it was stored first in a header. It returns
// false if the last message of the subject does not have the sequence lastSequence, or if that is 0 and there is a
// message.
func (l *Log) putMoved(ctx context.Context, m *jetstream.RawStreamMsg, lastSequence uint64) (bool, error) {
	msg := asPublished(m)
	msg.Header[headerStored] = []string{
		strconv.FormatInt(StoredAt(m.Header, m.Time).UnixMilli(), 10),
	}

	err := l.conn.publishAfter(ctx, msg, lastSequence)
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
