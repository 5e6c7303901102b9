package pipeline

// Registered models: a job that names its model by digest does not build the network anew where it is known.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// networkVersion is part of every key of a network. It changes whenever the same model and settings may give another
// network, or the same network other bytes.
const networkVersion = "1"

// prepared is what reparam-worker needs of a model to pass its queries on.
type prepared struct {
	blob    string // digest of the network's bytes
	domains []int
}

// prepare makes the network of a request's model, or remembers it, and returns its digest with the request's queries, checked.
// The request was read from message. A repeated delivery takes nothing for granted.
func (w *worker) prepare(ctx context.Context, m *wire.Model, payload []byte, repeated bool) (blob string, queries []query.Query, err error) {
	if m.ModelDigest != "" {
		p, err := w.remember(ctx, m, repeated)
		if err == nil {
			queries, err = query.Read(p.domains, m.Queries)
		}
		return p.blob, queries, err
	}
	key, named := keyOf(m, payload)
	if p, ok := w.inline.Get(key); ok && named {
		there, err := w.sure.there(ctx, w.bus, p.blob, repeated)
		if err != nil {
			return "", nil, err
		}
		if there {
			queries, err = query.Read(p.domains, m.Queries)
			return p.blob, queries, err
		}
	}
	model, err := readModel(m.Model, m.UAI)
	if err != nil {
		return "", nil, fault.Wrap(fault.BadInput, err)
	}
	if queries, err = query.Read(model.Domains, m.Queries); err != nil {
		return "", nil, err
	}
	m.Model, m.UAI = nil, "" // a large one is needed once
	p, err := w.build(ctx, model, m.Settings)
	if err == nil && named {
		w.inline.Add(key, p, int64(len(p.domains)))
	}
	return p.blob, queries, err
}

// build makes and stores a model's network.
func (w *worker) build(ctx context.Context, model *factorgraph.Model, s btn.Settings) (prepared, error) {
	domains := model.Domains // all that is kept of it
	net, err := stage.Reparameterise(ctx, model, s)
	if err != nil {
		return prepared{}, err
	}
	blob, err := message.EncodeNetwork(net)
	if err != nil {
		return prepared{}, fault.Wrap(fault.Internal, err)
	}
	var name string
	err = w.withRoom(ctx, func() (err error) { name, err = w.bus.PutBlob(ctx, blob); return err })
	return prepared{name, domains}, err
}

// remember returns the network of a registered model: from the cache, if the network is still stored.
func (w *worker) remember(ctx context.Context, m *wire.Model, repeated bool) (prepared, error) {
	key, err := networkKey(m)
	if err != nil {
		return prepared{}, err
	}
	var built *prepared
	compute := func(ctx context.Context) ([]byte, error) {
		model, err := w.registered(ctx, m.ModelDigest)
		if err != nil {
			return nil, err
		}
		p, err := w.build(ctx, model, m.Settings)
		if err != nil {
			return nil, err
		}
		built = &p
		return p.encode(), nil
	}
	b, _, err := w.cache.GetOrCompute(ctx, key, compute)
	if err != nil || built != nil {
		return deref(built), err
	}
	if p, ok := decodePrepared(b); ok {
		if there, err := w.sure.there(ctx, w.bus, p.blob, repeated); err != nil || there {
			return p, err
		}
	}
	w.cache.Forget(ctx, key)
	if b, err = compute(ctx); err == nil {
		w.cache.Put(ctx, key, b)
	}
	return deref(built), err
}

func deref(p *prepared) prepared {
	if p == nil {
		return prepared{}
	}
	return *p
}

// networkKey is where the cache has a registered model's network: the digest and, hashed, the settings and the arithmetic.
func networkKey(m *wire.Model) (string, error) {
	settings, err := (&wire.Model{Settings: m.Settings}).Digest()
	if err != nil {
		return "", fault.Wrap(fault.BadInput, err)
	}
	return cache.NetworkKey(networkVersion, m.ModelDigest, settings+numericKind()), nil
}

// registered reads a registered model. That there is none, or none that can be read, is the request's fault.
func (w *worker) registered(ctx context.Context, digest string) (*factorgraph.Model, error) {
	data, err := w.bus.GetGraph(ctx, digest)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		return nil, fault.New(fault.BadInput, "pipeline: no model is registered under the digest %s", digest)
	case errors.Is(err, bus.ErrDigest):
		return nil, &fault.Error{Code: fault.BadInput, Err: err} // it does not pass
	case errors.Is(err, bus.ErrLost):
		return nil, fault.New(fault.BadInput, "pipeline: the model registered under the digest %s is to be registered again: %w", digest, err)
	case err != nil:
		return nil, err
	}
	var g wire.Graph
	if err = wire.Decode(data, &g); err == nil {
		var model *factorgraph.Model
		if model, err = readModel(g.Model, g.UAI); err == nil {
			return model, nil
		}
	}
	return nil, fault.Wrap(fault.BadInput, fmt.Errorf("registered model %s: %w", digest, err))
}

// readModel returns the factor graph of a message that has it as a body or as text.
func readModel(body *wire.ModelBody, text string) (*factorgraph.Model, error) {
	if body == nil {
		return uai.Read(strings.NewReader(text), uai.Limits{})
	}
	model, err := body.Decode()
	if err != nil {
		return nil, err
	}
	return model, model.Validate()
}

// encode is p as the cache keeps it: the digest, then the domains as varints.
func (p prepared) encode() []byte {
	b := append(make([]byte, 0, len(p.blob)+2*len(p.domains)), p.blob...)
	for _, d := range p.domains {
		b = binary.AppendUvarint(b, uint64(d))
	}
	return b
}

func decodePrepared(b []byte) (prepared, bool) {
	n := len(wire.Digest(nil))
	if len(b) < n || !wire.ValidDigest(string(b[:n])) {
		return prepared{}, false
	}
	p := prepared{blob: string(b[:n]), domains: make([]int, 0, len(b)-n)}
	for b = b[n:]; len(b) > 0; {
		d, size := binary.Uvarint(b)
		if size <= 0 || d < 1 || d > 1<<31 {
			return prepared{}, false
		}
		p.domains, b = append(p.domains, int(d)), b[size:]
	}
	return p, true
}

// sure remembers for how long a stored network need not be looked for again: looking fetches all of it.
type sure struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// sureFor is short against the life of a blob, and long against the time between two jobs of a busy model. keepSure bounds
// the map.
const (
	sureFor  = time.Second
	keepSure = 1024
)

// there reports whether the blob is stored, and will be for as long as a job that begins now may need it.
func (s *sure) there(ctx context.Context, b *bus.Bus, blob string, look bool) (bool, error) {
	s.mu.Lock()
	until := s.until[blob]
	s.mu.Unlock()
	if !look && now().Before(until) {
		return true, nil
	}
	began := now()
	there, err := b.HasBlob(ctx, blob)
	if err != nil || !there {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil || len(s.until) >= keepSure {
		s.until = map[string]time.Time{}
	}
	s.until[blob] = began.Add(sureFor)
	return true, nil
}
