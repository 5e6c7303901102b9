package bus

// Registered models: bytes under their digest that stay until somebody removes them.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go/jetstream"
)

// Stored describes the model registered under a digest.
type Stored struct {
	Owner  string // the tenant whose it is; "": everybody's
	Digest string
	Bytes  uint64
	Time   time.Time // when it was stored
}

// PutGraph registers a model's bytes under their digest, which it returns: for everybody, or as a
// tenant's user for the tenant. A model that is registered already is left as it is. The error wraps
// ErrFull if there is no room.
func (b *registry) PutGraph(ctx context.Context, data []byte) (digest string, err error) {
	return b.put(ctx, graphs.of(b.owner), data)
}

// shelvesOf returns where an owner's jobs find registered models: the owner's own, and everybody's.
func shelvesOf(owner string) []shelf {
	if owner == "" {
		return []shelf{graphs}
	}
	return []shelf{graphs.of(owner), graphs}
}

// GetGraph returns the bytes of a model that an owner's jobs may name. The error wraps ErrNotFound if there is none,
// ErrLost if they are gone or damaged, and ErrDigest if somebody registered other bytes under this
// digest; then it may be registered again.
func (b *registry) GetGraph(ctx context.Context, owner, digest string) (data []byte, err error) {
	for _, in := range shelvesOf(owner) {
		if data, err = b.get(ctx, in, digest); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return data, err
}

// Graphs lists the registered models, oldest first. It takes time proportional to all their bytes
// outside of the object store, because each message is fetched.
func (b *registry) Graphs(ctx context.Context) ([]Stored, error) {
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

		one, err := b.describe(ctx, graphs.of(s.Owner), s.Digest)
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

// Graph describes the model registered under a digest for a tenant's user or for everybody. The
// error wraps ErrNotFound if nothing is.
func (b *registry) Graph(ctx context.Context, digest string) (one Stored, err error) {
	for _, in := range shelvesOf(b.owner) {
		if one, err = b.describe(ctx, in, digest); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return one, err
}

// describe describes the content of a shelf under a digest.
func (b *registry) describe(ctx context.Context, in shelf, digest string) (Stored, error) {
	m, err := b.Raw(ctx, in.stream, in.subject(digest))
	if err != nil {
		return Stored{}, err
	}

	s := Stored{Owner: in.owner, Digest: digest, Bytes: uint64(len(m.Data)), Time: m.Time}
	switch name := m.Header[headerObject]; {
	case len(m.Header[headerPieces]) > 0:
		var data []byte
		data, err = b.getPieces(ctx, in, m.Data)
		s.Bytes = uint64(len(data))
	case len(name) > 0:
		var info *jetstream.ObjectInfo
		if info, err = b.object(ctx, in, name[0]); err == nil {
			s.Bytes = info.Size
		}
	}
	if errors.Is(err, ErrLost) { // the model may be registered again
		return Stored{}, fmt.Errorf("%w: %w: %s", ErrNotFound, err, in.subject(digest))
	}
	return s, err
}

// RemoveGraph removes a registered model, and every object that was ever written for it. The error
// wraps ErrNotFound if there is none. A tenant's user cannot remove anything.
func (b *registry) RemoveGraph(ctx context.Context, digest string) error {
	if b.owner != "" {
		return fault.New(fault.BadInput, "bus: a tenant's user cannot remove registered models: operators can")
	}
	subject := message.GraphSubject("", digest)
	had, err := b.Has(ctx, StreamGraph, subject)
	if err != nil {
		return err
	}

	if err := b.Purge(ctx, StreamGraph, subject, 0); err != nil {
		return err
	}

	objects, err := b.objectsIn(ctx, BucketGraph)
	if err != nil {
		return err
	}

	// An object is named by its digest and a random part.
	for _, info := range objects {
		if strings.HasPrefix(info.Name, digest+"-") {
			if err := b.removeObject(ctx, BucketGraph, info); err != nil {
				return err
			}
		}
	}

	if !had {
		return fmt.Errorf("%w: %s", ErrNotFound, subject)
	}
	return nil
}
