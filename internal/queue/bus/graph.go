package bus

// Registered models: bytes under their digest that stay until somebody removes them.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
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

// Registered is the content of the stream of registered models.
type Registered struct {
	Models  []Stored  // oldest first
	Names   []Alias   // in their order
	Skipped []Skipped // messages that are neither, by subject

	pieces map[string]int // by the subjects of pieces the number of models that have them
}

// Skipped is a stored message that cannot be read as what its subject says. Lists and copies pass it over.
type Skipped struct {
	Subject string
	Why     error
}

// String returns the subject and the reason in one line.
func (s Skipped) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%.200q: %.300v", s.Subject, s.Why)), " ")
}

// Registered lists the registered models and their names. It takes time proportional to all their bytes,
// because each message is fetched. One that cannot be read stops nothing: it is in Skipped.
func (b *registry) Registered(ctx context.Context) (r Registered, err error) {
	subjects, err := b.Subjects(ctx, StreamGraph, message.Filter(message.KindGraph))
	if err != nil {
		return r, err
	}
	r.pieces = map[string]int{}
	var skipped []Skipped // pieces too
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		switch err := b.addRegistered(ctx, &r, subject); {
		case err == nil || errors.Is(err, ErrNotFound) && !errors.Is(err, ErrLost): // removed since
		case ctx.Err() == nil && Unreadable(err):
			skipped = append(skipped, Skipped{subject, err})
		default:
			return r, err
		}
	}

	for _, s := range skipped {
		if r.pieces[s.Subject] == 0 {
			r.Skipped = append(r.Skipped, s)
		}
	}
	r.Models = slices.DeleteFunc(r.Models, func(m Stored) bool { return r.pieces[message.GraphSubject(m.Owner, m.Digest)] > 0 })
	slices.SortStableFunc(r.Models, func(x, y Stored) int {
		if c := x.Time.Compare(y.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Digest, y.Digest)
	})
	slices.SortFunc(r.Names, func(x, y Alias) int { return strings.Compare(x.Owner+"."+x.Name, y.Owner+"."+y.Name) })
	return r, nil
}

// addRegistered adds the model or the name of a subject to r. The error of a message that is neither is Unreadable.
func (b *registry) addRegistered(ctx context.Context, r *Registered, subject string) error {
	if owner, name, ok := ParseAlias(subject); ok {
		a, _, err := b.alias(ctx, owner, name)
		if err == nil && len(a.Versions) > 0 {
			r.Names = append(r.Names, a)
		}
		return err
	}
	s, err := message.ParseSubject(subject)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	in := graphs.of(s.Owner)
	m, err := b.Raw(ctx, in.stream, subject)
	if err != nil {
		return err
	}
	if len(m.Header[headerPieces]) > 0 {
		digests, err := piecesOf(m.Data)
		if err != nil {
			return err
		}
		for _, digest := range distinct(digests) {
			r.pieces[in.subject(digest)]++
		}
	} else if wire.Digest(m.Data) == s.Digest && codec.Scan(m.Data, wire.MaxModel) != nil {
		return fault.New(fault.BadInput, "bus: these %d bytes are no message: perhaps a piece of a model that was never stored as a whole",
			len(m.Data))
	}
	one, err := b.described(ctx, in, m, s.Digest)
	if err == nil {
		r.Models = append(r.Models, one)
	}
	return err
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
	return b.described(ctx, in, m, digest)
}

// described describes the model that a stored message holds, or lists the pieces of.
func (b *registry) described(ctx context.Context, in shelf, m *jetstream.RawStreamMsg, digest string) (Stored, error) {
	data, err := b.content(ctx, in, m, digest)
	s := Stored{Owner: in.owner, Digest: digest, Time: m.Time, Bytes: uint64(len(data))}
	if errors.Is(err, ErrLost) { // the model may be registered again
		return Stored{}, fmt.Errorf("%w: %w: %s", ErrNotFound, err, in.subject(digest))
	}
	return s, err
}

// Remove removes everybody's registered model or name, or with an owner that owner's, whatever is stored there, and pieces that no
// other model has. The error wraps ErrNotFound if nothing is. A tenant's user cannot remove anything.
func (b *registry) Remove(ctx context.Context, owner, name string) error {
	if b.owner != "" {
		return fault.New(fault.BadInput, "bus: to remove registered models takes the operator's user")
	}
	subject := graphs.of(owner).subject(name)
	had, err := b.Has(ctx, StreamGraph, subject)
	if err != nil {
		return err
	}
	if had && form.IsDigest(name) {
		if err := b.removePieces(ctx, graphs.of(owner), name); err != nil {
			return err
		}
	}
	if err := b.Purge(ctx, StreamGraph, subject, 0); err != nil {
		return err
	}
	if !had {
		return fmt.Errorf("%w: %s", ErrNotFound, subject)
	}
	return nil
}

// removePieces removes the pieces of a registered model that no other model has. It looks at every model, if there are pieces.
func (b *registry) removePieces(ctx context.Context, in shelf, digest string) error {
	m, err := b.Raw(ctx, in.stream, in.subject(digest))
	if err != nil || len(m.Header[headerPieces]) == 0 {
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	}
	digests, err := piecesOf(m.Data)
	if err != nil {
		return nil // there is nothing to find
	}
	r, err := b.Registered(ctx)
	if err != nil {
		return err
	}
	for _, piece := range distinct(digests) {
		subject := in.subject(piece)
		if r.pieces[subject]--; r.pieces[subject] > 0 {
			continue
		}
		if err := b.Purge(ctx, in.stream, subject, 0); err != nil {
			return err
		}
	}
	return nil
}

// distinct returns each of the digests once.
func distinct(digests []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(digests)))
}
