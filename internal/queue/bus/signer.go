package bus

// Who may be believed: every message has a sum, so that a bit that changed on the way is found by whoever reads it, and
// messages that workers write for each other are signed.

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
	// Forged, unless it is nil, is called for every forged message that is found.
	Forged func(kind message.Kind, subject string)
}

// Signer signs messages, and tells genuine ones from forged ones.
type Signer struct {
	guard Guard

	// Delivered messages with a MAC that a key of this process verifies, and that none does.
	verified, unverified atomic.Int64
}

// Trust returns the keys by which messages are believed.
func (s *Signer) Trust() seal.Trust { return s.guard.Trust }

// Sign adds the headers by which readers check m, which is complete otherwise: a sum, a MAC if m is internal, and a
// signature if m is an answer. They hold for the subject on which m will be delivered, which may differ from the one on
// which it is published.
func (s *Signer) Sign(m *nats.Msg, subject string) error {
	kind := message.KindOf(subject)
	hasMAC := s.hasMAC(kind)
	// A MAC shows damage as well as a sum does, but readers of an answer may have no keys. Messages of unsummed kinds need no
	// sum of their own, for instance because they are stored under the digest of their bytes.
	if !slices.Contains(unsummed, kind) && (!hasMAC || kind == message.KindAnswer) {
		m.Header[wire.HeaderSum] = []string{sumOf(subject, m.Header, m.Data)}
	}
	if hasMAC {
		m.Header[seal.Header] = []string{s.guard.Keys.Sign(subject, blobOf(m.Header), m.Data)}
	}
	if kind != message.KindAnswer {
		return nil
	}
	signature, err := s.guard.Answers.Sign(subject, digestOf(m.Header), answerStatement(m.Header, m.Data))
	if signature != "" {
		m.Header[seal.Signature] = []string{signature}
	}
	return fault.Wrap(fault.Internal, err)
}

// hasMAC reports whether messages of a kind have a MAC here: they are internal, and there are keys.
func (s *Signer) hasMAC(kind message.Kind) bool { return s.guard.Keys != nil && message.Internal(kind) }

// IsGenuine reports whether a message on a subject may be believed: it is undamaged, and signed if it is internal. If
// not, it calls Guard.Forged.
func (s *Signer) IsGenuine(subject string, h nats.Header, data []byte) bool {
	return s.isSound(subject, h, data) || s.reportForged(subject)
}

// isSound reports whether a message has its right sum and, if it is internal, a right signature.
func (s *Signer) isSound(subject string, h nats.Header, data []byte) bool {
	return s.isSigned(subject, h, data) && CheckSum(subject, h, data) == nil
}

// reportForged calls Guard.Forged with a message's subject, and returns false.
func (s *Signer) reportForged(subject string) bool {
	if s.guard.Forged != nil {
		s.guard.Forged(message.KindOf(subject), subject)
	}
	return false
}

// isSigned reports whether a message has the signature that its kind needs. An answer needs the signature of an
// aggregator if there are public keys of aggregators. Otherwise an internal message needs a worker's MAC if there are
// keys. Any other message needs none.
func (s *Signer) isSigned(subject string, h nats.Header, data []byte) bool {
	switch kind := message.KindOf(subject); {
	case kind == message.KindAnswer && s.guard.Answers != nil:
		signatures := h[seal.Signature]
		if len(signatures) > 1 {
			return false // a repeated header is a forgery
		}
		// The signature is for the digest of the request, the digest of the payload and the answer's status.
		return s.guard.Answers.Verify(firstValue(signatures), subject, digestOf(h), answerStatement(h, data))
	case s.hasMAC(kind):
		return s.guard.Keys.Verify(firstValue(h[seal.Header]), subject, blobOf(h), data)
	}
	return true
}

// HasKeys reports whether there are keys to check messages with. Then IsGenuine needs the payload of messages.
func (s *Signer) HasKeys() bool { return s.guard.Keys != nil || s.guard.Answers != nil }

// countVerified counts a delivered message as verified or not. Messages without a MAC do not count.
func (s *Signer) countVerified(kind message.Kind, isBelieved bool) {
	switch {
	case !s.hasMAC(kind):
	case isBelieved:
		s.verified.Add(1)
	default:
		s.unverified.Add(1)
	}
}

// minUnverified is the number of messages after which CheckKeys blames this process's keys, if no message verified.
const minUnverified = 3

// CheckKeys returns an error if at least minUnverified messages came from other workers, and none verifies by the keys
// of this process.
func (s *Signer) CheckKeys() error {
	if n := s.unverified.Load(); n >= minUnverified && s.verified.Load() == 0 {
		return fault.New(fault.Infrastructure,
			"bus: none of the %d messages of other workers is signed by a key of --message-keys: do they have the same file?", n)
	}
	return nil
}

// unsummed are the kinds of messages without a sum of their own. Either nothing is lost if they are wrong, or they are
// stored under the digest of their bytes, or they have the sum of the message that they deliver.
var unsummed = []message.Kind{
	message.KindTimer,
	message.KindProgress, message.KindServes, message.KindHere, message.KindRoom, message.KindBlob, message.KindDone,
}

// sumOf returns the sum of a message: the SHA-256, in hexadecimal digits, of its subject, the headers that readers act
// on, and its data. A subject without a kind is left out: it is the subject of a reply, and servers may map it to another.
func sumOf(subject string, h nats.Header, data []byte) string {
	if message.KindOf(subject) == "" {
		subject = ""
	}
	lines := make([]byte, 0, 512)
	for _, line := range []string{subject, blobOf(h), digestOf(h), firstValue(h[message.HeaderStatus])} {
		lines = append(append(lines, line...), '\n')
	}
	sum := sha256.New()
	sum.Write(lines)
	sum.Write(data)
	return hex.EncodeToString(sum.Sum(nil))
}

// CheckSum returns an error with the code damaged if the sum in a message's headers is wrong. subject is the one that the
// message was published for. A message without a sum counts as intact, and so does one that the server delivered
// without its payload.
func CheckSum(subject string, h nats.Header, data []byte) error {
	sums := h[wire.HeaderSum]
	if len(sums) == 0 || len(h[headerSize]) > 0 || len(sums) == 1 && sums[0] == sumOf(subject, h, data) {
		return nil
	}
	return fault.New(fault.Damaged, "bus: the message on %s was damaged on its way: send it again", subject)
}

// headerSize is the server's header on messages that it delivers without their payload.
const headerSize = "Nats-Msg-Size"

// firstValue returns the first of a header's values, or "".
func firstValue(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// blobOf returns the digest of the blob that is a message's payload, or "".
func blobOf(h nats.Header) string { return firstValue(h[headerBlob]) }

// digestOf returns the digest of the request that a message belongs to, or "".
func digestOf(h nats.Header) string { return firstValue(h[wire.HeaderDigest]) }

// answerStatement returns the text of an answer that is signed: the digest of its payload, a space, and the answer's
// status in lists. The payload is data, or in the blob that the headers name.
func answerStatement(h nats.Header, data []byte) string {
	content := blobOf(h)
	if content == "" {
		content = wire.Digest(data)
	}
	return content + " " + firstValue(h[message.HeaderStatus])
}
