package bus

// Bytes that exceed the server's limit: pieces in the same stream, each under its own digest, and in the place of the whole the list of
// their digests. An object store has no subjects by which a server could tell tenants apart, and a new name for every writer of the same
// bytes. Pieces pass over a connection of their own.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Maximum pieces, and bytes of them, that are written or read at the same time. A server slows down who sends to a
// connection with 32 MiB to come.
const (
	piecesAtOnce = 8
	bytesAtOnce  = 24 << 20
)

// inFlight returns the number of pieces that are written or read at the same time.
func (b *Blobs) inFlight() int {
	return max(1, min(piecesAtOnce, int(bytesAtOnce/b.conn.NC.MaxPayload())))
}

// forPieces returns b over the connection for pieces. Nothing is asked about quotas, because the whole was counted.
func (b *Blobs) forPieces() (*Blobs, error) {
	conn, err := b.conn.forPieces()
	pieces := *b
	pieces.conn, pieces.admit = conn, nil
	return &pieces, err
}

// digestLen is the number of digits of a digest.
const digestLen = 64

// putPieces stores the payload of m in pieces of up to limit bytes, and returns the message that lists them.
func (b *Blobs) putPieces(ctx context.Context, m *nats.Msg, limit int) (*nats.Msg, error) {
	n := (len(m.Data) + limit - 1) / limit
	if n*digestLen > limit {
		return nil, fault.New(fault.BadInput, "bus: %w: %d bytes in messages of %d", wire.ErrTooLarge, len(m.Data), limit)
	}

	pieces, err := b.forPieces()
	if err != nil {
		return nil, err
	}
	list := make([]byte, n*digestLen)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.inFlight())
	for k := range n {
		g.Go(func() error {
			digest, err := pieces.Put(gctx, m.Data[k*limit:min((k+1)*limit, len(m.Data))])
			copy(list[k*digestLen:], digest)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return &nats.Msg{Subject: m.Subject, Header: nats.Header{headerPieces: {strconv.Itoa(n)}}, Data: list}, nil
}

// piecesOf returns the digests in a list of pieces. The error wraps ErrLost if it is none.
func piecesOf(list []byte) ([]string, error) {
	if len(list) == 0 || len(list)%digestLen != 0 {
		return nil, fault.New(fault.Infrastructure, "%w: %d bytes are no list of digests", ErrLost, len(list))
	}
	digests := make([]string, len(list)/digestLen)
	for k := range digests {
		digests[k] = string(list[k*digestLen : (k+1)*digestLen])
		if !form.IsDigest(digests[k]) {
			return nil, fault.New(fault.Infrastructure, "%w: %.64q is no digest", ErrLost, digests[k])
		}
	}
	return digests, nil
}

// getPieces returns the bytes that a list of pieces is of: at most message.MaxBlob. A piece is a message of its own, never a list, and all
// but the last are as long as the first. The error wraps ErrLost if a piece is gone, or has other bytes or another length.
func (b *Blobs) getPieces(ctx context.Context, list []byte) ([]byte, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return nil, err
	}
	pieces, err := b.forPieces()
	if err != nil {
		return nil, err
	}
	first, err := pieces.piece(ctx, digests[0])
	if err != nil {
		return nil, err
	}
	size, last := len(first.Data), len(digests)-1
	if last*size > message.MaxBlob {
		return nil, fault.New(fault.Infrastructure, "%w: pieces of more than %d bytes", wire.ErrTooLarge, message.MaxBlob)
	}
	data := make([]byte, last*size+size)
	copy(data, first.Data)

	lastSize := size
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.inFlight())
	for k, digest := range digests[1:] {
		g.Go(func() error {
			piece, err := pieces.piece(gctx, digest)
			if err != nil {
				return err
			}
			isLast, n := k+1 == last, len(piece.Data)
			if n > size || !isLast && n < size {
				return fault.New(fault.Infrastructure, "%w: a piece of %d bytes after one of %d", ErrLost, n, size)
			}
			if isLast {
				lastSize = n
			}
			copy(data[(k+1)*size:], piece.Data)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return data[:last*size+lastSize], nil
}

// piece returns the message of a piece, fetched again if its bytes have another digest: they may have been damaged on their way. The error
// wraps ErrLost if the piece is gone, or stored with other bytes; then it is deleted.
func (b *Blobs) piece(ctx context.Context, digest string) (*jetstream.RawStreamMsg, error) {
	var stored *jetstream.RawStreamMsg
	for range looksAtForged {
		var err error
		stored, err = b.raw(ctx, digest)
		if errors.Is(err, ErrNotFound) {
			return nil, fault.New(fault.Infrastructure, "%w: piece %.16s…: %v", ErrLost, digest, err)
		}
		if err != nil || wire.Digest(stored.Data) == digest {
			return stored, err
		}
	}
	b.drop(ctx, stored.Sequence)
	return nil, fault.New(fault.Infrastructure, "%w: %w: piece %.16s…", ErrLost, ErrDigest, digest)
}

// eachPiece calls do with the pieces of a list, one after the other, and reports whether the list is one, all its pieces are stored and
// sound, and do returned true each time.
func (b *Blobs) eachPiece(ctx context.Context, list []byte, do func(*jetstream.RawStreamMsg) (bool, error)) (bool, error) {
	digests, err := piecesOf(list)
	goesOn := err == nil
	for k := 0; goesOn && k < len(digests); k++ {
		var piece *jetstream.RawStreamMsg
		if piece, err = b.piece(ctx, digests[k]); err == nil {
			goesOn, err = do(piece)
		}
		goesOn = goesOn && err == nil
	}
	if errors.Is(err, ErrLost) {
		err = nil
	}
	return goesOn, err
}

// rightPieces reports whether the pieces of a list are stored and have, one after the other, a digest. It holds one piece at a time.
func (b *Blobs) rightPieces(ctx context.Context, list []byte, digest string) (bool, error) {
	sum := sha256.New()
	isRight, err := b.eachPiece(ctx, list, func(piece *jetstream.RawStreamMsg) (bool, error) {
		sum.Write(piece.Data)
		return true, nil
	})
	return isRight && hex.EncodeToString(sum.Sum(nil)) == digest, err
}

// hasPieces reports whether all pieces of a list are stored. A tenant's user, who may not ask what is there, reads them.
func (b *Blobs) hasPieces(ctx context.Context, list []byte) (bool, error) {
	if b.conn.tenant != "" {
		return b.eachPiece(ctx, list, func(*jetstream.RawStreamMsg) (bool, error) { return true, nil })
	}
	digests, err := piecesOf(list)
	if err != nil {
		return false, nil
	}
	for _, digest := range digests {
		there, err := b.conn.subjects(ctx, b.stream, b.subject(digest))
		if err != nil || len(there) == 0 {
			return false, err
		}
	}
	return true, nil
}

// renewPieces renews the pieces of a list. It reports whether all are stored and sound.
func (b *Blobs) renewPieces(ctx context.Context, list []byte) (bool, error) {
	pieces, err := b.forPieces()
	if err != nil {
		return false, err
	}
	return pieces.eachPiece(ctx, list, func(piece *jetstream.RawStreamMsg) (bool, error) { return pieces.renew(ctx, piece) })
}

// hasRoom returns ErrFull if n bytes have no room among the registered models: what was stored of them would stay for ever. It is nil for
// a tenant's user, who may not ask. A quota bounds what a tenant stores.
func (b *Blobs) hasRoom(ctx context.Context, n int) error {
	if b.stream != StreamGraph || b.conn.tenant != "" {
		return nil
	}
	info, err := b.conn.Info(ctx, b.stream)
	if err != nil {
		return err
	}
	if limit := info.Config.MaxBytes; limit > 0 && info.State.Bytes+uint64(n) > uint64(limit) {
		return fault.New(fault.Infrastructure, "%w: %s: %d bytes, and %d of %d are taken", ErrFull, b.stream, n, info.State.Bytes, limit)
	}
	return nil
}
