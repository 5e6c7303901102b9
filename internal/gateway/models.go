package gateway

// Models: what comes with a request, and what is registered.

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// known is what queries on a model need to know of it.
type known struct {
	domains []int
	labels  *factorgraph.Labels
}

// modelOf finds the model of a request, and writes into the request what travels of it.
func (c *call) modelOf(ctx context.Context, in *Infer, request *wire.Request) (known, error) {
	given := 0
	for _, has := range []bool{in.Model != nil, in.Text != "", in.ModelName != ""} {
		if has {
			given++
		}
	}
	if given != 1 {
		return known{}, bad("exactly one of model, text and model_name is needed, not %d of them", given)
	}
	if in.Format != "" && in.Text == "" {
		return known{}, bad("format is that of text, which is not given")
	}
	if in.ModelName != "" {
		digest, of, err := c.registered(ctx, in.ModelName)
		request.ModelDigest = digest
		return of, err
	}

	field, text, format := "model", []byte(in.Model), "json"
	if in.Text != "" {
		field, text, format = "text", []byte(in.Text), in.Format
	}
	m, err := parse(text, format)
	if err != nil {
		return known{}, bad("%s: %w", field, err)
	}
	of, err := wire.NewRequest(m)
	if err != nil {
		return known{}, err
	}
	request.Model = of.Model
	return knownOf(m)
}

// knownOf returns what queries need to know of a model.
func knownOf(m *factorgraph.Model) (known, error) {
	l, err := m.Labels()
	if err != nil {
		return known{}, bad("model: %w", err)
	}
	return known{m.Domains, l}, nil
}

// parse reads a model file and checks it.
func parse(text []byte, format string) (m *factorgraph.Model, err error) {
	if format == "" {
		format = "uai"
		if strings.HasPrefix(strings.TrimSpace(string(text[:min(len(text), 256)])), "{") {
			format = "json"
		}
	}
	switch format {
	case "json":
		m, err = modeljson.Decode(bytes.NewReader(text), modeljson.Limits{})
	case "uai":
		m, err = uai.Read(bytes.NewReader(text), uai.Limits{})
	default:
		return nil, bad("format %.40q is none of uai, json", format)
	}
	if err == nil {
		err = m.Validate()
	}
	return m, err
}

// fewestDigits is how many digits of a digest name a model at least.
const fewestDigits = 6

// registered finds a registered model by its digest or the beginning of that.
func (c *call) registered(ctx context.Context, name string) (digest string, of known, err error) {
	own, err := c.client()
	if err != nil {
		return "", known{}, err
	}
	name = strings.TrimPrefix(name, "digest:")
	if digest, err = c.digestOf(ctx, name); err != nil {
		return "", known{}, err
	}
	if of, ok := c.g.known.of(c.who.Tenant + "." + digest); ok {
		return digest, of, nil
	}
	m, err := fetch(ctx, own, digest)
	if err != nil {
		return "", known{}, err
	}
	if of, err = knownOf(m); err == nil {
		c.g.known.put(c.who.Tenant+"."+digest, of)
	}
	return digest, of, err
}

// digestOf returns the digest of which name is the beginning.
func (c *call) digestOf(ctx context.Context, name string) (string, error) {
	if len(name) == 64 {
		return name, nil
	}
	if len(name) < fewestDigits || strings.Trim(name, "0123456789abcdef") != "" {
		return "", notFound("no model is called %.80q: a name is a digest, or the first %d digits of one at least", name, fewestDigits)
	}
	all, err := c.g.own.Models(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, m := range all {
		if m.Owner != "" && m.Owner != c.who.Tenant || !strings.HasPrefix(m.Digest, name) || m.Digest == found {
			continue
		}
		if found != "" {
			return "", bad("%s begins the digests of several models: %.16s… and %.16s…", name, found, m.Digest)
		}
		found = m.Digest
	}
	if found == "" {
		return "", notFound("no model's digest begins with %s", name)
	}
	return found, nil
}

// fetch reads a registered model.
func fetch(ctx context.Context, own *client.Client, digest string) (*factorgraph.Model, error) {
	g, err := own.Model(ctx, digest)
	if err != nil {
		if errors.Is(err, client.ErrNotFound) {
			return nil, notFound("%w", err)
		}
		return nil, err
	}
	if g.Model == nil {
		return parse([]byte(g.UAI), "uai")
	}
	m, err := g.Model.Decode()
	if err == nil {
		err = m.Validate()
	}
	return m, fault.Wrap(fault.Internal, err)
}

// memory remembers what is known of registered models: a digest never means another one.
type memory struct {
	mu  sync.Mutex
	all map[string]known
}

// mostKnown is how many models are remembered.
const mostKnown = 256

func (m *memory) of(name string) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.all[name]
	return k, ok
}

// put remembers one, and forgets any where there are too many.
func (m *memory) put(name string, k known) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]known{}
	}
	for old := range m.all {
		if len(m.all) < mostKnown {
			break
		}
		delete(m.all, old)
	}
	m.all[name] = k
}
