package bus

// Bytes of users that exceed the server's limit: pieces in the same stream, each under its own digest, and in the place of the whole
// the list of their digests. An object store has no subjects by which a server could tell tenants apart.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"

	"github.com/basetensor/basetensor/internal/network/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// inFlight is the number of pieces written or read at the same time.
const inFlight = 8

// digestLen is the number of digits of a digest.
const digestLen = 64

// putPieces stores the payload of m in pieces of at most that many bytes, and returns the message that lists them.
func (b *shelves) putPieces(ctx context.Context, in shelf, m *nats.Msg, most int) (*nats.Msg, error) {
	n := (len(m.Data) + most - 1) / most
	if n*digestLen > most {
		return nil, fault.New(fault.BadInput, "bus: %w: %d bytes in messages of %d", wire.ErrTooLarge, len(m.Data), most)
	}

	list := make([]byte, n*digestLen)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for k := range n {
		g.Go(func() error {
			digest, err := b.putWithin(gctx, in, m.Data[k*most:min((k+1)*most, len(m.Data))], nil)
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

// getPieces returns the bytes that a list of pieces is of: at most message.MaxBlob. A piece is a message of its own, never a list.
func (b *shelves) getPieces(ctx context.Context, in shelf, list []byte) ([]byte, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return nil, err
	}
	pieces := make([][]byte, len(digests))
	var mu sync.Mutex
	total := 0 // bytes, under mu

	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(inFlight)
	for k, digest := range digests {
		g.Go(func() error {
			m, err := b.piece(gctx, in, digest)
			if errors.Is(err, ErrNotFound) {
				return fault.New(fault.Infrastructure, "%w: piece %d of %d: %v", ErrLost, k, len(digests), err)
			}
			if err != nil {
				return err
			}
			if wire.Digest(m.Data) != digest {
				b.drop(gctx, in, m.Sequence)
				return fault.New(fault.Infrastructure, "%w: %w: piece %d of %d", ErrLost, ErrDigest, k, len(digests))
			}

			mu.Lock()
			defer mu.Unlock()
			pieces[k] = m.Data
			if total += len(m.Data); total > message.MaxBlob {
				return fault.New(fault.Infrastructure, "%w: pieces of more than %d bytes", wire.ErrTooLarge, message.MaxBlob)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}

	data := make([]byte, 0, total)
	for _, p := range pieces {
		data = append(data, p...)
	}
	return data, nil
}

// piece fetches a piece, again if its bytes have another digest: they may have been damaged on their way.
func (b *shelves) piece(ctx context.Context, in shelf, digest string) (m *jetstream.RawStreamMsg, err error) {
	for range looksAtForged {
		if m, err = b.Raw(ctx, in.stream, in.subject(digest)); err != nil || wire.Digest(m.Data) == digest {
			break
		}
	}
	return m, err
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

// hasPieces reports whether all pieces of a list are stored and sound, and renews them.
func (b *shelves) hasPieces(ctx context.Context, in shelf, list []byte) (bool, error) {
	digests, err := piecesOf(list)
	if err != nil {
		return false, nil
	}
	for _, digest := range digests {
		m, err := b.Raw(ctx, in.stream, in.subject(digest))
		if errors.Is(err, ErrNotFound) || err == nil && wire.Digest(m.Data) != digest {
			return false, nil
		}
		fresh := false
		if err == nil {
			fresh, err = b.renew(ctx, in, m)
		}
		if err != nil || !fresh {
			return false, err
		}
	}
	return true, nil
}
