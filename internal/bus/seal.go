package bus

// Messages that workers write for each other are signed, and believed only if they are.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/seal"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Guard is how a Bus takes internal messages. The zero value signs nothing and believes everything.
type Guard struct {
	Keys *seal.Keys

	// Remove: stored messages that are forged are deleted, so that the true ones can be stored.
	Remove bool
	// Forged, unless it is nil, is told of every forged message that was found.
	Forged func(kind message.Kind, subject string)
}

// Guard sets how the Bus takes internal messages, before anything else is done with it.
func (b *Bus) Guard(g Guard) { b.guard = g }

// sign puts its MAC into an internal message that is complete. It may be delivered on another subject than the one that it is
// published on.
func (b *Bus) sign(m *nats.Msg, delivered string) {
	if b.guard.Keys != nil && message.Internal(message.KindOf(delivered)) {
		m.Header[seal.Header] = []string{b.guard.Keys.Sign(delivered, blobOf(m.Header), m.Data)}
	}
}

// Say publishes a message that no stream stores, signed if it is internal.
func (b *Bus) Say(m *nats.Msg) error {
	b.sign(m, m.Subject)
	return b.NC.PublishMsg(m)
}

// Genuine reports whether a message of a subject may be believed: it is not internal, or signed. Others are told to Guard.Forged.
func (b *Bus) Genuine(subject string, h nats.Header, data []byte) bool {
	if b.guard.Keys == nil {
		return true
	}
	kind := message.KindOf(subject)
	if !message.Internal(kind) {
		return true
	}
	mac := ""
	if v := h[seal.Header]; len(v) > 0 {
		mac = v[0]
	}
	if b.guard.Keys.Verify(mac, subject, blobOf(h), data) {
		return true
	}
	if b.guard.Forged != nil {
		b.guard.Forged(kind, subject)
	}
	return false
}

// believed returns the message that is stored on a subject, or on one that a filter has, if it is genuine: signed for the subject that was
// asked for, whatever the reply says that it has. One that is not counts as not stored, and is deleted where Guard says so.
func (b *Bus) believed(
	ctx context.Context, stream, subject string, m *jetstream.RawStreamMsg,
) (*jetstream.RawStreamMsg, error) {
	signedFor := subject
	if matches(subject, m.Subject) {
		signedFor = m.Subject
	}
	if b.Genuine(signedFor, m.Header, m.Data) {
		return m, nil
	}
	b.removeForged(ctx, stream, m.Sequence)
	return nil, fmt.Errorf("%w: %s", errForged, subject)
}

// matches reports whether a filter of as many tokens has a subject.
func matches(filter, subject string) bool {
	want, have := strings.Split(filter, "."), strings.Split(subject, ".")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

// removeForged deletes a stored message that is forged. If that fails somebody else will find the same.
func (b *Bus) removeForged(ctx context.Context, stream string, sequence uint64) {
	if !b.guard.Remove {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	if s, err := b.Stream(ctx, stream); err == nil {
		s.DeleteMsg(ctx, sequence)
	}
}

// errForged: what is stored on a subject is forged. It counts as not stored.
var errForged = fmt.Errorf("%w (what is there is forged)", ErrNotFound)

const removeWithin = 2 * time.Second

// Forged ends the deliveries of a message that is forged, and deletes it where its stream would keep it.
func (b *Bus) Forged(ctx context.Context, d *Delivered) {
	d.Never("forged")
	if message.KindOf(d.Subject) == message.KindPartial {
		b.removeForged(ctx, StreamPartial, d.Sequence)
	}
}

// GenuineDone is Genuine for a republished answer, which was signed for the subject that it is stored on.
func (b *Bus) GenuineDone(job string, m *nats.Msg) bool {
	return b.Genuine(wire.AnswerSubject(job), m.Header, m.Data)
}

// blobOf returns the digest of the blob that is a message's payload, or "".
func blobOf(h nats.Header) string {
	if v := h[headerBlob]; len(v) > 0 {
		return v[0]
	}
	return ""
}
