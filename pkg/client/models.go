package client

// Registered models: stored once under their digest, named by it in requests.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/network/form"
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
	return c.bus.PutGraph(ctx, b)
}

// Model returns a registered model. The error wraps ErrNotFound if there is none.
func (c *Client) Model(ctx context.Context, digest string) (*wire.Graph, error) {
	if err := checkModel(digest); err != nil {
		return nil, err
	}
	b, err := c.bus.GetGraph(ctx, c.bus.Owner(), digest)
	if err != nil {
		return nil, unregistered(digest, err)
	}
	var g wire.Graph
	if err := wire.Decode(b, &g); err != nil {
		return nil, fmt.Errorf("client: registered model %s: %w", digest, err)
	}
	return &g, nil
}

// Models lists the registered models, oldest first.
func (c *Client) Models(ctx context.Context) ([]RegisteredModel, error) {
	stored, err := c.bus.Graphs(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]RegisteredModel, len(stored))
	for i, s := range stored {
		list[i] = RegisteredModel(s)
	}
	return list, nil
}

// StatModel describes the model registered under a digest. The error wraps ErrNotFound if there is none.
func (c *Client) StatModel(ctx context.Context, digest string) (RegisteredModel, error) {
	if err := checkModel(digest); err != nil {
		return RegisteredModel{}, err
	}
	s, err := c.bus.Graph(ctx, digest)
	return RegisteredModel(s), unregistered(digest, err)
}

// RemoveModel removes a registered model. Jobs that name it and are not under way fail, once
// workers do not remember it: for as long as they do they answer. The error wraps ErrNotFound if
// there is none.
func (c *Client) RemoveModel(ctx context.Context, digest string) error {
	if err := checkModel(digest); err != nil {
		return err
	}
	return unregistered(digest, c.bus.RemoveGraph(ctx, digest))
}

func checkModel(digest string) error {
	if !form.IsDigest(digest) {
		return fault.New(
			fault.BadInput, "client: model digest %.80q is not 64 lower-case hexadecimal digits",
			digest,
		)
	}
	return nil
}

func unregistered(digest string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fault.New(
			fault.BadInput, "client: no model is registered under the digest %s: %w", digest,
			ErrNotFound,
		)
	}
	return err
}
