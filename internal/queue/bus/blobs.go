package bus

import (
	"bytes"
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

// messageOverhead is the number of bytes left for subject, headers and the server's own additions in a
// message.
const messageOverhead = 4096

// Blobs keeps bytes of any size under their digest: in a stream, in a message per owner and digest. Bytes above the
// server's limit are pieces there (pieces.go).
type Blobs struct {
	conn       *Conn
	stream     string
	subjectFor func(owner, digest string) string // the subject of the message
	owner      string                            // the tenant whose bytes they are; "": everybody's
	admit      Admit                             // if nil, everything is admitted
}

// ForOwner returns the blobs of an owner, in the same stream.
func (b *Blobs) ForOwner(owner string) *Blobs {
	owned := *b
	owned.owner = owner
	return &owned
}

// subject returns the subject of the message with the bytes of a digest.
func (b *Blobs) subject(digest string) string { return b.subjectFor(b.owner, digest) }

// getStored returns the message with the bytes of a digest, or with the list of their pieces, as it is stored. The
// error wraps ErrNotFound if there is none.
func (b *Blobs) getStored(ctx context.Context, digest string) (*jetstream.RawStreamMsg, error) {
	return b.conn.getLast(ctx, b.stream, b.subject(digest))
}

var (
	// ErrDigest: the bytes stored under a digest have another digest.
	ErrDigest = errors.New("bus: stored bytes are not those of their digest")
	// ErrLost: the bytes of a digest are gone, in part or as a whole, or damaged. A holder of the
	// bytes may put them again.
	ErrLost = errors.New("bus: stored bytes are lost")
)

// IsUnreadable reports whether an error of a read is permanent: the stored bytes are lost, damaged, too large, or
// malformed.
func IsUnreadable(err error) bool {
	code := fault.CodeOf(err)
	return errors.Is(err, ErrLost) || errors.Is(err, wire.ErrTooLarge) || err != nil && (code == fault.BadInput || code == fault.Damaged)
}

// Put stores data under its digest, which it returns, within the owner's quota. If the data is stored already and
// sound, Put only moves it to the end of its stream if it is old: a job's blobs have to be younger than the job, or not
// much older, to be kept until the job is answered. If the stored bytes have another digest or a piece of them is gone,
// Put stores them again, because every job that needs them would fail.
func (b *Blobs) Put(ctx context.Context, data []byte) (digest string, err error) {
	digest = wire.Digest(data)
	subject := b.subject(digest)

	// Look for the bytes. They count against the quota only if they are new.
	var lastSequence uint64 // sequence of the message to replace; 0: there is none
	stored, err := b.getStored(ctx, digest)
	switch {
	case errors.Is(err, ErrNotFound):
		if err := b.admit.ask(ctx, b.stream, subject, nil, len(data)); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	default:
		if isKept, err := b.keepStored(ctx, stored, digest); err != nil || isKept {
			return digest, err
		}
		lastSequence = stored.Sequence
	}

	// Split them if they exceed the server's limit.
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	if limit := b.conn.NC.MaxPayload() - messageOverhead; int64(len(data)) > limit {
		if err = b.checkModelSpace(ctx, len(data)); err != nil {
			return "", err
		}
		if m, err = b.putPieces(ctx, m, int(limit)); err != nil {
			return "", err
		}
	}

	// Store them. If the message to replace has been purged meanwhile, to make room perhaps, the subject is empty.
	err = b.conn.publishAfter(ctx, withSpare(m), lastSequence) // withSpare changes m
	if lastSequence > 0 && errors.Is(err, errTaken) {
		err = b.conn.publishAfter(ctx, m, 0)
	}

	// errTaken means that somebody else has stored the same bytes meanwhile.
	if err != nil && !errors.Is(err, errTaken) {
		return "", err
	}
	return digest, nil
}

// HasAndRenew reports whether the bytes of a digest are stored and sound. If they are old, it moves them to the end of their
// stream, so that they are kept for a job that needs them from now on.
func (b *Blobs) HasAndRenew(ctx context.Context, digest string) (bool, error) {
	stored, err := b.getStored(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return b.keepStored(ctx, stored, digest)
}

// keepStored is HasAndRenew for a message that was fetched already. It reports false if the bytes have to be written again.
func (b *Blobs) keepStored(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (bool, error) {
	if isSound, err := b.isSound(ctx, stored, digest); err != nil || !isSound {
		return false, err
	}
	return b.renew(ctx, stored)
}

// isSound reports whether the bytes of a stored message have its digest. Of a list of pieces it only checks that all
// pieces are stored; damage is found when they are read.
func (b *Blobs) isSound(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (bool, error) {
	if len(stored.Header[headerPieces]) > 0 {
		return b.hasAllPieces(ctx, stored.Data)
	}
	return wire.Digest(stored.Data) == digest, nil
}

// renew moves a blob to the end of its stream if it is older than the stream's Times.Renew. A blob that is too large for
// one message is a list of pieces, other messages with its bytes, which are moved before it. renew reports false if the
// blob has to be written again. Registered models do not expire, and stay where they are.
func (b *Blobs) renew(ctx context.Context, stored *jetstream.RawStreamMsg) (isFresh bool, err error) {
	if b.conn.tenant != "" {
		return b.stream == StreamGraph, nil // a tenant's user cannot read the stream's Times, and writes other blobs again
	}
	s, err := b.conn.Stream(ctx, b.stream)
	if err != nil {
		return false, err
	}
	c := s.CachedInfo().Config
	isYoung := b.conn.Since(stored.Time) < min(TimesOf(c.Metadata).Renew, c.MaxAge/2)
	if c.MaxAge == 0 || isYoung { // without a maximum age blobs do not expire
		return true, nil
	}

	if len(stored.Header[headerPieces]) > 0 {
		if isFresh, err := b.renewPieces(ctx, stored.Data); err != nil || !isFresh {
			return false, err
		}
	}

	err = b.conn.publishAfter(ctx, asPublished(stored), stored.Sequence)
	if errors.Is(err, errTaken) { // renewed by somebody else, or purged
		_, err = b.conn.getLast(ctx, b.stream, stored.Subject)
		return isFound(err)
	}
	return err == nil, err
}

// Get returns the bytes of a digest, which it checks. The error wraps ErrLost if they are not stored, or not sound.
// Then the next Put writes them again.
func (b *Blobs) Get(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.find(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.Infrastructure, "%w: blob %.16s…: %v", ErrLost, digest, err)
	}
	return data, err
}

// find returns the bytes of a digest, after it has checked that they have that digest. The error wraps ErrNotFound if they
// are not stored, and ErrLost if they cannot be read or are wrong. After ErrLost it deletes their message, so that they can
// be put again. In a cluster it first repeats the search for retryLostFor, because a server that was away, or leads no
// more, does not know the latest messages yet.
func (b *Blobs) find(ctx context.Context, digest string) ([]byte, error) {
	for looks, until := 1, time.Now().Add(retryLostFor); ; looks++ {
		stored, err := b.getStored(ctx, digest)
		if err != nil {
			return nil, err
		}
		data, err := b.checkedContent(ctx, stored, digest)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return data, err
		}
		if looks < looksAtForged { // look again at once
			continue // the message may have been damaged on its way
		}
		if !b.conn.inCluster() || time.Now().After(until) {
			mayReturn := b.conn.inCluster() && b.conn.HadTrouble(2*retryLostFor) // with a server that is away
			if !mayReturn {
				b.deleteQuietly(ctx, stored.Sequence)
			}
			return nil, err
		}
		Pause(ctx, replicaPause)
	}
}

// retryLostFor is the time for which find repeats a search in a cluster, longer than the election of a leader.
const retryLostFor = 5 * time.Second

// checkedContent returns the bytes of a stored message, or of the pieces that it lists. The error wraps ErrLost if they
// have another digest, or pieces are gone.
func (b *Blobs) checkedContent(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (data []byte, err error) {
	data = stored.Data
	if len(stored.Header[headerPieces]) > 0 {
		if data, err = b.getPieces(ctx, stored.Data); err != nil {
			return nil, err
		}
	}
	if actual := wire.Digest(data); actual != digest {
		return nil, fault.New(
			fault.Infrastructure, "%w: %w: %s of %.16s… has the digest %.16s…", ErrLost, ErrDigest,
			b.stream, digest, actual,
		)
	}
	return data, nil
}

// deleteQuietly deletes one stored message, and ignores errors: whoever reads the message next deletes it. A tenant's
// user deletes nothing, because what it puts next replaces the message.
func (b *Blobs) deleteQuietly(ctx context.Context, sequence uint64) {
	if b.conn.tenant != "" {
		return
	}
	_ = b.conn.delete(ctx, b.stream, sequence)
}

// vetMessage checks a message m with a user's bytes for their digest, and returns the message to store. That is m, unless m
// is a list of pieces and the stored bytes are right already. Then it is the stored message again, lest a wrong list
// replaces it. The pieces of a list are not checked here, because they may come later. Whoever reads them does.
func (b *Blobs) vetMessage(ctx context.Context, m *nats.Msg, digest string) (*nats.Msg, error) {
	if err := CheckKept(m.Subject, m.Header, m.Data); err != nil || len(m.Header[headerPieces]) == 0 {
		return m, err
	}
	stored, err := b.getStored(ctx, digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return m, nil
	case err != nil:
		return nil, err
	}

	// m is a list of pieces, and there is a stored message. See whether its bytes are right.
	var isRight bool
	if len(stored.Header[headerPieces]) == 0 {
		isRight = wire.Digest(stored.Data) == digest
	} else if bytes.Equal(stored.Data, m.Data) {
		return m, nil
	} else {
		isRight, err = b.piecesHaveDigest(ctx, stored.Data, digest)
	}
	if err != nil || !isRight {
		return m, err
	}
	again := withSpare(asPublished(stored))
	if last := m.Header[jetstream.ExpectedLastSubjSeqHeader]; len(last) > 0 {
		again.Header[jetstream.ExpectedLastSubjSeqHeader] = last
	}
	return again, nil
}

// moveToBlob returns m if its payload fits into a message. Otherwise it stores the payload as a blob, and returns a
// copy of m with the blob's digest as data and in a header.
func (b *Blobs) moveToBlob(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	if int64(len(m.Data))+messageOverhead <= b.conn.NC.MaxPayload() {
		return m, nil
	}
	digest, err := b.Put(ctx, m.Data)
	if err != nil {
		return nil, err
	}
	small := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: []byte(digest)}
	small.Header[headerBlob] = []string{digest}
	return small, nil
}

// Payload returns the payload of a message with headers h: data, or the owner's blob that a header names.
func (b *Blobs) Payload(ctx context.Context, owner string, h nats.Header, data []byte) ([]byte, error) {
	if !HasBlob(h) {
		return data, nil
	}
	digest := blobOf(h)
	if !form.IsDigest(digest) {
		return nil, fault.New(fault.BadInput, "bus: header %s: %.80q is no digest", headerBlob, digest)
	}
	return b.ForOwner(owner).Get(ctx, digest)
}

// RenewPayload moves the owner's blob that is a message's payload to the end of its stream if it is old. It does
// nothing for a message that has its payload itself.
func (b *Blobs) RenewPayload(ctx context.Context, owner string, h nats.Header) error {
	if !form.IsDigest(blobOf(h)) {
		return nil
	}
	_, err := b.ForOwner(owner).HasAndRenew(ctx, blobOf(h))
	return err
}

// HasBlob reports whether a message has its payload in a blob.
func HasBlob(h nats.Header) bool { return len(h[headerBlob]) > 0 }
