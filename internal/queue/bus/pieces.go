package bus

// Bytes that exceed the server's limit: pieces in the same stream, each under its own digest, and in the place of the
// whole the list of their digests. An object store has no subjects by which a server could tell tenants apart, and a
// new name for every writer of the same bytes. Pieces pass over a connection of their own.

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

// Maximum pieces, and bytes of pieces, that are written or read at the same time. A server slows down a client that has
// 32 MiB waiting on one connection.
const (
	piecesAtOnce = 8
	bytesAtOnce  = 24 << 20
)

// pieceConcurrency returns how many pieces are written or read at the same time: at most piecesAtOnce, and at most
// bytesAtOnce bytes.
func (b *Blobs) pieceConcurrency() int {
	return max(1, min(piecesAtOnce, int(bytesAtOnce/b.conn.NC.MaxPayload())))
}

// overPieceConn returns a copy of b that uses the connection for pieces. It asks nothing about quotas, because the
// whole blob was counted.
func (b *Blobs) overPieceConn() (*Blobs, error) {
	conn, err := b.conn.pieceConn()
	pieces := *b
	pieces.conn, pieces.admit = conn, nil
	return &pieces, err
}

// digestLen is the number of digits of a digest.
const digestLen = 64

// putPieces stores the payload of m in pieces of up to limit bytes, and returns the message that lists the digests of
// the pieces in order. The list is the digests as hexadecimal text, one after the other, of digestLen bytes each.
func (b *Blobs) putPieces(ctx context.Context, m *nats.Msg, limit int) (*nats.Msg, error) {
	n := (len(m.Data) + limit - 1) / limit // number of pieces, rounded up
	if n*digestLen > limit {               // the list would not fit into a message
		return nil, fault.New(fault.BadInput, "bus: %w: %d bytes in messages of %d", wire.ErrTooLarge, len(m.Data), limit)
	}

	pieces, err := b.overPieceConn()
	if err != nil {
		return nil, err
	}
	list := make([]byte, n*digestLen)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.pieceConcurrency())
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

// parsePieceList returns the digests in a list of pieces, which is their text one after the other. The error wraps
// ErrLost if list is empty or has anything else.
func parsePieceList(list []byte) ([]string, error) {
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

// getPieces returns the bytes of a blob that is stored in pieces, at most message.MaxBlob bytes. list has the digests of the
// pieces in order. All pieces but the last are as long as the first, so each can be copied to its place when it comes. The
// error wraps ErrLost if a piece is gone, or has a wrong digest or length.
func (b *Blobs) getPieces(ctx context.Context, list []byte) ([]byte, error) {
	digests, err := parsePieceList(list)
	if err != nil {
		return nil, err
	}
	pieces, err := b.overPieceConn()
	if err != nil {
		return nil, err
	}

	// The first piece has the length of all but the last.
	first, err := pieces.fetchPiece(ctx, digests[0])
	if err != nil {
		return nil, err
	}
	size, last := len(first.Data), len(digests)-1 // last is the index of the last piece
	if last*size > message.MaxBlob {
		return nil, fault.New(fault.Infrastructure, "%w: pieces of more than %d bytes", wire.ErrTooLarge, message.MaxBlob)
	}
	data := make([]byte, last*size+size)
	copy(data, first.Data)

	// The other pieces go to their places in data. The last one may be shorter.
	lastSize := size // written by one goroutine, that of the last piece
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.pieceConcurrency())
	for k := 1; k <= last; k++ {
		g.Go(func() error {
			piece, err := pieces.fetchPiece(gctx, digests[k])
			if err != nil {
				return err
			}
			isLast, n := k == last, len(piece.Data)
			if n > size || !isLast && n < size {
				return fault.New(fault.Infrastructure, "%w: a piece of %d bytes after one of %d", ErrLost, n, size)
			}
			if isLast {
				lastSize = n
			}
			copy(data[k*size:], piece.Data)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return data[:last*size+lastSize], nil
}

// fetchPiece returns the stored message of the piece with a digest. It fetches the message again if the bytes have
// another digest, because they may have been damaged on their way. The error wraps ErrLost if the piece is gone, and
// also if its stored bytes are wrong; then the piece is deleted.
func (b *Blobs) fetchPiece(ctx context.Context, digest string) (*jetstream.RawStreamMsg, error) {
	var stored *jetstream.RawStreamMsg
	for range looksAtForged {
		var err error
		stored, err = b.getStored(ctx, digest)
		if errors.Is(err, ErrNotFound) {
			return nil, fault.New(fault.Infrastructure, "%w: piece %.16s…: %v", ErrLost, digest, err)
		}
		if err != nil || wire.Digest(stored.Data) == digest {
			return stored, err
		}
	}
	b.deleteQuietly(ctx, stored.Sequence)
	return nil, fault.New(fault.Infrastructure, "%w: %w: piece %.16s…", ErrLost, ErrDigest, digest)
}

// forEachPiece calls do with the pieces of a list, one after the other, until do returns false or an error. It reports
// whether do was called with all pieces and returned true each time. If list is no list of pieces, or a piece is gone or
// damaged, it reports false without an error: these errors wrap ErrLost.
func (b *Blobs) forEachPiece(ctx context.Context, list []byte, do func(*jetstream.RawStreamMsg) (bool, error)) (bool, error) {
	digests, err := parsePieceList(list)
	goesOn := err == nil
	for k := 0; goesOn && k < len(digests); k++ {
		var piece *jetstream.RawStreamMsg
		if piece, err = b.fetchPiece(ctx, digests[k]); err == nil {
			goesOn, err = do(piece)
		}
		goesOn = goesOn && err == nil
	}
	if errors.Is(err, ErrLost) {
		err = nil
	}
	return goesOn, err
}

// piecesHaveDigest reports whether the pieces of a list are all stored, and their bytes in order have the digest. It
// holds one piece at a time in memory.
func (b *Blobs) piecesHaveDigest(ctx context.Context, list []byte, digest string) (bool, error) {
	sum := sha256.New()
	areStored, err := b.forEachPiece(ctx, list, func(piece *jetstream.RawStreamMsg) (bool, error) {
		sum.Write(piece.Data) // a hash returns no error
		return true, nil
	})
	return areStored && hex.EncodeToString(sum.Sum(nil)) == digest, err
}

// hasAllPieces reports whether all pieces of a list are stored. It asks the server for their subjects. A tenant's user
// may not ask that, and reads the pieces instead.
func (b *Blobs) hasAllPieces(ctx context.Context, list []byte) (bool, error) {
	if b.conn.tenant != "" {
		return b.forEachPiece(ctx, list, func(*jetstream.RawStreamMsg) (bool, error) { return true, nil })
	}
	digests, err := parsePieceList(list)
	if err != nil { // a list that cannot be read has no pieces
		return false, nil
	}
	for _, digest := range digests {
		subjects, err := b.conn.subjects(ctx, b.stream, b.subject(digest))
		if err != nil || len(subjects) == 0 {
			return false, err
		}
	}
	return true, nil
}

// renewPieces moves the pieces of a list that are old to the end of their stream. It reports whether all pieces are
// stored and sound.
func (b *Blobs) renewPieces(ctx context.Context, list []byte) (bool, error) {
	pieces, err := b.overPieceConn()
	if err != nil {
		return false, err
	}
	return pieces.forEachPiece(ctx, list, func(piece *jetstream.RawStreamMsg) (bool, error) { return pieces.renew(ctx, piece) })
}

// checkModelSpace returns ErrFull if b holds the registered models and n bytes more exceed the limit of their stream.
// Otherwise the first pieces of a model would be stored before the stream is full, and stay for ever. It returns nil for a tenant's
// user, who may not ask for the size of streams and is bounded by a quota.
func (b *Blobs) checkModelSpace(ctx context.Context, n int) error {
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
