package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// attempts is how often Once publishes if the message that was on its subject is gone when it looks
// for it.
const attempts = 4

// mostForged is the number of forged messages after whose removal Once gives up a subject.
const mostForged = 100

// maxAtOnce bounds the number of publishes of OnceAll that wait for their acknowledgement.
const maxAtOnce = 64

// Once stores m, and waits for the stream's acknowledgement, unless its subject has a message. It
// returns nil if m was stored, and the earlier message otherwise: the caller decides whether the
// two agree. A payload above the server's limit becomes a blob, and m carries its digest.
//
// It does not rely on Nats-Msg-Id: a stream forgets ids after its window, and a work queue after a
// restart.
func (b *Bus) Once(
	ctx context.Context, stream string, m *nats.Msg,
) (*jetstream.RawStreamMsg, error) {
	return b.OnceUnder(ctx, stream, m, m.Subject)
}

// OnceUnder is Once that stores the message only if no subject that matches filter has one.
func (b *Bus) OnceUnder(
	ctx context.Context, stream string, m *nats.Msg, filter string,
) (*jetstream.RawStreamMsg, error) {
	m, err := b.Fit(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return nil, err
	}

	if stream == StreamModel {
		if err := b.admit.ask(ctx, stream, m.Subject, m.Header, len(m.Data)); err != nil {
			return nil, err
		}
	}
	if stream == StreamModel || stream == StreamPartial {
		m = spared(m)
	}

	expect := jetstream.WithExpectLastSequencePerSubject(0)
	if filter != m.Subject {
		// The client library writes the filter into the header, and the caller may publish m again.
		m = &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
		expect = jetstream.WithExpectLastSequenceForSubject(0, filter)
	}

	for tried, forged := 0, 0; tried < attempts && forged < mostForged; {
		err = b.publish(ctx, m, expect)
		if err == nil {
			return nil, nil
		}
		if err = refusal(m.Subject, err); !errors.Is(err, errTaken) {
			return nil, err
		}

		earlier, getErr := b.Get(ctx, stream, filter)
		switch {
		case Unreadable(getErr) && b.Discard(ctx, stream, earlier):
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

// OnceAll is Once for many messages of one stream, at most maxAtOnce of them at the same time. Entry i of its result
// belongs to message i. Some may be stored when it fails.
func (b *Bus) OnceAll(
	ctx context.Context, stream string, msgs []*nats.Msg,
) ([]*jetstream.RawStreamMsg, error) {
	earlier := make([]*jetstream.RawStreamMsg, len(msgs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxAtOnce)
	for i, m := range msgs {
		g.Go(func() (err error) {
			earlier[i], err = b.Once(ctx, stream, m)
			return err
		})
	}
	return earlier, g.Wait()
}

// Fit returns m as it is published: signed, if it is internal. If its payload exceeds the server's limit, it is a message with the digest
// of a blob that holds it, of an owner.
func (b *Bus) Fit(ctx context.Context, owner string, m *nats.Msg) (*nats.Msg, error) {
	m, err := b.Blobs.Of(owner).detach(ctx, m)
	if err != nil {
		return nil, err
	}
	return m, b.signer.Sign(m, m.Subject)
}

// Put stores m without regard to earlier messages of its subject.
func (b *Bus) Put(ctx context.Context, m *nats.Msg) error {
	m, err := b.Fit(ctx, message.OwnerOf(m.Subject), m)
	if err != nil {
		return err
	}
	if err := b.publish(ctx, m); err != nil {
		return refusal(m.Subject, err)
	}
	return nil
}

// errTaken: the subject has its message already.
var errTaken = errors.New("bus: subject is taken")

// Error codes of the server.
const (
	codeWrongLastSequence = jetstream.JSErrCodeStreamWrongLastSequence // 10071
	// 10164: a message of the subject is on its way to the replicas
	codeInFlight = jetstream.JSErrCodeStreamWrongLastSequenceConstant
	// a full stream, and a full subject
	codeStoreFailed = 10077
	// a cluster is choosing a leader
	codeNoLeader = 10008
)

// refusal returns the error of a publish as one of this package: errTaken or ErrFull, among others.
// The server may report both with code 10077, which only the text distinguishes; but every publish
// here names the sequence that it expects, which is checked first and gives 10071.
func refusal(subject string, err error) error {
	if err == nil {
		return nil
	}
	var api *jetstream.APIError
	if errors.Is(err, ErrStorage) {
		return err
	}

	if errors.Is(err, jetstream.ErrNoStreamResponse) && slices.Contains(admittedKinds, message.KindOf(subject)) {
		return fault.New(fault.Infrastructure, "%w: publish %s: for a tenant or a client reparam-worker stores it: does one run? %w",
			ErrNoStream, subject, err)
	}
	if errors.Is(err, jetstream.ErrNoStreamResponse) {
		return fault.New(fault.Infrastructure, "%w: publish %s: %w", ErrNoStream, subject, err)
	}

	if !errors.As(err, &api) {
		return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
	}

	if err := refusedFor(subject, api); err != nil {
		return err
	}
	switch {
	case api.ErrorCode == codeWrongLastSequence,
		api.ErrorCode == codeStoreFailed && strings.Contains(api.Description, "per subject"):
		return fmt.Errorf("%w: %s", errTaken, subject)
	case api.ErrorCode == codeStoreFailed:
		return fault.New(
			fault.Infrastructure, "%w: publish %s: %s", ErrFull, subject, api.Description,
		)
	}
	return fault.New(fault.Infrastructure, "bus: publish %s: %w", subject, err)
}
