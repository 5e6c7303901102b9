package bus

// Messages that workers write for each other are signed, and believed only if they are.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Guard is how a Bus takes internal messages. The zero value signs nothing and believes everything.
type Guard struct {
	seal.Trust

	// Remove deletes forged messages from streams, so that the true ones can be stored. Forged answers
	// are deleted only with RemoveAnswers, too: by an aggregator, which replaces them and alone may do
	// so.
	Remove, RemoveAnswers bool
	// Forged, unless it is nil, is called for every forged message that was found.
	Forged func(kind message.Kind, subject string)
}

// Trust returns the keys by which messages are believed.
func (b *believer) Trust() seal.Trust { return b.guard.Trust }

// sign puts its sum into a message that is complete, and its MAC into an internal one. It may be delivered on another subject than the
// one that it is published on.
func (b *believer) sign(m *nats.Msg, delivered string) error {
	b.addSum(m, delivered)
	kind := message.KindOf(delivered)
	if b.guard.Keys != nil && message.Internal(kind) {
		m.Header[seal.Header] = []string{b.guard.Keys.Sign(delivered, blobOf(m.Header), m.Data)}
	}
	if kind != message.KindAnswer {
		return nil
	}
	signature, err := b.guard.Answers.Sign(delivered, digestOf(m.Header), statedOf(m.Header, m.Data))
	if signature != "" {
		m.Header[seal.Signature] = []string{signature}
	}
	return fault.Wrap(fault.Internal, err)
}

// Say publishes a message that no stream stores, signed if it is internal.
func (b *believer) Say(m *nats.Msg) error {
	if err := b.sign(m, m.Subject); err != nil {
		return err
	}
	return b.NC.PublishMsg(m)
}

// Genuine reports whether a message of a subject may be believed: it is not internal, or signed.
// Others are reported to Guard.Forged.
func (b *believer) Genuine(subject string, h nats.Header, data []byte) bool {
	return b.sound(subject, h, data) || b.forged(subject)
}

// sound reports whether a message is as it was sent, by a worker if it is internal.
func (b *believer) sound(subject string, h nats.Header, data []byte) bool {
	return b.signed(subject, h, data) && Intact(subject, h, data) == nil
}

// forged reports a message to Guard.Forged, and returns false.
func (b *believer) forged(subject string) bool {
	if b.guard.Forged != nil {
		b.guard.Forged(message.KindOf(subject), subject)
	}
	return false
}

// signed reports whether a message needs no signature, or has a valid one: an answer an aggregator's signature, any
// other internal message a worker's MAC. Without public keys of aggregators an answer needs a worker's MAC.
func (b *believer) signed(subject string, h nats.Header, data []byte) bool {
	g, kind := &b.guard, message.KindOf(subject)
	switch {
	case kind == message.KindAnswer && g.Answers != nil:
		said := h[seal.Signature]
		return len(said) < 2 && g.Answers.Verify(first(said), subject, digestOf(h), statedOf(h, data))
	case g.Keys != nil && message.Internal(kind):
		return g.Keys.Verify(first(h[seal.Header]), subject, blobOf(h), data)
	}
	return true
}

// Verifies reports whether there are keys: then Genuine needs the payload of messages.
func (b *believer) Verifies() bool { return b.guard.Keys != nil || b.guard.Answers != nil }

// Believed is Genuine for a delivered message. A message that is not sound may have been damaged on its way, so it
// is fetched again. If the stored bytes are sound, d takes them. A client's message is believed in any case: Intact tells.
func (b *believer) Believed(ctx context.Context, d *Delivered) bool {
	believed := b.believes(ctx, d)
	switch {
	case b.guard.Keys == nil || !message.Internal(message.KindOf(d.Subject)):
	case believed:
		b.heard.Add(1)
	default:
		b.doubted.Add(1)
	}
	return believed
}

// doubtsMatter is the number of messages that do not verify from which on the keys of this process are to blame, if none verifies.
const doubtsMatter = 3

// Trusted returns nil, or an error if none of the messages that came from other workers verifies by the keys here.
func (b *believer) Trusted() error {
	if n := b.doubted.Load(); n >= doubtsMatter && b.heard.Load() == 0 {
		return fault.New(fault.Infrastructure,
			"bus: none of the %d messages of other workers is signed by a key of --message-keys: do they have the same file?", n)
	}
	return nil
}

// believes is Believed, uncounted.
func (b *believer) believes(ctx context.Context, d *Delivered) bool {
	sound := b.sound(d.Subject, d.Header, d.Data)
	if sound && (b.guard.Keys != nil && message.Internal(message.KindOf(d.Subject)) || len(d.Header[wire.HeaderSum]) > 0) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	m, err := b.direct(ctx, d.Stream, question{Sequence: d.Sequence}) // of no sum: perhaps the headers were lost on the way
	if err != nil || m.Subject != d.Subject || !b.sound(d.Subject, m.Header, m.Data) {
		return sound || !message.Internal(message.KindOf(d.Subject)) || b.forged(d.Subject)
	}
	if sound && len(m.Header[wire.HeaderSum]) == 0 {
		return true // it was sent without one
	}
	if len(d.Header[headerSize]) == 0 { // else it comes without its payload
		d.Header, d.Data = bare(m).Header, m.Data
	}
	return true
}

// believed returns a stored message if it is genuine: signed for its subject, which has to match the requested subject
// or filter. A message that does not verify, even when fetched again, counts as not stored, and is deleted where Guard
// says so.
func (b *believer) believed(
	ctx context.Context, stream, subject string, m *jetstream.RawStreamMsg,
) (_ *jetstream.RawStreamMsg, err error) {
	signedFor := subject
	for looks := 1; ; looks++ {
		if signedFor = subject; matches(subject, m.Subject) {
			signedFor = m.Subject
		}
		answer := message.KindOf(signedFor) == message.KindAnswer
		if (!answer || m.Header != nil) && b.sound(signedFor, m.Header, m.Data) { // an answer without headers is forged, see noAnswer
			return m, nil
		}
		if looks == looksAtForged {
			break
		}
		if m, err = b.getOnce(ctx, stream, subject); err != nil {
			return nil, err
		}
	}
	if !message.Internal(message.KindOf(signedFor)) {
		return m, nil // a client's: Intact tells
	}
	b.forged(signedFor)
	b.removeForged(ctx, stream, m.Sequence)
	return nil, fmt.Errorf("%w: %s", errForged, subject)
}

// looksAtForged is the number of fetches before a message counts as forged: it may have been damaged on its way.
const looksAtForged = 2

// matches reports whether a filter of as many tokens has a subject.
func matches(filter, subject string) bool {
	want, have := strings.Split(filter, "."), strings.Split(subject, ".")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

// removeForged deletes a stored message that is forged. If that fails somebody else will find the same.
func (b *believer) removeForged(ctx context.Context, stream string, sequence uint64) {
	if !b.guard.Remove || stream == StreamAnswer && !b.guard.RemoveAnswers {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	_ = b.Delete(ctx, stream, sequence)
}

// Discard deletes a stored message that can never be read, so that another can take its place, and reports whether it
// did. It deletes only internal messages, and none while a cluster is not settled.
func (b *believer) Discard(ctx context.Context, stream string, m *jetstream.RawStreamMsg) bool {
	if m == nil || !message.Internal(message.KindOf(m.Subject)) || b.inCluster() && b.Unsettled(2*lostFor) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	return b.Delete(ctx, stream, m.Sequence) == nil
}

// errForged: the message on a subject is forged. It counts as not stored.
var errForged = fmt.Errorf("%w (the stored message is forged)", ErrNotFound)

const removeWithin = 2 * time.Second

// Forged ends the deliveries of a message that is forged, and deletes it where its stream would keep it.
func (b *believer) Forged(ctx context.Context, d *Delivered) {
	d.Never("forged")
	if message.KindOf(d.Subject) == message.KindPartial {
		b.removeForged(ctx, StreamPartial, d.Sequence)
	}
}

// GenuineAnswer is Genuine for an answer that does not come from its stream: a republished one, or the reply to a
// request.
func (b *believer) GenuineAnswer(job string, h nats.Header, data []byte) bool {
	return b.Genuine(wire.AnswerSubject(job), h, data)
}

// first returns the first of a header's values, or "".
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// blobOf returns the digest of the blob that is a message's payload, or "".
func blobOf(h nats.Header) string { return first(h[headerBlob]) }

// digestOf returns the digest of the request that a message belongs to, or "".
func digestOf(h nats.Header) string { return first(h[wire.HeaderDigest]) }

// statedOf returns the signed statement of an answer: the digest of its payload, in the message or in a blob, and its
// status in lists.
func statedOf(h nats.Header, data []byte) string {
	content := blobOf(h)
	if content == "" {
		content = wire.Digest(data)
	}
	return content + " " + first(h[message.HeaderStatus])
}
