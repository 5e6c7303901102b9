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
	signer *Signer
	blobs  *Blobs // of payloads
	admit  Admit  // if nil, everything is admitted
}

// attempts is how often PutOnce publishes if the message that was on its subject is gone when it looks
// for it.
const attempts = 4

// mostForged is the number of forged messages after whose removal PutOnce gives up a subject.
const mostForged = 100

// maxAtOnce bounds the number of publishes of PutAllOnce that wait for their acknowledgement.
const maxAtOnce = 64

// PutOnce stores m, and waits for the stream's acknowledgement, unless its subject has a message. It
// returns nil if m was stored, and the earlier message otherwise: the caller decides whether the
// two agree. A payload above the server's limit becomes a blob, and m carries its digest.
//
// It does not rely on Nats-Msg-Id: a stream forgets ids after its window, and a work queue after a
// restart.
func (l *Log) PutOnce(ctx context.Context, stream string, m *nats.Msg) (earlier *jetstream.RawStreamMsg, err error) {
	return l.PutOnceUnder(ctx, stream, m, m.Subject)
}

// PutOnceUnder is PutOnce that stores the message only if no subject that matches filter has one.
func (l *Log) PutOnceUnder(
	ctx context.Context, stream string, m *nats.Msg, filter string,
) (earlier *jetstream.RawStreamMsg, err error) {
	m, err = l.Fit(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return nil, err
	}

	if stream == StreamModel {
		if err := l.admit.ask(ctx, stream, m.Subject, m.Header, len(m.Data)); err != nil {
			return nil, err
		}
	}
	if stream == StreamModel || stream == StreamPartial {
		m = withSpare(m)
	}

	expect := jetstream.WithExpectLastSequencePerSubject(0)
	if filter != m.Subject {
		// The client library writes the filter into the header, and the caller may publish m again.
		m = &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
		expect = jetstream.WithExpectLastSequenceForSubject(0, filter)
	}

	for tried, forged := 0, 0; tried < attempts && forged < mostForged; {
		if err = l.conn.publish(ctx, m, expect); !errors.Is(err, errTaken) {
			return nil, err
		}

		earlier, getErr := l.Get(ctx, stream, filter)
		switch {
		case Unreadable(getErr) && l.Discard(ctx, stream, earlier):
			tried++
		case !errors.Is(getErr, ErrNotFound):
			return earlier, getErr
		case errors.Is(getErr, errForged):
			forged++
		default:
			tried++
		}
	}
	return nil, fault.New(
		fault.Infrastructure, "bus: publish %s: refused again and again, and then nothing was there: %w",
		m.Subject, err,
	)
}

// PutAllOnce is PutOnce for many messages of one stream, at most maxAtOnce of them at the same time. Entry i of its result
// belongs to message i. Some may be stored when it fails.
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

// Fit returns m as it is published: signed, if it is internal. If its payload exceeds the server's limit, it is a message with the digest
// of a blob that holds it, of an owner.
func (l *Log) Fit(ctx context.Context, owner string, m *nats.Msg) (*nats.Msg, error) {
	m, err := l.blobs.Of(owner).detach(ctx, m)
	if err != nil {
		return nil, err
	}
	return m, l.signer.Sign(m, m.Subject)
}

// Put stores m without regard to earlier messages of its subject.
func (l *Log) Put(ctx context.Context, m *nats.Msg) error {
	m, err := l.Fit(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return err
	}
	return l.conn.publish(ctx, m)
}

// putAfter stores an owner's message after the message with the sequence last, 0: after none. The error wraps errTaken if the subject has
// another message.
func (l *Log) putAfter(ctx context.Context, owner string, m *nats.Msg, last uint64) error {
	m, err := l.Fit(ctx, owner, m)
	if err != nil {
		return err
	}
	return l.conn.publishAfter(ctx, m, last)
}

// Purge removes messages of a stream: those on a subject, which may have wildcards, or on all subjects if it is "", and of these the ones
// below a sequence, or all if it is 0.
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

// Get returns the last message on a subject, with its payload resolved. A subject with wildcards gets
// the last message that matches. The error wraps ErrNotFound if there is none. If the payload cannot
// be fetched, the message is returned with the error.
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

// GetRaw is Get with the payload as it is stored: of a large one the digest. A message that is forged counts as not stored.
func (l *Log) GetRaw(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := l.conn.last(ctx, stream, subject)
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

// Batch returns the messages of a stream from a sequence on, as they are stored, with one request: up to count of them, and no more once
// they have that many bytes. Any replica may answer.
func (l *Log) Batch(ctx context.Context, stream string, from uint64, count, bytes int) (batch []*jetstream.RawStreamMsg, err error) {
	from = max(from, 1)
	body, err := json.Marshal(question{Sequence: from, Next: ">", Batch: count, Bytes: bytes})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}

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
			m, err = storedOf(reply)
		}
		if errors.Is(err, ErrDoubtful) { // replies come in sequence: this is the first message from here on
			m, err = l.conn.fromLeader(ctx, stream, question{Sequence: from, Next: ">"})
		}
		if errors.Is(err, ErrNotFound) {
			return batch, nil
		}
		if err != nil {
			return batch, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
		}
		batch = append(batch, m)
		from = m.Sequence + 1
	}
}

// Plain returns the headers of a stored message as they are for one whose payload is not elsewhere:
// without the headers of the server and of this package.
func Plain(h nats.Header) nats.Header {
	plain := maps.Clone(h)
	maps.DeleteFunc(plain, func(name string, _ []string) bool {
		return name == headerBlob || name == wire.HeaderSum || strings.HasPrefix(name, "Nats-")
	})
	return plain
}
