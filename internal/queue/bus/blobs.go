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

// envelope is the number of bytes left for subject, headers and the server's own additions in a
// message.
const envelope = 4096

// Blobs keeps bytes of any size under their digest: in a stream, in a message per owner and digest. Bytes above the server's limit are
// pieces there (pieces.go).
type Blobs struct {
	conn   *Conn
	stream string
	place  func(owner, digest string) string // the subject of the message
	owner  string                            // the tenant whose bytes they are; "": everybody's
	admit  Admit                             // if nil, everything is admitted
}

// Of returns the blobs of an owner.
func (b *Blobs) Of(owner string) *Blobs {
	owned := *b
	owned.owner = owner
	return &owned
}

// subject returns where the bytes of a digest are.
func (b *Blobs) subject(digest string) string { return b.place(b.owner, digest) }

// raw returns the message of a digest as it is stored. The error wraps ErrNotFound if there is none.
func (b *Blobs) raw(ctx context.Context, digest string) (*jetstream.RawStreamMsg, error) {
	return b.conn.last(ctx, b.stream, b.subject(digest))
}

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

// Put stores data under its digest, which it returns, within the owner's quota. If they are stored already they are not stored again, but
// move to the end of their stream if they are old: the blobs of a job must be younger than the job, or not much older, to be kept until
// the job is answered. They are stored again if the stored bytes have another digest or a piece of them is gone, because every job that
// needs them would fail.
func (b *Blobs) Put(ctx context.Context, data []byte) (digest string, err error) {
	digest = wire.Digest(data)
	subject := b.subject(digest)

	var last uint64 // sequence of the message to replace; 0: there is none
	stored, err := b.raw(ctx, digest)
	switch {
	case errors.Is(err, ErrNotFound):
		if err := b.admit.ask(ctx, b.stream, subject, nil, len(data)); err != nil {
			return "", err
		}
	case err != nil:
		return "", err
	default:
		if isKept, err := b.keep(ctx, stored, digest); err != nil || isKept {
			return digest, err
		}
		last = stored.Sequence
	}

	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	if limit := b.conn.NC.MaxPayload() - envelope; int64(len(data)) > limit {
		if err = b.hasRoom(ctx, len(data)); err != nil {
			return "", err
		}
		if m, err = b.putPieces(ctx, m, int(limit)); err != nil {
			return "", err
		}
	}

	// If the stored message has been purged meanwhile, to make room perhaps, the subject is empty.
	err = b.conn.publishAfter(ctx, withSpare(m), last)
	if last > 0 && errors.Is(err, errTaken) {
		err = b.conn.publishAfter(ctx, m, 0)
	}

	// Somebody else may have stored it meanwhile.
	if err != nil && !errors.Is(err, errTaken) {
		return "", err
	}
	return digest, nil
}

// Has reports whether the bytes of a digest are stored and sound, and renews them, so that they are kept for a job that needs them from
// now on.
func (b *Blobs) Has(ctx context.Context, digest string) (bool, error) {
	stored, err := b.raw(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return b.keep(ctx, stored, digest)
}

// keep is Has for a stored message. It reports false if the bytes have to be written again.
func (b *Blobs) keep(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (bool, error) {
	if isSound, err := b.isSound(ctx, stored, digest); err != nil || !isSound {
		return false, err
	}
	return b.renew(ctx, stored)
}

// isSound reports whether the bytes of a stored message have its digest. Of pieces it only checks that all are there, which a tenant's
// user cannot but read. Damage is found when they are read.
func (b *Blobs) isSound(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (bool, error) {
	if len(stored.Header[headerPieces]) > 0 {
		return b.hasPieces(ctx, stored.Data)
	}
	return wire.Digest(stored.Data) == digest, nil
}

// renew makes a blob younger than its stream's Times.Renew by moving it to the end of the stream, its pieces first. It reports false if
// the blob has to be written again. Registered models do not expire.
func (b *Blobs) renew(ctx context.Context, stored *jetstream.RawStreamMsg) (isFresh bool, err error) {
	if b.conn.tenant != "" {
		return b.stream == StreamGraph, nil // an owner does not see how old is too old
	}
	s, err := b.conn.Stream(ctx, b.stream)
	if err != nil {
		return false, err
	}
	c := s.CachedInfo().Config
	if c.MaxAge == 0 || b.conn.Since(stored.Time) < min(TimesOf(c.Metadata).Renew, c.MaxAge/2) {
		return true, nil
	}

	if len(stored.Header[headerPieces]) > 0 {
		if isFresh, err := b.renewPieces(ctx, stored.Data); err != nil || !isFresh {
			return false, err
		}
	}

	err = b.conn.publishAfter(ctx, asPublished(stored), stored.Sequence)
	if errors.Is(err, errTaken) { // renewed by somebody else, or purged
		_, err = b.conn.last(ctx, b.stream, stored.Subject)
		return isFound(err)
	}
	return err == nil, err
}

// Get returns the bytes of a digest, which it checks. The error wraps ErrLost if they are not stored, or not sound; then the next Put
// writes them again.
func (b *Blobs) Get(ctx context.Context, digest string) ([]byte, error) {
	data, err := b.find(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.Infrastructure, "%w: blob %.16s…: %v", ErrLost, digest, err)
	}
	return data, err
}

// find is Get whose error wraps ErrNotFound if the bytes are not stored. It deletes a message whose bytes cannot be read or are wrong,
// so that they can be put again. In a cluster it repeats an unsuccessful search for lostFor: a server that was away, or leads no more,
// does not know the latest messages yet.
func (b *Blobs) find(ctx context.Context, digest string) ([]byte, error) {
	for looks, until := 1, time.Now().Add(lostFor); ; looks++ {
		stored, err := b.raw(ctx, digest)
		if err != nil {
			return nil, err
		}
		data, err := b.content(ctx, stored, digest)
		if !errors.Is(err, ErrLost) || ctx.Err() != nil {
			return data, err
		}
		if looks < looksAtForged {
			continue // it may have been damaged on its way
		}
		if !b.conn.inCluster() || time.Now().After(until) {
			if !b.conn.inCluster() || !b.conn.Unsettled(2*lostFor) { // else it may be there still
				b.drop(ctx, stored.Sequence)
			}
			return nil, err
		}
		Pause(ctx, staleFor)
	}
}

// lostFor is the time for which find repeats a search in a cluster, longer than the election of a leader.
const lostFor = 5 * time.Second

// content returns the bytes that a stored message holds or names. The error wraps ErrLost if they are not those of the digest.
func (b *Blobs) content(ctx context.Context, stored *jetstream.RawStreamMsg, digest string) (data []byte, err error) {
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

// drop deletes one stored message. If that fails somebody else will find the same.
func (b *Blobs) drop(ctx context.Context, sequence uint64) {
	if b.conn.tenant != "" {
		return // bytes put meanwhile take its place
	}
	_ = b.conn.delete(ctx, b.stream, sequence)
}

// vet returns the message that stores a user's bytes under their digest: m, or the stored message again if m is a list of pieces and
// the stored bytes are right. A list is not checked when it comes, because its pieces may come later. Whoever reads it does.
func (b *Blobs) vet(ctx context.Context, m *nats.Msg, digest string) (*nats.Msg, error) {
	if err := CheckKept(m.Subject, m.Header, m.Data); err != nil || len(m.Header[headerPieces]) == 0 {
		return m, err
	}
	stored, err := b.raw(ctx, digest)
	switch {
	case errors.Is(err, ErrNotFound):
		return m, nil
	case err != nil:
		return nil, err
	}
	var isRight bool
	if len(stored.Header[headerPieces]) == 0 {
		isRight = wire.Digest(stored.Data) == digest
	} else if bytes.Equal(stored.Data, m.Data) {
		return m, nil
	} else {
		isRight, err = b.rightPieces(ctx, stored.Data, digest)
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

// detach returns m, or if its payload exceeds the server's limit a message with the digest of the blob that holds it.
func (b *Blobs) detach(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	if m.Header == nil {
		m.Header = nats.Header{}
	}
	if int64(len(m.Data))+envelope <= b.conn.NC.MaxPayload() {
		return m, nil
	}
	digest, err := b.Put(ctx, m.Data)
	if err != nil {
		return nil, err
	}
	named := &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: []byte(digest)}
	named.Header[headerBlob] = []string{digest}
	return named, nil
}

// Payload returns the payload of a message: its data, or the blob that its header names, of the owner of its job.
func (b *Blobs) Payload(ctx context.Context, owner string, h nats.Header, data []byte) ([]byte, error) {
	if !HasBlob(h) {
		return data, nil
	}
	digest := blobOf(h)
	if !form.IsDigest(digest) {
		return nil, fault.New(fault.BadInput, "bus: header %s: %.80q is no digest", headerBlob, digest)
	}
	return b.Of(owner).Get(ctx, digest)
}

// RenewPayload renews the blob that is a message's payload, if it has one: the blob of its job's owner.
func (b *Blobs) RenewPayload(ctx context.Context, owner string, h nats.Header) error {
	if !form.IsDigest(blobOf(h)) {
		return nil
	}
	_, err := b.Of(owner).Has(ctx, blobOf(h))
	return err
}

// HasBlob reports whether a message has its payload in a blob.
func HasBlob(h nats.Header) bool { return len(h[headerBlob]) > 0 }
