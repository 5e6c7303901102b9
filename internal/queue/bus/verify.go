package bus

// Messages that are not believed: fetched again, because they may have been damaged on their way, and reported and
// removed if they are forged.

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Publish signs a message if it is internal, and sends it to subscribers. No stream stores it.
func (l *Log) Publish(m *nats.Msg) error {
	if err := l.signer.Sign(m, m.Subject); err != nil {
		return err
	}
	return l.conn.NC.PublishMsg(m)
}

// Verify reports whether a delivered message may be believed, and counts it for CheckKeys. If the message is damaged or
// forged as it came, Verify fetches it again, and puts the stored headers and bytes into d if these are sound. A
// client's message is believed in any case; CheckSum tells whether it is damaged.
func (l *Log) Verify(ctx context.Context, d *Delivered) bool {
	isBelieved := l.isBelieved(ctx, d)
	l.signer.countVerified(message.KindOf(d.Subject), isBelieved)
	return isBelieved
}

// isBelieved is Verify without the count. A message is sound if its sum and its signature are right, as far as it needs
// them. That proves something only if it has a sum or a MAC.
func (l *Log) isBelieved(ctx context.Context, d *Delivered) bool {
	isSound := l.signer.isSound(d.Subject, d.Header, d.Data)
	hasProof := l.signer.hasMAC(message.KindOf(d.Subject)) || len(d.Header[wire.HeaderSum]) > 0
	if isSound && hasProof {
		return true
	}

	// Fetch the stored message, also for a sound one without a sum: its headers may have been lost on the way.
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	m, err := l.conn.getDirect(ctx, d.Stream, question{Sequence: d.Sequence})
	if err != nil || m.Subject != d.Subject || !l.signer.isSound(d.Subject, m.Header, m.Data) {
		// The stored message does not help. reportForged returns false.
		return isSound || !message.Internal(message.KindOf(d.Subject)) || l.signer.reportForged(d.Subject)
	}
	if isSound && len(m.Header[wire.HeaderSum]) == 0 {
		return true // it was sent without one
	}
	if len(d.Header[headerSize]) == 0 { // else the consumer delivers messages without their payload
		d.Header, d.Data = asPublished(m).Header, m.Data
	}
	return true
}

// verifyStored returns the stored message m if it is genuine: sound, and signed for its subject. subject is the requested
// subject or filter. If the subject of m does not match that, m has to be signed for subject. An unsound message is
// fetched once more. If it is still unsound and internal, it counts as not stored, and is deleted if Guard says so.
func (l *Log) verifyStored(
	ctx context.Context, stream, subject string, m *jetstream.RawStreamMsg,
) (_ *jetstream.RawStreamMsg, err error) {
	signedFor := subject
	for looks := 1; ; looks++ {
		if signedFor = subject; matches(subject, m.Subject) {
			signedFor = m.Subject
		}
		isForgedAnswer := message.KindOf(signedFor) == message.KindAnswer && m.Header == nil // by getAsForged
		if !isForgedAnswer && l.signer.isSound(signedFor, m.Header, m.Data) {
			return m, nil
		}
		if looks == looksAtForged {
			break
		}
		if m, err = l.conn.getLastOnce(ctx, stream, subject); err != nil {
			return nil, err
		}
	}
	if !message.Internal(message.KindOf(signedFor)) {
		return m, nil // a client's message: CheckSum tells whether it is damaged
	}
	l.signer.reportForged(signedFor)
	l.removeForged(ctx, stream, m.Sequence)
	return nil, fmt.Errorf("%w: %s", errForged, subject)
}

// looksAtForged is how often a message is fetched before it counts as forged: it may have been damaged on its way.
const looksAtForged = 2

// matches reports whether a subject has the tokens of a filter, where * stands for any token.
func matches(filter, subject string) bool {
	filterTokens, subjectTokens := strings.Split(filter, "."), strings.Split(subject, ".")
	return slices.EqualFunc(filterTokens, subjectTokens, func(w, h string) bool { return w == "*" || w == h })
}

// removeForged deletes a forged message of a stream, if Guard says so. It ignores errors: whoever reads the message
// next deletes it.
func (l *Log) removeForged(ctx context.Context, stream string, sequence uint64) {
	if !l.signer.guard.Remove || stream == StreamAnswer && !l.signer.guard.RemoveAnswers {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	_ = l.Delete(ctx, stream, sequence)
}

// Discard deletes a stored message that can never be read, so that another can take its place, and reports whether it
// did. It deletes only internal messages, and none while there is trouble with a cluster.
func (l *Log) Discard(ctx context.Context, stream string, m *jetstream.RawStreamMsg) bool {
	mayBeReadable := l.conn.inCluster() && l.conn.HadTrouble(2*retryLostFor) // by a server that was away lately
	if m == nil || !message.Internal(message.KindOf(m.Subject)) || mayBeReadable {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return l.Delete(ctx, stream, m.Sequence) == nil
}

// errForged means that the message on a subject is forged. It counts as not stored.
var errForged = fmt.Errorf("%w (the stored message is forged)", ErrNotFound)

// removeTimeout bounds requests about a message that is not sound.
const removeTimeout = 2 * time.Second

// Reject ends the deliveries of a forged message. A partial is deleted as well, because its stream would keep it.
func (l *Log) Reject(ctx context.Context, d *Delivered) {
	d.Terminate("forged")
	if message.KindOf(d.Subject) == message.KindPartial {
		l.removeForged(ctx, StreamPartial, d.Sequence)
	}
}

// Repair returns a message of a stream as it was sent. If m is damaged, it is fetched again, once. The error has the
// code damaged if the stored message is damaged, too.
func (l *Log) Repair(ctx context.Context, stream string, m *jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) {
	damaged := CheckSum(m.Subject, m.Header, m.Data)
	if damaged == nil {
		return m, nil
	}
	again, err := l.conn.getDirect(ctx, stream, question{Sequence: m.Sequence})
	if err != nil {
		return nil, err
	}
	if again.Subject != m.Subject || CheckSum(again.Subject, again.Header, again.Data) != nil {
		return nil, damaged
	}
	return again, nil
}
