package bus

// Registered models: bytes under their digest that stay until somebody removes them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Stored describes what is registered under a digest.
type Stored struct {
	Digest string
	Bytes  uint64
	Time   time.Time // when it was stored
}

// PutGraph registers a model's bytes under their digest, which it returns. A model that is
// registered already is left as it is. The error wraps ErrFull if there is no room.
func (b *Bus) PutGraph(ctx context.Context, data []byte) (digest string, err error) {
	return b.put(ctx, graphs, data)
}

// GetGraph returns the bytes of a registered model. The error wraps ErrNotFound if there is none,
// ErrLost if they are gone or damaged, and ErrDigest if somebody registered other bytes under this
// digest; then it may be registered again.
func (b *Bus) GetGraph(ctx context.Context, digest string) ([]byte, error) {
	return b.get(ctx, graphs, digest)
}

// Graphs lists what is registered, oldest first. It takes time proportional to the bytes of all of
// it that are no objects, because each message is fetched.
func (b *Bus) Graphs(ctx context.Context) ([]Stored, error) {
	subjects, err := b.Subjects(ctx, StreamGraph, message.Filter(message.KindGraph))
	if err != nil {
		return nil, err
	}

	all := make([]Stored, 0, len(subjects))
	for subject := range subjects {
		s, err := message.ParseSubject(subject)
		if err != nil {
			continue // a subject that no request can name
		}

		one, err := b.Graph(ctx, s.Digest)
		if errors.Is(err, ErrNotFound) {
			continue // removed since
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}

	slices.SortFunc(all, func(x, y Stored) int {
		if c := x.Time.Compare(y.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Digest, y.Digest)
	})
	return all, nil
}

// Graph describes what is registered under a digest. The error wraps ErrNotFound if nothing is.
func (b *Bus) Graph(ctx context.Context, digest string) (Stored, error) {
	m, err := b.getRaw(ctx, StreamGraph, wire.GraphSubject(digest))
	if err != nil {
		return Stored{}, err
	}

	s := Stored{Digest: digest, Bytes: uint64(len(m.Data)), Time: m.Time}
	if name := m.Header[headerObject]; len(name) > 0 {
		info, err := b.object(ctx, graphs, name[0])
		if errors.Is(err, ErrLost) { // the model may be registered again
			return Stored{}, fmt.Errorf("%w: %w: %s", ErrNotFound, err, wire.GraphSubject(digest))
		}
		if err != nil {
			return Stored{}, err
		}
		s.Bytes = info.Size
	}
	return s, nil
}

// RemoveGraph removes a registered model, and every object that was ever written for it. The error
// wraps ErrNotFound if there is none.
func (b *Bus) RemoveGraph(ctx context.Context, digest string) error {
	s, err := b.Stream(ctx, StreamGraph)
	if err != nil {
		return err
	}

	subject := wire.GraphSubject(digest)
	had, err := b.Has(ctx, StreamGraph, subject)
	if err != nil {
		return err
	}

	if err := s.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
		return fault.New(fault.Infrastructure, "bus: remove %s: %w", subject, err)
	}

	o, err := b.store(ctx, BucketGraph)
	if err != nil {
		return err
	}
	objects, err := o.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return fault.New(fault.Infrastructure, "bus: object store %s: %w", BucketGraph, err)
	}

	// An object is named by its digest and a random part.
	for _, info := range objects {
		if strings.HasPrefix(info.Name, digest+"-") {
			if err := o.Delete(ctx, info.Name); err != nil &&
				!errors.Is(err, jetstream.ErrObjectNotFound) {
				return fault.New(fault.Infrastructure, "bus: object %s: %w", info.Name, err)
			}
		}
	}

	if !had {
		return fmt.Errorf("%w: %s", ErrNotFound, subject)
	}
	return nil
}
