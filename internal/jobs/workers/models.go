package workers

// The networks of models. Networks are remembered, so that each is built once: that of a registered model, which jobs
// name by its digest, and that of a model in a request that comes again, byte for byte.

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

// prepareNetwork returns the stored network of a request's model, and the request's queries, which it checks. It takes
// the network from what is remembered for an owner, "" for everybody, or builds it. The request m was decoded from
// payload. isRepeated says that the message was delivered before. The earlier attempt may have failed because the
// network is lost, so the server is asked whether a remembered network is still stored. If the network is built from a
// model in m, prepareNetwork removes the model from m.
func (w *Reparam) prepareNetwork(
	ctx context.Context, owner string, m *wire.Request, payload []byte, isRepeated bool,
) (network cached.Network, queries []query.Query, err error) {
	if questions.Intervenes(m.Queries) {
		return w.buildIntervened(ctx, owner, m, len(payload))
	}
	if m.ModelDigest != "" {
		network, err = w.registeredNetwork(ctx, owner, m, isRepeated)
		if err == nil {
			queries, err = stage.Queries(network.Domains, labelsOf(network), m.Queries)
		}
		return network, queries, err
	}

	return w.inlineNetwork(ctx, owner, m, payload, isRepeated)
}

// inlineNetwork is prepareNetwork for a request that carries its model.
func (w *Reparam) inlineNetwork(
	ctx context.Context, owner string, m *wire.Request, payload []byte, isRepeated bool,
) (network cached.Network, queries []query.Query, err error) {
	key, hasModel := inlineKeyOf(owner, m, payload)
	if remembered, ok := w.host.inlineNetworks.Get(key); ok && hasModel {
		isStored, err := w.isStored(ctx, remembered.Blob, isRepeated)
		if err != nil {
			return remembered, nil, err
		}
		if isStored {
			queries, err = stage.Queries(remembered.Domains, labelsOf(remembered), m.Queries)
			return remembered, queries, err
		}
	}

	// The network is not remembered, or is lost: build it.
	model, err := readModel(m.Model, m.Text, len(payload))
	if err != nil {
		return network, nil, fault.Wrap(fault.BadInput, err)
	}
	if queries, err = stage.Queries(model.Domains, model.Labels, m.Queries); err != nil {
		return network, nil, err
	}

	m.Model, m.Text = nil, "" // so that the memory of a large request is free
	network, err = w.buildNetwork(ctx, owner, model, m.Settings, m.Queries)
	if err == nil && hasModel {
		size := len(network.Domains) + len(network.Names)/bytesPerVariable // in variables, as the bound of inlineNetworks
		w.host.inlineNetworks.Add(key, network, int64(size))
	}
	return network, queries, err
}

// buildIntervened is prepareNetwork for queries that set variables. It builds the network of a changed model, which has
// switches at those variables, and does not remember it. A registered model is looked up under the owner of the job,
// while owner is that of what is remembered.
func (w *Reparam) buildIntervened(
	ctx context.Context, owner string, m *wire.Request, payloadBytes int,
) (network cached.Network, queries []query.Query, err error) {
	var model *factorgraph.Model
	if m.ModelDigest != "" {
		model, err = w.readRegistered(ctx, message.Owner(m.Job), m.ModelDigest)
	} else {
		model, err = readModel(m.Model, m.Text, payloadBytes)
		err = fault.Wrap(fault.BadInput, err)
	}
	if err != nil {
		return network, nil, err
	}
	if queries, err = stage.Queries(model.Domains, model.Labels, m.Queries); err != nil {
		return network, nil, err
	}
	if model, queries, err = questions.Intervene(model, queries); err != nil {
		return network, nil, err
	}
	network, err = w.buildNetwork(ctx, owner, model, m.Settings, queries)
	return network, queries, err
}

// labelsOf returns a function that decodes the labels of a network's model.
func labelsOf(network cached.Network) func() (*factorgraph.Labels, error) {
	return func() (*factorgraph.Labels, error) { return message.DecodeLabels(network.Names, network.Domains) }
}

// registeredNetwork returns the network of a registered model. It takes the network from the cache if it is there and
// still stored, and builds it otherwise. owner is the owner of the cache's entry; the model is looked up under the owner
// of the job.
func (w *Reparam) registeredNetwork(
	ctx context.Context, owner string, m *wire.Request, isRepeated bool,
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
		network, err := w.buildNetwork(ctx, owner, model, m.Settings, m.Queries)
		return network.Encode(), err
	}

	encoded, isHit, err := w.host.Cache.GetOrCompute(ctx, key, compute)
	network, ok := cached.DecodeNetwork(encoded)
	isUsable := ok
	if err == nil && ok && isHit { // the blob may be gone although the cache has its digest
		isUsable, err = w.isStored(ctx, network.Blob, isRepeated)
	}
	if err != nil || isUsable {
		return network, err
	}

	// The remembered network is lost or cannot be decoded: build it again.
	w.host.Cache.Forget(ctx, key)
	if encoded, err = compute(ctx); err == nil {
		network, _ = cached.DecodeNetwork(encoded) // it was encoded just now
		w.host.Cache.Put(ctx, key, encoded)
	}
	return network, err
}

// readRegistered reads a registered model. If there is none under the digest, or it cannot be read, the error has the
// code bad input: the request is at fault.
func (w *Reparam) readRegistered(ctx context.Context, owner, digest string) (*factorgraph.Model, error) {
	data, err := w.Bus.Models.Get(ctx, owner, digest)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, fault.New(
			fault.BadInput, "pipeline: no model is registered under the digest %s", digest,
		)
	case errors.Is(err, bus.ErrDigest):
		// fault.Wrap would keep the code of err, by which the message would be tried again.
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

// readModel returns the factor graph of a message: that of body, or of text if body is nil. messageBytes is the size of
// the message, which bounds the number of values of the variables.
func readModel(body *wire.Model, text string, messageBytes int) (*factorgraph.Model, error) {
	if body == nil {
		return formats.Read(strings.NewReader(text), "", "", uai.Limits{})
	}
	model, err := body.Decode()
	if err != nil {
		return nil, err
	}
	if values, limit := model.Values(int64(messageBytes)); values > limit {
		return nil, fault.New(
			fault.BadInput, "pipeline: the variables have %d values together, at most the message's bytes and 2^20: %d", values, limit,
		)
	}
	return model, model.Validate()
}

// buildNetwork makes a model's network for some queries and stores it as a blob.
func (w *Reparam) buildNetwork(
	ctx context.Context, owner string, model *factorgraph.Model, settings query.Settings, queries []query.Query,
) (cached.Network, error) {
	domains := model.Domains // the model itself is not kept
	names, err := message.EncodeNames(model)
	if err != nil {
		return cached.Network{}, fault.Wrap(fault.Internal, err)
	}
	net, err := stage.ReparameteriseFor(ctx, model, settings, queries)
	if err != nil {
		return cached.Network{}, err
	}

	// Store the network.
	blob, err := message.EncodeNetworkOf(owner, net)
	if err != nil {
		return cached.Network{}, fault.Wrap(fault.Internal, err)
	}
	var digest string
	err = w.WaitForRoom(ctx, func() (err error) {
		digest, err = w.Bus.Blobs.Put(ctx, blob)
		return err
	})
	if err == nil && w.host.hasLearner { // so that the learn-worker of this process need not decode it
		w.host.networks.values.Add(digest, net, int64(len(blob)))
	}
	return cached.Network{Blob: digest, Domains: domains, Names: names}, err
}

// Bounds of inlineNetworks.
const (
	inlineEntries    = 256     // networks
	inlineVariables  = 1 << 20 // variables of all networks; a variable counts as a byte of the cache's bound
	bytesPerVariable = 16      // bytes of names that count as a variable
)

// inlineNetworks remembers the networks of the models that requests carried last.
type inlineNetworks = memo.LRU[inlineKey, cached.Network]

// inlineKey identifies a network by its owner and all that it depends on.
type inlineKey struct {
	owner      string            // "": everybody
	model      [sha256.Size]byte // a hash of the model's bytes in the message
	isText     bool              // the model is the text of a file
	settings   query.Settings
	parametric bool // the network has every factor as a core
}

// inlineKeyOf returns the key of the model in a request. The request was decoded from payload. ok is false if the
// payload has no model.
func inlineKeyOf(owner string, m *wire.Request, payload []byte) (key inlineKey, ok bool) {
	key = inlineKey{owner: owner, isText: m.Model == nil, settings: m.Settings.WithDefaults(), parametric: stage.AreParametric(m.Queries)}

	model := []byte(m.Text)
	if !key.isText {
		model = codec.Part(payload, "model")
	}

	key.model = sha256.Sum256(model)
	return key, len(model) > 0
}

// storedBlobs remembers when the blobs of networks were found stored, because looking for a blob fetches all of it.
type storedBlobs = memo.LRU[string, time.Time]

const (
	// recheckAfter is the time for which a blob that was found is believed to be stored. It is short against the time for which blobs are
	// kept, and long against the time between two jobs of a busy model.
	recheckAfter = time.Second
	// storedEntries bounds the number of remembered blobs.
	storedEntries = 1024
)

// isStored reports whether a blob is stored, and will be for as long as a job that begins now may need it. If mustAsk
// is set it asks the server even if the blob was found a moment ago.
func (w *Reparam) isStored(ctx context.Context, blob string, mustAsk bool) (bool, error) {
	foundAt, wasFound := w.host.storedBlobs.Get(blob)
	isBelieved := wasFound && time.Since(foundAt) < recheckAfter
	if isBelieved && !mustAsk {
		return true, nil
	}
	began := time.Now()
	isStored, err := w.Bus.Blobs.HasAndRenew(ctx, blob)
	if isStored && err == nil {
		w.host.storedBlobs.Put(blob, began, 1)
	}
	return isStored, err
}
