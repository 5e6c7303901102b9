package bus

// A sum over every message, so that a bit that changed on the way is found by whoever reads it.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// unsummed are the kinds of messages without a sum of their own: they are lost or wrong without harm, are stored under the digest of their
// bytes, or have the sum of the message that they deliver.
var unsummed = []message.Kind{
	message.KindTimer,
	message.KindProgress, message.KindServes, message.KindHere, message.KindRoom, message.KindBlob, message.KindDone,
}

// sumOf returns the sum of a message: the SHA-256, in hexadecimal digits, of its subject, the headers that readers act on, and its data.
// The subject of a reply, which servers may map to another, is left empty.
func sumOf(subject string, h nats.Header, data []byte) string {
	if message.KindOf(subject) == "" {
		subject = ""
	}
	lines := make([]byte, 0, 512)
	for _, line := range []string{subject, blobOf(h), digestOf(h), first(h[message.HeaderStatus])} {
		lines = append(append(lines, line...), '\n')
	}
	sum := sha256.New()
	sum.Write(lines)
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// addSum puts its sum into a complete message that is delivered on a subject. A message with a MAC needs none, except an answer, whose
// readers may have no keys.
func (b *believer) addSum(m *nats.Msg, delivered string) {
	kind := message.KindOf(delivered)
	if !slices.Contains(unsummed, kind) && (b.guard.Keys == nil || !message.Internal(kind) || kind == message.KindAnswer) {
		m.Header[wire.HeaderSum] = []string{sumOf(delivered, m.Header, m.Data)}
	}
}

// Intact returns an error with the code damaged if a message, on the subject that it was published for, is not as it was sent. A message
// without a sum counts as intact, and so does one that came without its payload.
func Intact(subject string, h nats.Header, data []byte) error {
	said := h[wire.HeaderSum]
	if len(said) == 0 || len(h[headerSize]) > 0 || len(said) == 1 && said[0] == sumOf(subject, h, data) {
		return nil
	}
	return fault.New(fault.Damaged, "bus: the message on %s was damaged on its way: send it again", subject)
}

// headerSize is the server's header on messages that it delivers without their payload.
const headerSize = "Nats-Msg-Size"

// Whole returns a message of a stream as it was sent: a damaged one is fetched again, once. The error has the code damaged where the
// stored one is.
func (b *believer) Whole(ctx context.Context, stream string, e Entry) (Entry, error) {
	err := Intact(e.Subject, e.Header, e.Data)
	if err == nil {
		return e, nil
	}
	m, failed := b.direct(ctx, stream, question{Sequence: e.Sequence})
	if failed != nil {
		return e, failed
	}
	if m.Subject == e.Subject && Intact(m.Subject, m.Header, m.Data) == nil {
		return Entry{Sequence: e.Sequence, Subject: m.Subject, Header: m.Header, Data: m.Data}, nil
	}
	return e, err
}
