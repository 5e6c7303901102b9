package bus

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Headers of this package.
const (
	headerBlob   = message.HeaderBlob
	headerPieces = message.HeaderPieces
)

// envelope is the number of bytes left for subject, headers and the server's own additions in a
// message.
const envelope = 4096

// Fit returns m as it is published: signed, if it is internal. If its payload exceeds the server's
// limit, it is a message with the digest of a blob that holds it, which is its job's owner's.
func (b *shelves) Fit(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	return b.FitFor(ctx, message.OwnerOf(m.Subject), m)
}

// FitFor is Fit for a subject that does not say whose the message is.
func (b *shelves) FitFor(ctx context.Context, owner string, m *nats.Msg) (*nats.Msg, error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}

	if int64(len(m.Data))+envelope <= b.NC.MaxPayload() {
		return m, b.sign(m, m.Subject)
	}

	digest, err := b.put(ctx, blobs.of(owner), m.Data)
	if err != nil {
		return nil, err
	}

	named := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: []byte(digest)}
	named.Header[headerBlob] = []string{digest}
	return named, b.sign(named, named.Subject)
}

// Payload returns the payload of a message: its data, or the blob that its header names, of the owner of its job.
func (b *shelves) Payload(ctx context.Context, owner string, h nats.Header, data []byte) ([]byte, error) {
	name := h[headerBlob]
	if len(name) == 0 {
		return data, nil
	}
	if !form.IsDigest(name[0]) {
		return nil, fault.New(
			fault.BadInput, "bus: header %s: %.80q is no digest", headerBlob, name[0],
		)
	}
	return b.getBlob(ctx, owner, name[0])
}

// Apart reports whether a message has its payload in a blob.
func Apart(h nats.Header) bool { return len(h[headerBlob]) > 0 }

// shelf is a place for bytes under their digest: a stream with a message per digest. Bytes above the server's limit are pieces there.
type shelf struct {
	stream string
	place  func(owner, digest string) string
	owner  string // the tenant whose it is; "": everybody's
}

var (
	blobs  = shelf{StreamBlob, message.BlobSubject, ""}   // are purged when no job needs them
	graphs = shelf{StreamGraph, message.GraphSubject, ""} // are kept until they are removed
)

// of returns an owner's shelf.
func (s shelf) of(owner string) shelf {
	s.owner = owner
	return s
}

// subject returns where the bytes of a digest are.
func (s shelf) subject(digest string) string { return s.place(s.owner, digest) }

var (
	// ErrDigest: the bytes stored under a digest have another digest.
	ErrDigest = errors.New("bus: stored bytes are not those of their digest")
	// ErrLost: the bytes of a digest are gone, in part or as a whole, or damaged. A holder of the
	// bytes may put them again.
	ErrLost = errors.New("bus: stored bytes are lost")
)

// Unreadable reports whether an error is permanent: the stored bytes are lost, damaged, too large, or malformed.
func Unreadable(err error) bool {
	code := fault.CodeOf(err)
	return errors.Is(err, ErrLost) || errors.Is(err, wire.ErrTooLarge) || err != nil && (code == fault.BadInput || code == fault.Damaged)
}

// PutBlob stores data under its digest, which it returns. A blob that is stored already is not
// stored again, but moves to the end of its stream if it is old: the blobs of a job must be younger
// than the job, or not much older, to be kept until the job is answered. It is stored again if the
// stored bytes have another digest or a piece of them is gone, because every job that needs it would fail.
func (b *shelves) PutBlob(ctx context.Context, data []byte) (digest string, err error) {
	return b.put(ctx, blobs, data)
}

// put is PutBlob for a shelf, within the quota of its owner.
func (b *shelves) put(ctx context.Context, in shelf, data []byte) (digest string, err error) {
	return b.putWithin(ctx, in, data, b.admit)
}

// putWithin is put with another admission: nil for a piece, because the whole was counted.
func (b *shelves) putWithin(ctx context.Context, in shelf, data []byte, admit Admit) (digest string, err error) {
	digest = wire.Digest(data)
	subject := in.subject(digest)

	// Is it stored, sound and young enough?

	stored, err := b.Raw(ctx, in.stream, subject)
	var last uint64
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return "", err
	default:
		sound, err := b.intact(ctx, in, stored, digest)
		if err != nil {
			return "", err
		}
		if sound {
			if fresh, err := b.renew(ctx, in, stored); err != nil || fresh {
				return digest, err
			}
		}
		last = stored.Sequence
	}
	if last == 0 {
		if err := admit.ask(ctx, in.stream, subject, nil, len(data)); err != nil {
			return "", err
		}
	}

	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	if most := b.NC.MaxPayload() - envelope; int64(len(data)) > most {
		if err = b.hasRoom(ctx, in, len(data)); err != nil {
			return "", err
		}
		if m, err = b.putPieces(ctx, in, m, int(most)); err != nil {
			return "", err
		}
	}

	// If the stored message has been purged meanwhile, to make room perhaps, the subject is empty.
	err = b.publish(ctx, spared(m), jetstream.WithExpectLastSequencePerSubject(last))
	if err = refusal(subject, err); last > 0 && errors.Is(err, errTaken) {
		err = b.publish(ctx, m, jetstream.WithExpectLastSequencePerSubject(0))
		err = refusal(subject, err)
	}

	// Somebody else may have stored it meanwhile.
	if err != nil && !errors.Is(err, errTaken) {
		return "", err
	}
	return digest, nil
}

// intact reports whether the bytes of a stored blob have its digest. Of pieces it only checks that all are there, which a tenant's user
// cannot but read; damage is found when they are read.
func (b *shelves) intact(
	ctx context.Context, in shelf, m *jetstream.RawStreamMsg, digest string,
) (bool, error) {
	if len(m.Header[headerPieces]) > 0 {
		return b.hasPieces(ctx, in, m.Data)
	}
	return wire.Digest(m.Data) == digest, nil
}

// renew makes a blob younger than its stream's Times.Renew by moving it to the end of the stream, its pieces first.
// fresh is false if it has to be written again. Registered models do not expire.
func (b *shelves) renew(
	ctx context.Context, in shelf, m *jetstream.RawStreamMsg,
) (fresh bool, err error) {
	if b.owner != "" {
		return in.stream == StreamGraph, nil // an owner does not see how old is too old
	}
	s, err := b.Stream(ctx, in.stream)
	if err != nil {
		return false, err
	}
	c := s.CachedInfo().Config

	if c.MaxAge == 0 || b.Since(m.Time) < min(TimesOf(c.Metadata).Renew, c.MaxAge/2) {
		return true, nil
	}

	if len(m.Header[headerPieces]) > 0 {
		if fresh, err := b.renewPieces(ctx, in, m.Data); err != nil || !fresh {
			return false, err
		}
	}

	err = b.publish(ctx, bare(m), jetstream.WithExpectLastSequencePerSubject(m.Sequence))
	if err == nil {
		return true, nil
	}
	// renewed by somebody else, or purged
	if err = refusal(m.Subject, err); errors.Is(err, errTaken) {
		return b.Has(ctx, in.stream, m.Subject)
	}
	return false, err
}

// HasBlob reports whether the blob of a digest is stored and sound, and renews it, so that it is
// kept for a job that needs it from now on.
func (b *shelves) HasBlob(ctx context.Context, digest string) (bool, error) {
	return b.has(ctx, blobs, digest)
}

// has is HasBlob for a shelf.
func (b *shelves) has(ctx context.Context, in shelf, digest string) (bool, error) {
	m, err := b.Raw(ctx, in.stream, in.subject(digest))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	if sound, err := b.intact(ctx, in, m, digest); err != nil || !sound {
		return false, err
	}
	return b.renew(ctx, in, m)
}

// GetBlob returns the blob of a digest, which it checks. The error wraps ErrLost if it is not
// stored, or not sound; then the next PutBlob writes it again.
func (b *shelves) GetBlob(ctx context.Context, digest string) ([]byte, error) {
	return b.getBlob(ctx, "", digest)
}

// getBlob is GetBlob of an owner's blob.
func (b *shelves) getBlob(ctx context.Context, owner, digest string) ([]byte, error) {
	data, err := b.get(ctx, blobs.of(owner), digest)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.Infrastructure, "%w: blob %.16s…: %v", ErrLost, digest, err)
	}
	return data, err
}

// get returns the bytes of a digest. It deletes a message whose bytes cannot be read or are wrong,
// so that they can be put again. In a cluster it repeats an unsuccessful search for lostFor: a
// server that was away, or leads no more, does not know the latest messages yet.
func (b *shelves) get(ctx context.Context, in shelf, digest string) ([]byte, error) {
	for looks, until := 1, time.Now().Add(lostFor); ; looks++ {
		data, sequence, err := b.look(ctx, in, digest)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return data, err
		}
		if looks < looksAtForged {
			continue // it may have been damaged on its way
		}
		if !b.inCluster() || time.Now().After(until) {
			if !b.inCluster() || !b.Unsettled(2*lostFor) { // else it may be there still
				b.drop(ctx, in, sequence)
			}
			return nil, err
		}
		Pause(ctx, staleFor)
	}
}

// lostFor is the time for which get repeats a search in a cluster, longer than the election of a leader.
const lostFor = 5 * time.Second

// look is one attempt of get. An error that wraps ErrLost comes with the sequence of the message whose bytes are lost.
func (b *shelves) look(ctx context.Context, in shelf, digest string) (data []byte, sequence uint64, err error) {
	m, err := b.Raw(ctx, in.stream, in.subject(digest))
	if err != nil {
		return nil, 0, err
	}

	if data, err = b.content(ctx, in, m, digest); err != nil {
		return nil, m.Sequence, err
	}
	return data, m.Sequence, nil
}

// content returns the bytes that a stored message holds or names. The error wraps ErrLost if they are not those of the digest.
func (b *shelves) content(ctx context.Context, in shelf, m *jetstream.RawStreamMsg, digest string) (data []byte, err error) {
	data = m.Data
	if len(m.Header[headerPieces]) > 0 {
		if data, err = b.getPieces(ctx, in, m.Data); err != nil {
			return nil, err
		}
	}
	if got := wire.Digest(data); got != digest {
		return nil, fault.New(
			fault.Infrastructure, "%w: %w: %s of %.16s… has the digest %.16s…", ErrLost, ErrDigest,
			in.stream, digest, got,
		)
	}
	return data, nil
}

// drop deletes one stored message. If that fails somebody else will find the same.
func (b *shelves) drop(ctx context.Context, in shelf, sequence uint64) {
	if b.owner != "" {
		return // bytes put meanwhile take its place
	}
	_ = b.Delete(ctx, in.stream, sequence)
}
