package bus

// Who may be believed: every message has a sum, so that a bit that changed on the way is found by whoever reads it, and messages that
// workers write for each other are signed.

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Guard says how internal messages are taken. The zero value signs nothing and believes everything.
type Guard struct {
	seal.Trust

	// Remove deletes forged messages from streams, so that the true ones can be stored. Forged answers
	// are deleted only with RemoveAnswers, too: by an aggregator, which replaces them and alone may do
	// so.
	Remove, RemoveAnswers bool
	// Forged, unless it is nil, is called for every forged message that was found.
	Forged func(kind message.Kind, subject string)
}

// Signer signs messages, and tells genuine ones from forged ones.
type Signer struct {
	guard Guard

	verified, doubted atomic.Int64 // delivered internal messages that keys here verify, and that none does
}

// Trust returns the keys by which messages are believed.
func (s *Signer) Trust() seal.Trust { return s.guard.Trust }

// Sign puts its sum into a message that is complete, and its MAC into an internal one, for the subject that it is delivered on. That may
// be another one than it is published on.
func (s *Signer) Sign(m *nats.Msg, subject string) error {
	kind := message.KindOf(subject)
	isSealed := s.seals(kind)
	// A MAC is a sum as well, except that readers of an answer may have no keys.
	if !slices.Contains(unsummed, kind) && (!isSealed || kind == message.KindAnswer) {
		m.Header[wire.HeaderSum] = []string{sumOf(subject, m.Header, m.Data)}
	}
	if isSealed {
		m.Header[seal.Header] = []string{s.guard.Keys.Sign(subject, blobOf(m.Header), m.Data)}
	}
	if kind != message.KindAnswer {
		return nil
	}
	signature, err := s.guard.Answers.Sign(subject, digestOf(m.Header), statedOf(m.Header, m.Data))
	if signature != "" {
		m.Header[seal.Signature] = []string{signature}
	}
	return fault.Wrap(fault.Internal, err)
}

// seals reports whether messages of a kind have a MAC.
func (s *Signer) seals(kind message.Kind) bool { return s.guard.Keys != nil && message.Internal(kind) }

// Genuine reports whether a message of a subject may be believed: it is not internal, or signed.
// Others are reported to Guard.Forged.
func (s *Signer) Genuine(subject string, h nats.Header, data []byte) bool {
	return s.isSound(subject, h, data) || s.report(subject)
}

// isSound reports whether a message is as it was sent, by a worker if it is internal.
func (s *Signer) isSound(subject string, h nats.Header, data []byte) bool {
	return s.isSigned(subject, h, data) && Intact(subject, h, data) == nil
}

// report reports a message to Guard.Forged, and returns false.
func (s *Signer) report(subject string) bool {
	if s.guard.Forged != nil {
		s.guard.Forged(message.KindOf(subject), subject)
	}
	return false
}

// isSigned reports whether a message needs no signature, or has a valid one: an answer an aggregator's signature, any
// other internal message a worker's MAC. Without public keys of aggregators an answer needs a worker's MAC.
func (s *Signer) isSigned(subject string, h nats.Header, data []byte) bool {
	switch kind := message.KindOf(subject); {
	case kind == message.KindAnswer && s.guard.Answers != nil:
		signature := h[seal.Signature]
		return len(signature) < 2 && s.guard.Answers.Verify(first(signature), subject, digestOf(h), statedOf(h, data))
	case s.seals(kind):
		return s.guard.Keys.Verify(first(h[seal.Header]), subject, blobOf(h), data)
	}
	return true
}

// Verifies reports whether there are keys: then Genuine needs the payload of messages.
func (s *Signer) Verifies() bool { return s.guard.Keys != nil || s.guard.Answers != nil }

// count notes whether a delivered message was believed, if keys decide that.
func (s *Signer) count(kind message.Kind, isBelieved bool) {
	switch {
	case !s.seals(kind):
	case isBelieved:
		s.verified.Add(1)
	default:
		s.doubted.Add(1)
	}
}

// doubtsMatter is the number of messages that do not verify from which on the keys of this process are to blame, if none verifies.
const doubtsMatter = 3

// CheckKeys returns an error if none of the messages that came from other workers verifies by the keys here.
func (s *Signer) CheckKeys() error {
	if n := s.doubted.Load(); n >= doubtsMatter && s.verified.Load() == 0 {
		return fault.New(fault.Infrastructure,
			"bus: none of the %d messages of other workers is signed by a key of --message-keys: do they have the same file?", n)
	}
	return nil
}

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
