package pipeline

import (
	"container/list"
	"context"
	"sync"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/internal/bus"
	"github.com/basetensor/basetensor/pkg/wire"
)

// The last decoded blobs are kept, at most so many and of so many encoded bytes together: a job's tasks name the same two.
const (
	keepDecoded      = 32
	keepDecodedBytes = 512 << 20
)

// decoded keeps the most recently used blobs of one type in memory. What it returns is shared and must not be changed.
type decoded[T any] struct {
	decode func([]byte) (T, error)

	mu    sync.Mutex
	order *list.List // of *entry[T], most recent first
	by    map[string]*list.Element
	bytes int
}

type entry[T any] struct {
	digest string
	bytes  int
	value  T
}

func newDecoded[T any](decode func([]byte) (T, error)) *decoded[T] {
	return &decoded[T]{decode: decode, order: list.New(), by: map[string]*list.Element{}}
}

// get returns the blob of a digest. Two callers may both decode it; that is rarer than it is dear.
func (c *decoded[T]) get(ctx context.Context, b *bus.Bus, digest string) (T, error) {
	return c.of(ctx, b, digest, nil)
}

// of is get of a blob whose bytes came with the message that names it, unless data is nil.
func (c *decoded[T]) of(ctx context.Context, b *bus.Bus, digest string, data []byte) (T, error) {
	c.mu.Lock()
	if e := c.by[digest]; e != nil {
		c.order.MoveToFront(e)
		c.mu.Unlock()
		return e.Value.(*entry[T]).value, nil
	}
	c.mu.Unlock()
	var none T
	if data == nil {
		var err error
		if data, err = b.GetBlob(ctx, digest); err != nil {
			return none, err
		}
	} else if wire.Digest(data) != digest {
		return none, fault.New(fault.BadInput, "pipeline: the plan in the message is not that of its digest %s", digest)
	}
	value, err := c.decode(data)
	if err != nil {
		return value, err
	}
	c.put(&entry[T]{digest, len(data), value})
	return value, nil
}

func (c *decoded[T]) put(e *entry[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by[e.digest] != nil || e.bytes > keepDecodedBytes {
		return
	}
	c.by[e.digest] = c.order.PushFront(e)
	c.bytes += e.bytes
	for c.order.Len() > keepDecoded || c.bytes > keepDecodedBytes {
		oldest := c.order.Back()
		old := c.order.Remove(oldest).(*entry[T])
		delete(c.by, old.digest)
		c.bytes -= old.bytes
	}
}

// decodeNetwork decodes and validates a stored network: the definition's conditions are not the codec's to check.
func decodeNetwork(b []byte) (*btn.Network, error) {
	n, err := wire.DecodeNetwork(b)
	if err != nil {
		return nil, err
	}
	return n, n.Validate()
}

func decodeJob(b []byte) (*btn.Job, error) { return wire.DecodeJob(b) }
