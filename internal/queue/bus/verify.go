package bus

// Messages that are not believed: fetched again, because they may have been damaged on their way, and reported and removed if they are
// forged.

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

// Publish sends a message that no stream stores, signed if it is internal.
func (l *Log) Publish(m *nats.Msg) error {
	if err := l.signer.Sign(m, m.Subject); err != nil {
		return err
	}
	return l.conn.NC.PublishMsg(m)
}

// Verify reports whether a delivered message may be believed, as Signer.Genuine does. A message that is not sound may have been damaged on
// its way, so it is fetched again. If the stored bytes are sound, d takes them. A client's message is believed in any case: Intact tells.
func (l *Log) Verify(ctx context.Context, d *Delivered) bool {
	believed := l.isBelieved(ctx, d)
	l.signer.count(message.KindOf(d.Subject), believed)
	return believed
}

// isBelieved is Verify, uncounted.
func (l *Log) isBelieved(ctx context.Context, d *Delivered) bool {
	sound := l.signer.isSound(d.Subject, d.Header, d.Data)
	if sound && (l.signer.seals(message.KindOf(d.Subject)) || len(d.Header[wire.HeaderSum]) > 0) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	m, err := l.conn.direct(ctx, d.Stream, question{Sequence: d.Sequence}) // of no sum: perhaps the headers were lost on the way
	if err != nil || m.Subject != d.Subject || !l.signer.isSound(d.Subject, m.Header, m.Data) {
		return sound || !message.Internal(message.KindOf(d.Subject)) || l.signer.report(d.Subject)
	}
	if sound && len(m.Header[wire.HeaderSum]) == 0 {
		return true // it was sent without one
	}
	if len(d.Header[headerSize]) == 0 { // else it comes without its payload
		d.Header, d.Data = asPublished(m).Header, m.Data
	}
	return true
}

// verifyStored returns a stored message if it is genuine: signed for its subject, which has to match the requested subject
// or filter. A message that does not verify, even when fetched again, counts as not stored, and is deleted if Guard says so.
func (l *Log) verifyStored(
	ctx context.Context, stream, subject string, m *jetstream.RawStreamMsg,
) (_ *jetstream.RawStreamMsg, err error) {
	signedFor := subject
	for looks := 1; ; looks++ {
		if signedFor = subject; matches(subject, m.Subject) {
			signedFor = m.Subject
		}
		answer := message.KindOf(signedFor) == message.KindAnswer
		if (!answer || m.Header != nil) && l.signer.isSound(signedFor, m.Header, m.Data) { // an answer without headers is forged, see noAnswer
			return m, nil
		}
		if looks == looksAtForged {
			break
		}
		if m, err = l.conn.getOnce(ctx, stream, subject); err != nil {
			return nil, err
		}
	}
	if !message.Internal(message.KindOf(signedFor)) {
		return m, nil // a client's: Intact tells
	}
	l.signer.report(signedFor)
	l.removeForged(ctx, stream, m.Sequence)
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
func (l *Log) removeForged(ctx context.Context, stream string, sequence uint64) {
	if !l.signer.guard.Remove || stream == StreamAnswer && !l.signer.guard.RemoveAnswers {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	_ = l.Delete(ctx, stream, sequence)
}

// Discard deletes a stored message that can never be read, so that another can take its place, and reports whether it
// did. It deletes only internal messages, and none while a cluster is not settled.
func (l *Log) Discard(ctx context.Context, stream string, m *jetstream.RawStreamMsg) bool {
	if m == nil || !message.Internal(message.KindOf(m.Subject)) || l.conn.inCluster() && l.conn.Unsettled(2*lostFor) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, removeWithin)
	defer cancel()
	return l.Delete(ctx, stream, m.Sequence) == nil
}

// errForged: the message on a subject is forged. It counts as not stored.
var errForged = fmt.Errorf("%w (the stored message is forged)", ErrNotFound)

const removeWithin = 2 * time.Second

// Reject ends the deliveries of a message that is forged, and deletes it if its stream would keep it.
func (l *Log) Reject(ctx context.Context, d *Delivered) {
	d.Never("forged")
	if message.KindOf(d.Subject) == message.KindPartial {
		l.removeForged(ctx, StreamPartial, d.Sequence)
	}
}

// Repair returns a message of a stream as it was sent: a damaged one is fetched again, once. The error has the code damaged if the stored
// one is.
func (l *Log) Repair(ctx context.Context, stream string, m *jetstream.RawStreamMsg) (*jetstream.RawStreamMsg, error) {
	damaged := Intact(m.Subject, m.Header, m.Data)
	if damaged == nil {
		return m, nil
	}
	again, err := l.conn.direct(ctx, stream, question{Sequence: m.Sequence})
	if err != nil {
		return nil, err
	}
	if again.Subject != m.Subject || Intact(again.Subject, again.Header, again.Data) != nil {
		return nil, damaged
	}
	return again, nil
}
