package bus

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Log has the messages on streams, of any size: it signs what it stores, and finds only what may be believed.
type Log struct {
	conn   *Conn
	signer *Signer // signs what is stored, and checks what is read
	blobs  *Blobs  // keeps payloads above the server's limit
	admit  Admit   // checks quotas; if nil, everything is admitted
}

// putAttempts bounds how often PutOnce publishes. It publishes again if its subject was taken, but the message there is
// gone when PutOnce looks for it.
const putAttempts = 4

// maxForged is the number of forged messages after whose removal PutOnce gives up a subject.
const maxForged = 100

// maxAtOnce bounds the number of publishes of PutAllOnce that wait for their acknowledgement.
const maxAtOnce = 64

// PutOnce stores m if its subject has no message yet, and waits for the stream's acknowledgement. earlier is nil if m
// was stored, and otherwise the message that was there, which the caller may compare with m. A payload above the
// server's limit is stored as a blob, and the stored message has the blob's digest.
//
// It does not rely on Nats-Msg-Id: a stream forgets ids after its window, and a work queue after a
// restart.
func (l *Log) PutOnce(ctx context.Context, stream string, m *nats.Msg) (earlier *jetstream.RawStreamMsg, err error) {
	return l.PutOnceIfNone(ctx, stream, m, m.Subject)
}

// PutOnceIfNone stores m if no subject that matches filter has a message, for instance if no lane has the job. Otherwise
// it returns the earlier message, as PutOnce does.
func (l *Log) PutOnceIfNone(
	ctx context.Context, stream string, m *nats.Msg, filter string,
) (earlier *jetstream.RawStreamMsg, err error) {
	// Sign m, and ask whether its owner may store it.
	m, err = l.Prepare(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return nil, err
	}
	if stream == StreamModel {
		if err := l.admit.ask(ctx, stream, m.Subject, m.Header, len(m.Data)); err != nil {
			return nil, err
		}
	}
	if stream == StreamModel || stream == StreamPartial {
		m = withSpare(m) // these may be moved to the end of their stream
	}

	// The server refuses m unless the subjects of filter are empty, that is, the last sequence on them is 0.
	expect := jetstream.WithExpectLastSequencePerSubject(0)
	if filter != m.Subject {
		// The client library writes the filter into the header, and the caller may publish m again.
		m = &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
		expect = jetstream.WithExpectLastSequenceForSubject(0, filter)
	}

	// Publish m again while it is refused, and then no earlier message is found that the caller could use.
	for attempts, forgeries := 0, 0; attempts < putAttempts && forgeries < maxForged; {
		if err = l.conn.publish(ctx, m, expect); !errors.Is(err, errTaken) {
			return nil, err // stored, or an error that another attempt does not change
		}

		earlier, getErr := l.Get(ctx, stream, filter)
		switch {
		case IsUnreadable(getErr) && l.Discard(ctx, stream, earlier):
			attempts++ // the earlier message was useless and is deleted
		case !errors.Is(getErr, ErrNotFound):
			return earlier, getErr // getErr is nil, or the search failed
		case errors.Is(getErr, errForged): // such an error wraps ErrNotFound too
			forgeries++ // Get has deleted it, if it may
		default:
			attempts++ // the earlier message is gone
		}
	}
	return nil, fault.New(
		fault.Infrastructure, "bus: publish %s: refused again and again, and then nothing was there: %w",
		m.Subject, err,
	)
}

// PutAllOnce calls PutOnce for many messages of one stream, at most maxAtOnce of them at the same time. Entry i of its
// result is the earlier message of msgs[i], or nil. If it fails, some messages may be stored.
func (l *Log) PutAllOnce(
	ctx context.Context, stream string, msgs []*nats.Msg,
) ([]*jetstream.RawStreamMsg, error) {
	earlier := make([]*jetstream.RawStreamMsg, len(msgs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxAtOnce)
	for i, m := range msgs {
		g.Go(func() (err error) {
			earlier[i], err = l.PutOnce(ctx, stream, m)
			return err
		})
	}
	return earlier, g.Wait()
}

// Prepare returns m as it is to be published: signed if it is internal. If the payload exceeds the server's limit, Prepare
// stores it as a blob of owner, and the returned message has the blob's digest instead.
func (l *Log) Prepare(ctx context.Context, owner string, m *nats.Msg) (*nats.Msg, error) {
	m, err := l.blobs.ForOwner(owner).moveToBlob(ctx, m)
	if err != nil {
		return nil, err
	}
	return m, l.signer.Sign(m, m.Subject)
}

// Put stores m, whatever its subject has.
func (l *Log) Put(ctx context.Context, m *nats.Msg) error {
	m, err := l.Prepare(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return err
	}
	return l.conn.publish(ctx, m)
}

// putAfter stores an owner's message if the last message on its subject has the sequence lastSequence, or if that is 0
// and the subject is empty. Otherwise the error wraps errTaken.
func (l *Log) putAfter(ctx context.Context, owner string, m *nats.Msg, lastSequence uint64) error {
	m, err := l.Prepare(ctx, owner, m)
	if err != nil {
		return err
	}
	return l.conn.publishAfter(ctx, m, lastSequence)
}

// Purge removes the messages of a stream on subject, which may have wildcards. If subject is "", it removes those on
// all subjects. If below is not 0, only messages with smaller sequences are removed.
func (l *Log) Purge(ctx context.Context, stream, subject string, below uint64) error {
	s, err := l.conn.Stream(ctx, stream)
	if err != nil {
		return err
	}
	var options []jetstream.StreamPurgeOpt
	if subject != "" {
		options = append(options, jetstream.WithPurgeSubject(subject))
	}
	if below > 0 {
		options = append(options, jetstream.WithPurgeSequence(below))
	}
	if err := s.Purge(ctx, options...); err != nil {
		return fault.New(fault.Infrastructure, "bus: purge %s of %s: %w", stream, subject, err)
	}
	return nil
}

// Get returns the last message on a subject, or the last one that matches a subject with wildcards. A payload in a blob
// is fetched. The error wraps ErrNotFound if there is no message. If the blob cannot be fetched, the message is
// returned together with the error.
func (l *Log) Get(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := l.GetRaw(ctx, stream, subject)
	if err != nil {
		return nil, err
	}
	m.Data, err = l.blobs.Payload(ctx, message.OwnerOf(m.Subject), m.Header, m.Data)
	return m, err
}

// Has reports whether there is a message on a subject.
func (l *Log) Has(ctx context.Context, stream, subject string) (bool, error) {
	_, err := l.GetRaw(ctx, stream, subject)
	return isFound(err)
}

// GetRaw returns the last message on a subject as it is stored: if the payload is in a blob, Data is the blob's digest.
// A forged message counts as not stored. The error wraps ErrNotFound if there is no message.
func (l *Log) GetRaw(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := l.conn.getLast(ctx, stream, subject)
	if err != nil {
		return nil, err
	}
	return l.verifyStored(ctx, stream, subject, m)
}

// Subjects lists the subjects of a stream that match filter, with the number of messages on each.
// The stream's leader answers, in time proportional to the number of subjects.
func (l *Log) Subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	return l.conn.subjects(ctx, stream, filter)
}

// Delete removes one message of a stream.
func (l *Log) Delete(ctx context.Context, stream string, sequence uint64) error {
	return l.conn.delete(ctx, stream, sequence)
}

// Batch returns the messages of a stream with firstSequence and later sequences, as they are stored. It ends after
// count messages, or once they have the given number of bytes. It sends one request, to which any replica may send the
// messages as separate replies. If it fails, it returns the messages so far with the error.
func (l *Log) Batch(
	ctx context.Context, stream string, firstSequence uint64, count, bytes int,
) (batch []*jetstream.RawStreamMsg, err error) {
	firstSequence = max(firstSequence, 1)
	body, err := json.Marshal(question{Sequence: firstSequence, Next: ">", Batch: count, Bytes: bytes})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}

	// The replies come to an inbox, and a reply without a message ends them.
	inbox := l.conn.NC.NewInbox()
	replies, err := l.conn.NC.SubscribeSync(inbox)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}
	defer replies.Unsubscribe()
	if err := l.conn.NC.PublishRequest(l.conn.API+"DIRECT.GET."+stream, inbox, body); err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}

	for {
		reply, err := replies.NextMsgWithContext(ctx)
		var m *jetstream.RawStreamMsg
		if err == nil {
			m, err = parseStored(reply)
		}
		if errors.Is(err, ErrDoubtful) { // replies come in sequence: the doubtful one is the first message from here on
			m, err = l.conn.getFromLeader(ctx, stream, question{Sequence: firstSequence, Next: ">"})
		}
		if errors.Is(err, ErrNotFound) { // the reply that ends the batch
			return batch, nil
		}
		if err != nil {
			return batch, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
		}
		batch = append(batch, m)
		firstSequence = m.Sequence + 1
	}
}

// AuthorHeaders returns the headers that the author of a stored message gave it: without those of the server, and without the
// sum and the blob's digest that this package adds.
func AuthorHeaders(h nats.Header) nats.Header {
	plain := maps.Clone(h)
	maps.DeleteFunc(plain, func(name string, _ []string) bool {
		return name == headerBlob || name == wire.HeaderSum || strings.HasPrefix(name, "Nats-")
	})
	return plain
}
