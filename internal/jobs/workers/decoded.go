package workers

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Bounds of the decoded blobs that are kept: their number, and the sum of their encoded sizes. All
// tasks of a job name the same network and plan.
const (
	keepDecoded      = 32
	keepDecodedBytes = 512 << 20
)

// decoded keeps the most recently used blobs of one type in decoded form.
type decoded[T any] struct {
	decode func([]byte) (T, error)
	known  memo.LRU[string, T]
}

func newDecoded[T any](decode func([]byte) (T, error)) *decoded[T] {
	return &decoded[T]{
		decode: decode,
		known:  memo.LRU[string, T]{Entries: keepDecoded, Bytes: keepDecodedBytes},
	}
}

// of returns the decoded blob of a digest, whose bytes may have come with the message that names it (data, nil if they did not). These
// are checked against the digest. Two callers may both decode it; both are given the value of one of them.
func (c *decoded[T]) of(ctx context.Context, blobs *bus.Blobs, digest string, data []byte) (T, error) {
	if value, ok := c.known.Get(digest); ok {
		return value, nil
	}

	var none T
	if data == nil {
		var err error
		if data, err = blobs.Get(ctx, digest); err != nil {
			return none, err
		}
	} else if wire.Digest(data) != digest {
		return none, fault.New(fault.BadInput,
			"pipeline: the plan in the message does not have the digest %s", digest)
	}

	value, err := c.decode(data)
	if err != nil {
		return value, err
	}
	return c.known.Add(digest, value, int64(len(data))), nil
}

// decodeNetwork decodes a stored network and validates it: the codec checks the encoding, not the
// conditions of the definition.
func decodeNetwork(b []byte) (*btn.Network, error) {
	n, err := message.DecodeNetwork(b)
	if err != nil {
		return nil, err
	}
	return n, n.Validate()
}
