package workers

// Networks of models. Registered models: a job that names its model by digest does not build the network again where it
// is known.
//
// Models that requests carry themselves: one that comes again, byte for byte, is not read and built
// again.

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// prepare returns the stored network of a request's model, which it builds or
// remembers for an owner or everybody (""), and the request's queries, checked. The request was decoded from payload. For a
// repeated delivery, which may have failed for lack of the network, it looks whether a remembered
// one is still stored.
func (w *Reparam) prepareNetwork(
	ctx context.Context, owner string, m *wire.Request, payload []byte, repeated bool,
) (p cached.Network, queries []query.Query, err error) {
	if questions.Intervenes(m.Queries) {
		return w.buildIntervened(ctx, owner, m, len(payload))
	}
	if m.ModelDigest != "" {
		p, err = w.registeredNetwork(ctx, owner, m, repeated)
		if err == nil {
			queries, err = stage.Queries(p.Domains, labelsOf(p), m.Queries)
		}
		return p, queries, err
	}

	key, named := inlineKeyOf(owner, m, payload)
	if p, ok := w.host.inlineNetworks.Get(key); ok && named {
		there, err := w.isStored(ctx, p.Blob, repeated)
		if err != nil {
			return p, nil, err
		}
		if there {
			queries, err = stage.Queries(p.Domains, labelsOf(p), m.Queries)
			return p, queries, err
		}
	}

	model, err := readModel(m.Model, m.Text, len(payload))
	if err != nil {
		return p, nil, fault.Wrap(fault.BadInput, err)
	}
	if queries, err = stage.Queries(model.Domains, model.Labels, m.Queries); err != nil {
		return p, nil, err
	}

	// A large model is not needed any more.
	m.Model = nil
	m.Text = ""
	p, err = w.buildNetwork(ctx, owner, model, m.Settings, m.Queries)
	if err == nil && named {
		w.host.inlineNetworks.Add(key, p, int64(len(p.Domains)+len(p.Names)/bytesPerVariable))
	}
	return p, queries, err
}

// intervened is prepare for queries that set variables: the network is that of the model with their switches, and it is not remembered.
func (w *Reparam) buildIntervened(
	ctx context.Context, owner string, m *wire.Request, payload int,
) (p cached.Network, queries []query.Query, err error) {
	var model *factorgraph.Model
	if m.ModelDigest != "" {
		model, err = w.readRegistered(ctx, message.Owner(m.Job), m.ModelDigest)
	} else {
		model, err = readModel(m.Model, m.Text, payload)
		err = fault.Wrap(fault.BadInput, err)
	}
	if err != nil {
		return p, nil, err
	}
	if queries, err = stage.Queries(model.Domains, model.Labels, m.Queries); err != nil {
		return p, nil, err
	}
	if model, queries, err = questions.Intervene(model, queries); err != nil {
		return p, nil, err
	}
	p, err = w.buildNetwork(ctx, owner, model, m.Settings, queries)
	return p, queries, err
}

// labelsOf returns the function that makes the labels of a model whose network is known.
func labelsOf(p cached.Network) func() (*factorgraph.Labels, error) {
	return func() (*factorgraph.Labels, error) { return message.DecodeLabels(p.Names, p.Domains) }
}

// remember returns the network of a registered model: from the cache, if the network is still
// stored.
func (w *Reparam) registeredNetwork(
	ctx context.Context, owner string, m *wire.Request, repeated bool,
) (cached.Network, error) {
	key, err := cached.NetworkKey(owner, m)
	if err != nil {
		return cached.Network{}, err
	}

	compute := func(ctx context.Context) ([]byte, error) {
		model, err := w.readRegistered(ctx, message.Owner(m.Job), m.ModelDigest)
		if err != nil {
			return nil, err
		}
		p, err := w.buildNetwork(ctx, owner, model, m.Settings, m.Queries)
		return p.Encode(), err
	}

	b, hit, err := w.host.Cache.GetOrCompute(ctx, key, compute)
	p, ok := cached.DecodeNetwork(b)
	if err == nil && ok && hit { // the cache outlives blobs: a network that is not stored any more is built again
		ok, err = w.isStored(ctx, p.Blob, repeated)
	}
	if err != nil || ok {
		return p, err
	}

	w.host.Cache.Forget(ctx, key)
	if b, err = compute(ctx); err == nil {
		p, _ = cached.DecodeNetwork(b)
		w.host.Cache.Put(ctx, key, b)
	}
	return p, err
}

// registered reads a registered model. A digest without a model, or with one that cannot be read,
// is bad input of the request.
func (w *Reparam) readRegistered(ctx context.Context, owner, digest string) (*factorgraph.Model, error) {
	data, err := w.Bus.Models.Get(ctx, owner, digest)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, fault.New(
			fault.BadInput, "pipeline: no model is registered under the digest %s", digest,
		)
	case errors.Is(err, bus.ErrDigest):
		// not fault.Wrap, which keeps the code of err: it will not pass
		return nil, &fault.Error{Code: fault.BadInput, Err: err}
	case errors.Is(err, bus.ErrLost):
		return nil, fault.New(
			fault.BadInput,
			"pipeline: the model registered under the digest %s is to be registered again: %w",
			digest, err,
		)
	case err != nil:
		return nil, err
	}

	var g wire.Graph
	if err = wire.Decode(data, &g); err == nil {
		var model *factorgraph.Model
		if model, err = readModel(g.Model, g.Text, len(data)); err == nil {
			return model, nil
		}
	}
	return nil, fault.Wrap(fault.BadInput, fmt.Errorf("registered model %s: %w", digest, err))
}

// readModel returns the factor graph in a message of so many bytes: its body, or its text.
func readModel(body *wire.Model, text string, bytes int) (*factorgraph.Model, error) {
	if body == nil {
		return formats.Read(strings.NewReader(text), "", "", uai.Limits{})
	}
	model, err := body.Decode()
	if err != nil {
		return nil, err
	}
	if all, most := model.Values(int64(bytes)); all > most {
		return nil, fault.New(
			fault.BadInput, "pipeline: the variables have %d values together, at most the message's bytes and 2^20: %d", all, most,
		)
	}
	return model, model.Validate()
}

// build makes a model's network for some queries and stores it as a blob.
func (w *Reparam) buildNetwork(
	ctx context.Context, owner string, model *factorgraph.Model, s query.Settings, queries []query.Query,
) (cached.Network, error) {
	domains := model.Domains // the model itself is not kept
	names, err := message.EncodeNames(model)
	if err != nil {
		return cached.Network{}, fault.Wrap(fault.Internal, err)
	}
	net, err := stage.ReparameteriseFor(ctx, model, s, queries)
	if err != nil {
		return cached.Network{}, err
	}

	blob, err := message.EncodeNetworkOf(owner, net)
	if err != nil {
		return cached.Network{}, fault.Wrap(fault.Internal, err)
	}

	var name string
	err = w.WithRoom(ctx, func() (err error) {
		name, err = w.Bus.Blobs.Put(ctx, blob)
		return err
	})
	if err == nil && w.host.hasLearner {
		w.host.networks.values.Add(name, net, int64(len(blob)))
	}
	return cached.Network{Blob: name, Domains: domains, Names: names}, err
}

// Bounds of the networks that are remembered: their number, and the sum of their variables.
const (
	inlineEntries   = 256
	inlineVariables = 1 << 20
)

// bytesPerVariable is the number of bytes of names that count as a variable in the bound of
// remembered networks.
const bytesPerVariable = 16

// inline remembers the networks of the models that requests carried last; a variable counts as a
// byte of its bound.
type inlineNetworks = memo.LRU[inlineKey, cached.Network]

// inlineKey identifies a network by whose it is and all it depends on: the bytes of the model in the message, and the settings.
type inlineKey struct {
	owner    string // "": everybody's
	model    [sha256.Size]byte
	text     bool // the model is the text of a file
	settings query.Settings
	// parametric networks have every factor as a core
	parametric bool
}

// keyOf returns the key of a request that carries its model, where payload is the message that it
// was read from. It returns false if the payload has no model.
func inlineKeyOf(owner string, m *wire.Request, payload []byte) (inlineKey, bool) {
	k := inlineKey{owner: owner, text: m.Model == nil, settings: m.Settings.WithDefaults(), parametric: stage.AreParametric(m.Queries)}

	model := []byte(m.Text)
	if !k.text {
		model = codec.Part(payload, "model")
	}

	k.model = sha256.Sum256(model)
	return k, len(model) > 0
}

// storedBlobs remembers when networks were found stored: one that was just found is not looked for again, because looking fetches all of
// it.
type storedBlobs = memo.LRU[string, time.Time]

// storedFor is short against the time for which blobs are kept, and long against the time between
// two jobs of a busy model. keepStored bounds the number of remembered networks.
const (
	recheckAfter  = time.Second
	storedEntries = 1024
)

// there reports whether the blob is stored, and will be for as long as a job that begins now may
// need it; look: ask the server in any case.
func (w *Reparam) isStored(ctx context.Context, blob string, look bool) (bool, error) {
	if found, ok := w.host.storedBlobs.Get(blob); ok && !look && time.Since(found) < recheckAfter {
		return true, nil
	}
	began := time.Now()
	there, err := w.Bus.Blobs.Has(ctx, blob)
	if there && err == nil {
		w.host.storedBlobs.Put(blob, began, 1)
	}
	return there, err
}
