package client

// Registered models: stored once under their digest, named by it in requests.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// RegisteredModel describes the model registered under a digest.
type RegisteredModel struct {
	Owner  string // the tenant whose it is; "": everybody's
	Digest string
	Bytes  uint64    // of the registered message
	Time   time.Time // since when
}

// PutModel registers a model and returns its digest, for ModelDigest in requests. Registering it
// again changes nothing. It stays until RemoveModel. The error wraps ErrFull if there is no room
// for it.
func (c *Client) PutModel(ctx context.Context, g *wire.Graph) (digest string, err error) {
	b, _, err := wire.EncodeGraph(g)
	if err != nil {
		return "", err
	}
	return c.bus.Models.Put(ctx, c.bus.Conn.Tenant(), b)
}

// Model returns a registered model. The error wraps ErrNotFound if there is none.
func (c *Client) Model(ctx context.Context, digest string) (*wire.Graph, error) {
	if err := checkModel(digest); err != nil {
		return nil, err
	}
	b, err := c.bus.Models.Get(ctx, c.bus.Conn.Tenant(), digest)
	if err != nil {
		return nil, explainNotFound(digest, err)
	}
	var g wire.Graph
	if err := wire.Decode(b, &g); err != nil {
		return nil, fmt.Errorf("client: registered model %s: %w", digest, err)
	}
	return &g, nil
}

// Registered is what is registered: models, versions of names, and messages that are neither.
type Registered struct {
	Models   []RegisteredModel // oldest first
	Versions []ModelVersion    // of all names, by name
	Skipped  []Skipped         // cannot be read: an operator removes them by RemoveRegistered
}

// Skipped is a stored message that cannot be read as what its subject says.
type Skipped = bus.Skipped

// Registered lists what is registered. It fetches every model that is no object. A message that cannot be read is in Skipped, and
// stops nothing.
func (c *Client) Registered(ctx context.Context) (r Registered, err error) {
	list, err := c.bus.Models.List(ctx)
	if err != nil {
		return r, err
	}
	r.Skipped = list.Skipped
	for _, s := range list.Models {
		r.Models = append(r.Models, RegisteredModel(s))
	}
	for _, a := range list.Names {
		for i := range a.Versions {
			r.Versions = append(r.Versions, versionOf(a, i+1))
		}
	}
	return r, nil
}

// StatModel describes the model registered under a digest. The error wraps ErrNotFound if there is none.
func (c *Client) StatModel(ctx context.Context, digest string) (RegisteredModel, error) {
	if err := checkModel(digest); err != nil {
		return RegisteredModel{}, err
	}
	s, err := c.bus.Models.Describe(ctx, digest)
	return RegisteredModel(s), explainNotFound(digest, err)
}

// RemoveModel removes a registered model. Jobs that name it and are not under way fail, once
// workers do not remember it: for as long as they do they answer. The error wraps ErrNotFound if
// there is none.
func (c *Client) RemoveModel(ctx context.Context, digest string) error {
	if err := checkModel(digest); err != nil {
		return err
	}
	return explainNotFound(digest, c.bus.Models.Remove(ctx, "", digest))
}

// RemoveRegistered removes what FindModel finds: a name, which goes with all its versions and leaves the models, or a model. A tenant's
// is OWNER.NAME or OWNER.DIGEST. It need not be readable. It returns what it removed; the error wraps ErrNotFound if there is nothing.
func (c *Client) RemoveRegistered(ctx context.Context, ref string) (removed ModelVersion, err error) {
	if owner, name, hasOwner := strings.Cut(ref, "."); hasOwner {
		return c.removeStored(ctx, owner, name)
	}
	removed, err = c.FindModel(ctx, ref)
	switch {
	case errors.Is(err, bus.ErrName): // its versions cannot be read
		return c.removeStored(ctx, "", ref)
	case err != nil:
		return removed, err
	case removed.Name == "":
		return removed, c.RemoveModel(ctx, removed.Digest)
	case removed.Name != ref:
		return removed, fault.New(fault.BadInput,
			"%s: a version cannot be removed alone: remove the name %s, or the model %s", ref, removed.Name, removed.Digest)
	}
	return c.removeStored(ctx, "", ref)
}

// removeStored removes what is stored under an owner's name or digest, whether or not it can be read.
func (c *Client) removeStored(ctx context.Context, owner, name string) (removed ModelVersion, err error) {
	if !form.IsToken(name) || owner != "" && !form.IsToken(owner) {
		return removed, fault.New(
			fault.BadInput, "client: %.80q of %.80q is neither a name nor a digest of a registered model", name, owner)
	}
	removed = ModelVersion{Owner: owner, Name: name}
	if form.IsDigest(name) {
		removed = ModelVersion{Owner: owner, Digest: name}
	}
	err = c.bus.Models.Remove(ctx, owner, name)
	if errors.Is(err, ErrNotFound) {
		err = fault.New(fault.BadInput, "client: nothing is registered under %s: %w", name, ErrNotFound)
	}
	return removed, err
}

// checkModel returns an error unless a text has the form of a digest.
func checkModel(digest string) error {
	if !form.IsDigest(digest) {
		return fault.New(
			fault.BadInput, "client: model digest %.80q is not 64 lower-case hexadecimal digits",
			digest,
		)
	}
	return nil
}

// explainNotFound returns an error with the code bad_input in place of ErrNotFound, and any other error as it is.
func explainNotFound(digest string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(
			fault.BadInput, "client: no model is registered under the digest %s: %w", digest,
			ErrNotFound,
		)
	}
	return err
}
