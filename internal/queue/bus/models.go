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
	Owner  string // the tenant that has registered it; "": it is everybody's
	Digest string
	Bytes  uint64
	Time   time.Time // when it was stored
}

// Models keeps registered models and their names.
type Models struct {
	log   *Log
	blobs *Blobs // everybody's models
}

// Put registers a model's bytes under their digest, which it returns. The model is for an owner's jobs, or if owner is
// "", for everybody's. A model that is registered already is left as it is. The error wraps ErrFull if there is no
// room.
func (m *Models) Put(ctx context.Context, owner string, data []byte) (digest string, err error) {
	return m.blobs.ForOwner(owner).Put(ctx, data)
}

// visibleTo returns where to look for the models that an owner's jobs may name: the owner's own models, and
// everybody's.
func (m *Models) visibleTo(owner string) []*Blobs {
	if owner == "" {
		return []*Blobs{m.blobs}
	}
	return []*Blobs{m.blobs.ForOwner(owner), m.blobs}
}

// Get returns the bytes of a model that an owner's jobs may name. The error wraps ErrNotFound if there is none, ErrLost
// if the bytes are gone or damaged, and ErrDigest if other bytes were registered under this digest. In the last two
// cases the model may be registered again.
func (m *Models) Get(ctx context.Context, owner, digest string) (data []byte, err error) {
	for _, blobs := range m.visibleTo(owner) {
		if data, err = blobs.find(ctx, digest); !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return data, err
}

// Registered is the content of the stream of registered models.
type Registered struct {
	Models  []Stored  // oldest first
	Names   []Alias   // sorted by owner and name
	Skipped []Skipped // messages that are neither, sorted by subject

	pieceUsers map[string]int // the number of models that have a piece, by the piece's subject
}

// Skipped is a stored message that cannot be read as what its subject says. Lists and copies skip it.
type Skipped struct {
	Subject string
	Why     error
}

// String returns the subject and the reason in one line.
func (s Skipped) String() string {
	return strings.Join(strings.Fields(fmt.Sprintf("%.200q: %.300v", s.Subject, s.Why)), " ")
}

// List returns the registered models and their names. A message that cannot be read is in Skipped, and no error. List
// takes time proportional to all bytes of the models, because it fetches each message.
func (m *Models) List(ctx context.Context) (r Registered, err error) {
	subjects, err := m.log.Subjects(ctx, StreamGraph, message.Filter(message.KindGraph))
	if err != nil {
		return r, err
	}

	// Read all messages. Among them are pieces of models that are too large for one message. A piece has a subject like a
	// model, so it is listed as a model or skipped here.
	r.pieceUsers = map[string]int{}
	var skipped []Skipped
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		switch err := m.addStoredMessage(ctx, &r, subject); {
		case err == nil:
		case errors.Is(err, ErrNotFound) && !errors.Is(err, ErrLost): // removed since it was listed
		case ctx.Err() == nil && IsUnreadable(err):
			skipped = append(skipped, Skipped{subject, err})
		default:
			return r, err
		}
	}

	// Take out the pieces, which the models' lists of pieces name, and sort.
	for _, s := range skipped {
		if r.pieceUsers[s.Subject] == 0 {
			r.Skipped = append(r.Skipped, s)
		}
	}
	r.Models = slices.DeleteFunc(r.Models, func(s Stored) bool {
		return r.pieceUsers[message.GraphSubject(s.Owner, s.Digest)] > 0
	})
	slices.SortStableFunc(r.Models, func(x, y Stored) int {
		if c := x.Time.Compare(y.Time); c != 0 {
			return c
		}
		return strings.Compare(x.Digest, y.Digest)
	})
	slices.SortFunc(r.Names, func(x, y Alias) int { return strings.Compare(x.Owner+"."+x.Name, y.Owner+"."+y.Name) })
	return r, nil
}

// addStoredMessage adds the model or the name that is stored on a subject to r. For a model that is stored in pieces, it
// also counts the model as a user of each piece. If the message is no model and no name, IsUnreadable reports true for
// the error.
func (m *Models) addStoredMessage(ctx context.Context, r *Registered, subject string) error {
	if owner, name, ok := ParseAlias(subject); ok {
		alias, _, err := m.readName(ctx, owner, name) // its sequence is of no interest
		if err == nil && len(alias.Versions) > 0 {
			r.Names = append(r.Names, alias)
		}
		return err
	}
	s, err := message.ParseSubject(subject)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	blobs := m.blobs.ForOwner(s.Owner)
	stored, err := m.log.GetRaw(ctx, StreamGraph, subject)
	if err != nil {
		return err
	}

	// The message is a list of pieces, or has the bytes of a model, which have to be an encoded message themselves.
	if len(stored.Header[headerPieces]) > 0 {
		digests, err := parsePieceList(stored.Data)
		if err != nil {
			return err
		}
		for _, digest := range sortedUnique(digests) {
			r.pieceUsers[blobs.subject(digest)]++
		}
	} else if wire.Digest(stored.Data) == s.Digest && codec.Scan(stored.Data, wire.MaxModel) != nil {
		return fault.New(fault.BadInput, "bus: these %d bytes are no message: perhaps a piece of a model that was never stored as a whole",
			len(stored.Data))
	}
	model, err := describeStored(ctx, blobs, stored, s.Digest)
	if err == nil {
		r.Models = append(r.Models, model)
	}
	return err
}

// Describe describes the model registered under a digest. It looks for a model of the connection's tenant first, and
// then for everybody's. The error wraps ErrNotFound if there is none.
func (m *Models) Describe(ctx context.Context, digest string) (model Stored, err error) {
	for _, blobs := range m.visibleTo(m.log.conn.tenant) {
		var stored *jetstream.RawStreamMsg
		if stored, err = blobs.getStored(ctx, digest); err == nil {
			model, err = describeStored(ctx, blobs, stored, digest)
		}
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return model, err
}

// describeStored describes the model in a stored message, or in the pieces that it lists.
func describeStored(ctx context.Context, blobs *Blobs, stored *jetstream.RawStreamMsg, digest string) (Stored, error) {
	data, err := blobs.checkedContent(ctx, stored, digest)
	if errors.Is(err, ErrLost) { // the model may be registered again
		return Stored{}, fmt.Errorf("%w: %w: %s", ErrNotFound, err, blobs.subject(digest))
	}
	return Stored{Owner: blobs.owner, Digest: digest, Time: stored.Time, Bytes: uint64(len(data))}, err
}

// Remove removes a registered model or a name, whatever is stored there: an owner's, or if owner is "", everybody's. It
// also removes pieces of the model that no other model has. The error wraps ErrNotFound if there is no such model or
// name. A tenant's user cannot remove anything.
func (m *Models) Remove(ctx context.Context, owner, name string) error {
	if m.log.conn.tenant != "" {
		return fault.New(fault.BadInput, "bus: to remove registered models takes the operator's user")
	}
	subject := message.GraphSubject(owner, name)
	exists, err := m.log.Has(ctx, StreamGraph, subject)
	if err != nil {
		return err
	}
	if exists && form.IsDigest(name) {
		if err := m.removePieces(ctx, m.blobs.ForOwner(owner), name); err != nil {
			return err
		}
	}
	if err := m.log.Purge(ctx, StreamGraph, subject, 0); err != nil { // 0: whatever its sequence is
		return err
	}
	if !exists {
		return fmt.Errorf("%w: %s", ErrNotFound, subject)
	}
	return nil
}

// removePieces removes those pieces of a registered model that no other model has. If the model has pieces, it reads
// all models.
func (m *Models) removePieces(ctx context.Context, blobs *Blobs, digest string) error {
	stored, err := blobs.getStored(ctx, digest)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil || len(stored.Header[headerPieces]) == 0 {
		return err
	}
	digests, err := parsePieceList(stored.Data)
	if err != nil {
		return nil // a list that cannot be read names no pieces
	}
	r, err := m.List(ctx)
	if err != nil {
		return err
	}
	for _, piece := range sortedUnique(digests) {
		subject := blobs.subject(piece)
		// Removing this model leaves one user less. Pieces of other models stay.
		if r.pieceUsers[subject]--; r.pieceUsers[subject] > 0 {
			continue
		}
		if err := m.log.Purge(ctx, StreamGraph, subject, 0); err != nil { // 0: whatever its sequence is
			return err
		}
	}
	return nil
}

// sortedUnique returns the digests sorted, each of them once.
func sortedUnique(digests []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(digests)))
}
