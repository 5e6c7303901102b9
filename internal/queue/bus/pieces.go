package bus

// Bytes that exceed the server's limit: pieces in the same stream, each under its own digest, and in the place of the whole the list of
// their digests. An object store has no subjects by which a server could tell tenants apart, and a new name for every writer of the same
// bytes. Pieces pass over a connection of their own (bulk.go).

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
func (b *shelves) inFlight() int {
	return max(1, min(piecesAtOnce, int(bytesAtOnce/b.NC.MaxPayload())))
}

// digestLen is the number of digits of a digest.
const digestLen = 64

// putPieces stores the payload of m in pieces of at most that many bytes, and returns the message that lists them.
func (b *shelves) putPieces(ctx context.Context, in shelf, m *nats.Msg, most int) (*nats.Msg, error) {
	n := (len(m.Data) + most - 1) / most
	if n*digestLen > most {
		return nil, fault.New(fault.BadInput, "bus: %w: %d bytes in messages of %d", wire.ErrTooLarge, len(m.Data), most)
	}

	large, err := b.apart()
	if err != nil {
		return nil, err
	}
	list := make([]byte, n*digestLen)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.inFlight())
	for k := range n {
		g.Go(func() error {
			digest, err := large.putWithin(gctx, in, m.Data[k*most:min((k+1)*most, len(m.Data))], nil)
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
	all := make([]string, len(list)/digestLen)
	for k := range all {
		all[k] = string(list[k*digestLen : (k+1)*digestLen])
		if !form.IsDigest(all[k]) {
			return nil, fault.New(fault.Infrastructure, "%w: %.64q is no digest", ErrLost, all[k])
		}
	}
	return all, nil
}

// getPieces returns the bytes that a list of pieces is of: at most message.MaxBlob. A piece is a message of its own, never a list, and all
// but the last are as long as the first. The error wraps ErrLost if a piece is gone, or has other bytes or another length.
func (b *shelves) getPieces(ctx context.Context, in shelf, list []byte) ([]byte, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return nil, err
	}
	large, err := b.apart()
	if err != nil {
		return nil, err
	}
	first, err := large.piece(ctx, in, digests[0])
	if err != nil {
		return nil, err
	}
	size, last := len(first), len(digests)-1
	if last*size > message.MaxBlob {
		return nil, fault.New(fault.Infrastructure, "%w: pieces of more than %d bytes", wire.ErrTooLarge, message.MaxBlob)
	}
	data := make([]byte, last*size+size)
	copy(data, first)

	length := size // of the last piece
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(b.inFlight())
	for k, digest := range digests[1:] {
		g.Go(func() error {
			piece, err := large.piece(gctx, in, digest)
			switch isLast := k+1 == last; {
			case err != nil:
				return err
			case len(piece) > size || !isLast && len(piece) < size:
				return fault.New(fault.Infrastructure, "%w: a piece of %d bytes after one of %d", ErrLost, len(piece), size)
			case isLast:
				length = len(piece)
			}
			copy(data[(k+1)*size:], piece)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return data[:last*size+length], nil
}

// piece returns the bytes of a piece, fetched again if they have another digest: they may have been damaged on their way. The error wraps
// ErrLost if the piece is gone, or stored with other bytes; then it is deleted.
func (b *shelves) piece(ctx context.Context, in shelf, digest string) ([]byte, error) {
	var m *jetstream.RawStreamMsg
	for range looksAtForged {
		var err error
		m, err = b.Raw(ctx, in.stream, in.subject(digest))
		if errors.Is(err, ErrNotFound) {
			return nil, fault.New(fault.Infrastructure, "%w: piece %.16s…: %v", ErrLost, digest, err)
		}
		if err != nil {
			return nil, err
		}
		if wire.Digest(m.Data) == digest {
			return m.Data, nil
		}
	}
	b.drop(ctx, in, m.Sequence)
	return nil, fault.New(fault.Infrastructure, "%w: %w: piece %.16s…", ErrLost, ErrDigest, digest)
}

// rightPieces reports whether the pieces of a list are stored and have, one after the other, a digest. It holds one piece at a time.
func (b *shelves) rightPieces(ctx context.Context, in shelf, list []byte, digest string) (bool, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return false, nil
	}
	sum := sha256.New()
	for _, piece := range digests {
		m, err := b.Raw(ctx, in.stream, in.subject(piece))
		if errors.Is(err, ErrNotFound) || err == nil && wire.Digest(m.Data) != piece {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		sum.Write(m.Data)
	}
	return hex.EncodeToString(sum.Sum(nil)) == digest, nil
}

// hasPieces reports whether all pieces of a list are stored. A tenant's user, who may not ask what is there, reads them.
func (b *shelves) hasPieces(ctx context.Context, in shelf, list []byte) (bool, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return false, nil
	}
	for _, digest := range digests {
		if b.owner != "" {
			_, err := b.piece(ctx, in, digest)
			if errors.Is(err, ErrLost) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			continue
		}
		there, err := b.Subjects(ctx, in.stream, in.subject(digest))
		if err != nil || len(there) == 0 {
			return false, err
		}
	}
	return true, nil
}

// renewPieces renews the pieces of a list. It reports whether all are stored and sound.
func (b *shelves) renewPieces(ctx context.Context, in shelf, list []byte) (bool, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return false, nil
	}
	large, err := b.apart()
	if err != nil {
		return false, err
	}
	for _, digest := range digests {
		m, err := large.Raw(ctx, in.stream, in.subject(digest))
		if errors.Is(err, ErrNotFound) || err == nil && wire.Digest(m.Data) != digest {
			return false, nil
		}
		fresh := false
		if err == nil {
			fresh, err = large.renew(ctx, in, m)
		}
		if err != nil || !fresh {
			return false, err
		}
	}
	return true, nil
}

// hasRoom returns ErrFull if so many bytes have no room among the registered models: what was stored of them would stay for ever. It is
// nil for a tenant's user, who may not ask; a quota bounds what a tenant stores.
func (b *shelves) hasRoom(ctx context.Context, in shelf, bytes int) error {
	if in.stream != StreamGraph || b.owner != "" {
		return nil
	}
	info, err := b.Info(ctx, in.stream)
	if err != nil {
		return err
	}
	if limit := info.Config.MaxBytes; limit > 0 && info.State.Bytes+uint64(bytes) > uint64(limit) {
		return fault.New(fault.Infrastructure, "%w: %s: %d bytes, and %d of %d are taken", ErrFull, in.stream, bytes, info.State.Bytes, limit)
	}
	return nil
}
