package bus

// Names of registered models: a name stands for a list of versions, each a digest. It is one
// message beside the models, replaced only against the sequence at which it was read.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Alias is the meaning of a name of registered models.
type Alias struct {
	Owner    string    `json:"-"` // the tenant that has the name; "": all
	Name     string    `json:"-"`
	Versions []Version `json:"versions"` // version 1 first
}

// Version is a model that was put under a name.
type Version struct {
	Digest string    `json:"digest"`
	By     string    `json:"by,omitempty"` // the author, as they said
	Time   time.Time `json:"time"`
}

const (
	maxVersions    = 10_000 // of a name: the message stays below every server's limit
	maxAuthorBytes = 64     // bytes of the author
)

// ErrName: what a registered name stands for cannot be read.
var ErrName = errors.New("bus: a registered name is damaged")

// IsAlias reports whether a text may be the name of registered models.
func IsAlias(name string) bool { return form.IsToken(name) && !form.IsDigest(name) }

// Subject returns the subject on which the name is stored.
func (a Alias) Subject() string { return message.GraphSubject(a.Owner, a.Name) }

// ParseAlias returns the owner and the name for the subject of a registered name. ok is false for any other subject.
// The owner is "" if the name is everybody's.
func ParseAlias(subject string) (owner, name string, ok bool) {
	rest, ok := strings.CutPrefix(subject, wire.Prefix+string(message.KindGraph)+".")
	owner, name, _ = strings.Cut(rest, ".")
	ok = ok && IsAlias(name) && form.IsToken(owner)
	if owner == form.Everybody {
		owner = ""
	}
	return owner, name, ok
}

// readName returns what is stored under an owner's name, and the sequence of its message. If nothing is stored, the
// alias has no versions, and the sequence is 0.
func (m *Models) readName(ctx context.Context, owner, name string) (alias Alias, sequence uint64, err error) {
	alias.Owner, alias.Name = owner, name
	stored, err := m.log.GetRaw(ctx, StreamGraph, alias.Subject())
	if errors.Is(err, ErrNotFound) {
		return alias, 0, nil
	}
	if err != nil {
		return alias, 0, err
	}
	if err := CheckSum(stored.Subject, stored.Header, stored.Data); err != nil {
		return alias, stored.Sequence, fault.New(fault.BadInput, "%w: %s: %w", ErrName, alias.fullName(), err)
	}
	data, err := m.log.blobs.Payload(ctx, owner, stored.Header, stored.Data)
	if err != nil {
		return alias, stored.Sequence, err
	}
	return alias, stored.Sequence, alias.parseVersions(data)
}

// parseVersions sets the versions of a from the stored JSON. The error has the code bad_input and says how an operator
// removes what is stored.
func (a *Alias) parseVersions(data []byte) error {
	err := jsontext.Strict(data, a)
	if err == nil && len(a.Versions) > maxVersions {
		err = fmt.Errorf("%d versions, at most %d", len(a.Versions), maxVersions)
	}
	for i, v := range a.Versions {
		if err == nil && !form.IsDigest(v.Digest) {
			err = fmt.Errorf("versions[%d].digest %.80q is not 64 lower-case hexadecimal digits", i, v.Digest)
		}
	}
	if err != nil {
		a.Versions = nil
		return fault.New(fault.BadInput, "%w: %s (btn model rm %[2]s removes it): %w", ErrName, a.fullName(), err)
	}
	return nil
}

// fullName returns the name with its owner before a dot, as commands take it, or the name alone if it is everybody's.
func (a *Alias) fullName() string {
	if a.Owner == "" {
		return a.Name
	}
	return a.Owner + "." + a.Name
}

// Name returns what a name stands for. If the connection has a tenant's user, the tenant's own name comes before
// everybody's. The error wraps ErrNotFound if neither exists.
func (m *Models) Name(ctx context.Context, name string) (Alias, error) {
	for _, blobs := range m.visibleTo(m.log.conn.tenant) { // the tenant's own, then everybody's
		a, _, err := m.readName(ctx, blobs.owner, name)
		if err != nil || len(a.Versions) > 0 {
			return a, err
		}
	}
	return Alias{}, fmt.Errorf("%w: %s", ErrNotFound, Alias{Name: name}.Subject())
}

// PutVersion adds a digest to the versions of a name, and returns its version number. If the name has the digest
// already, it returns the number of that version. The name belongs to the connection's tenant, or is everybody's if it
// has none. Concurrent calls get distinct versions: the one that comes second reads the name again.
func (m *Models) PutVersion(ctx context.Context, name, digest, author string) (version int, err error) {
	if !IsAlias(name) {
		return 0, fault.New(fault.BadInput, "bus: name %.80q of a model is not [A-Za-z0-9_-]{1,64}, or is a digest", name)
	}
	if len(author) > maxAuthorBytes {
		author = strings.ToValidUTF8(author[:maxAuthorBytes], "")
	}
	for collisions := 0; ; collisions++ { // with writes of others between the read and the write
		alias, sequence, err := m.readName(ctx, m.log.conn.tenant, name)
		if err != nil {
			return 0, err
		}
		if i := slices.IndexFunc(alias.Versions, func(v Version) bool { return v.Digest == digest }); i >= 0 {
			return i + 1, nil // versions are numbered from 1
		}
		if len(alias.Versions) >= maxVersions {
			return 0, fault.New(fault.BadInput, "bus: the name %s has %d versions, no more are kept: remove it, or take another",
				name, len(alias.Versions))
		}
		alias.Versions = append(alias.Versions, Version{Digest: digest, By: author, Time: time.Now().UTC().Truncate(time.Second)})
		err = m.writeName(ctx, alias, sequence)
		if err == nil {
			return len(alias.Versions), nil
		}
		if !errors.Is(err, errTaken) || collisions >= maxCollisions || ctx.Err() != nil {
			return 0, err
		}
	}
}

// maxCollisions bounds how often PutVersion reads a name again because others wrote it at the same time.
const maxCollisions = 100

// writeName stores a name if the last message on its subject has the given sequence, or if the sequence is 0 and there
// is none. Otherwise the error wraps errTaken.
func (m *Models) writeName(ctx context.Context, alias Alias, sequence uint64) error {
	data, err := json.Marshal(&alias)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	return m.log.putAfter(ctx, alias.Owner, &nats.Msg{Subject: alias.Subject(), Data: data}, sequence)
}

// RestoreName stores a name with the versions in data, the JSON that a name's message has. If the name exists already,
// it stays as it is, and existed is true.
func (m *Models) RestoreName(ctx context.Context, owner, name string, data []byte) (existed bool, err error) {
	alias := Alias{Owner: owner, Name: name}
	if err := alias.parseVersions(data); err != nil {
		return false, err
	}
	err = m.writeName(ctx, alias, 0) // 0: nothing may be stored under the name
	if errors.Is(err, errTaken) {
		return true, nil
	}
	return false, err
}
