package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attempts is how often Once tries again when the message that was in its way has meanwhile gone.
const attempts = 4

// maxPipelined bounds the publishes of OnceAll that wait for their acknowledgement.
const maxPipelined = 256

// Once stores m, acknowledged by the stream, unless its subject is taken. It returns nil if m was stored, and the
// earlier message otherwise: the caller says whether the two agree. A payload that exceeds the server's limit goes to the
// blobs and m carries its digest.
//
// It does not rely on Nats-Msg-Id: a stream forgets ids after its window, and a work queue after a restart.
func (b *Bus) Once(ctx context.Context, stream string, m *nats.Msg) (*jetstream.RawStreamMsg, error) {
	return b.OnceUnder(ctx, stream, m, m.Subject)
}

// OnceUnder is Once where the message is stored only if no subject that matches filter is taken.
func (b *Bus) OnceUnder(ctx context.Context, stream string, m *nats.Msg, filter string) (*jetstream.RawStreamMsg, error) {
	m, err := b.Fit(ctx, m)
	if err != nil {
		return nil, err
	}
	if stream == StreamModel || stream == StreamPartial {
		m = spared(m)
	}
	expect := jetstream.WithExpectLastSequencePerSubject(0)
	if filter != m.Subject {
		expect = jetstream.WithExpectLastSequenceForSubject(0, filter)
	}
	for range attempts {
		err = b.publish(ctx, m, expect)
		if err == nil {
			return nil, nil
		}
		if err = refusal(m.Subject, err); !errors.Is(err, errTaken) {
			return nil, err
		}
		earlier, getErr := b.Get(ctx, stream, filter)
		if !errors.Is(getErr, ErrNotFound) {
			return earlier, getErr
		}
	}
	return nil, fault.New(fault.Infrastructure, "bus: publish %s: refused %d times, and then nothing was there: %w", m.Subject, attempts, err)
}

// OnceAll is Once for many messages of one stream, all under way at the same time. Entry i of what it returns belongs
// to message i. Some may be stored when it fails.
func (b *Bus) OnceAll(ctx context.Context, stream string, msgs []*nats.Msg) ([]*jetstream.RawStreamMsg, error) {
	earlier := make([]*jetstream.RawStreamMsg, len(msgs))
	if len(msgs) == 1 {
		var err error
		earlier[0], err = b.Once(ctx, stream, msgs[0])
		return earlier, err
	}
	for from := 0; from < len(msgs); from += maxPipelined {
		to := min(from+maxPipelined, len(msgs))
		if err := b.onceBatch(ctx, stream, msgs[from:to], earlier[from:to]); err != nil {
			return nil, err
		}
	}
	return earlier, nil
}

func (b *Bus) onceBatch(ctx context.Context, stream string, msgs []*nats.Msg, earlier []*jetstream.RawStreamMsg) error {
	known, err := b.try(msgs[0].Subject)
	if err != nil {
		return err
	}
	inner, done := b.watch(ctx, msgs[0].Subject, known)
	defer done()
	futures := make([]jetstream.PubAckFuture, len(msgs))
	for i, m := range msgs {
		m, err := b.Fit(ctx, m)
		if err != nil {
			return err
		}
		// A copy: the client library writes into the header, and Once may need the message again.
		c := &nats.Msg{Subject: m.Subject, Header: nats.Header{}, Data: m.Data}
		for k, v := range m.Header {
			c.Header[k] = v
		}
		if futures[i], err = b.JS.PublishMsgAsync(c, jetstream.WithExpectLastSequencePerSubject(0)); err != nil {
			return fault.New(fault.Infrastructure, "bus: publish %s: %w", m.Subject, err)
		}
	}
	for i, f := range futures {
		err := acknowledged(inner, f)
		if answered(err) {
			b.stored(msgs[i].Subject)
		}
		if err = refusal(msgs[i].Subject, err); err == nil {
			continue
		}
		if !errors.Is(err, errTaken) {
			return err
		}
		if earlier[i], err = b.Once(ctx, stream, msgs[i]); err != nil {
			return err
		}
	}
	return nil
}

// acknowledged waits for what the stream says of a message, until ctx ends.
func acknowledged(ctx context.Context, f jetstream.PubAckFuture) error {
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	case <-ctx.Done():
	}
	select { // it may have been said long ago
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	default:
		return context.Cause(ctx)
	}
}

// Put stores m whatever its subject holds.
func (b *Bus) Put(ctx context.Context, m *nats.Msg) error {
	m, err := b.Fit(ctx, m)
	if err != nil {
		return err
	}
	if err := b.publish(ctx, m); err != nil {
		return refusal(m.Subject, err)
	}
	return nil
}

// errTaken: the subject already has its message.
var errTaken = errors.New("bus: subject is taken")

const (
	codeWrongLastSequence = jetstream.JSErrCodeStreamWrongLastSequence // 10071
	codeStoreFailed       = 10077                                      // a full stream, and a full subject
)

// refusal tells a taken subject from a full stream. Both may arrive as 10077, told apart by text only; every publish
// here says what sequence it expects, which is checked first and gives 10071.
func refusal(subject string, err error) error {
	if err == nil {
		return nil
	}
	var api *jetstream.APIError
	if errors.Is(err, ErrStorage) {
		return err
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fault.New(fault.Infrastructure, "%w: publish %s: %w", ErrNoStream, subject, err)
	}
	if !errors.As(err, &api) {
		return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
	}
	switch {
	case api.ErrorCode == codeWrongLastSequence,
		api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "per subject"):
		return fmt.Errorf("%w: %s", errTaken, subject)
	case api.ErrorCode == codeStoreFailed:
		return fault.New(fault.Infrastructure, "%w: publish %s: %s", ErrFull, subject, api.Description)
	}
	return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
}
