package gateway

// Models: sent with a request, or registered.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// modelOf finds the model of a request, writes into the request the parts of it that travel, and
// returns the names of its variables.
func (c *call) modelOf(ctx context.Context, in *Infer, request *wire.Request) (*factorgraph.Labels, error) {
	given := 0
	for _, has := range []bool{in.Model != nil, in.Text != "", in.ModelName != ""} {
		if has {
			given++
		}
	}
	if given != 1 {
		return nil, bad("exactly one of model, text and model_name is needed, not %d of them", given)
	}
	if in.Format != "" && in.Text == "" {
		return nil, bad("format belongs to text, which is not given")
	}
	if in.ModelName != "" {
		return c.registered(ctx, in.ModelName, request)
	}

	field, text, format := "model", []byte(in.Model), string(formats.JSON)
	if in.Text != "" {
		field, text, format = "text", []byte(in.Text), in.Format
	}
	m, err := parse(text, format, c.g.limits.Body)
	if err != nil {
		return nil, bad("%s: %w", field, err)
	}
	of, err := wire.NewRequest(m)
	if err != nil {
		return nil, err
	}
	request.Model = of.Model
	c.model = fmt.Sprintf("%d variables", len(m.Domains))
	return m.Labels()
}

// parse reads a model file of so many bytes at most, decompressed, and checks it; 0 is as many as are read anywhere. For "" the text shows
// the format.
func parse(text []byte, format string, most int64) (*factorgraph.Model, error) {
	var as formats.Format
	if format != "" {
		var err error
		if as, err = formats.Parse(format); err != nil {
			return nil, err
		}
	}
	return formats.Read(bytes.NewReader(text), as, "", uai.Limits{Bytes: most})
}

// Bounds of the memory of registered models, which never change.
const (
	mostKnown  = 256
	knownBytes = 64 << 20
)

// registered finds a registered model, and names it in the request.
func (c *call) registered(ctx context.Context, name string, request *wire.Request) (*factorgraph.Labels, error) {
	digest, err := c.digestOf(ctx, name)
	if err != nil {
		return nil, err
	}
	request.ModelDigest, c.model = digest, digest
	key := c.who.Tenant + "." + digest
	if l, ok := c.g.known.Get(key); ok {
		return l, nil
	}
	m, err := c.fetch(ctx, c.who.Tenant, digest)
	if err != nil {
		return nil, err
	}
	l, err := m.Labels()
	if err != nil {
		return nil, err
	}
	return c.g.known.Add(key, l, labelBytes(m)), nil
}

// labelBytes estimates the memory of the labels of a model.
func labelBytes(m *factorgraph.Model) int64 {
	n := int64(8 * len(m.Domains))
	for _, name := range slices.Concat(m.Names, m.Aliases) {
		n += 64 + int64(len(name))
	}
	for _, of := range m.States {
		for _, state := range of {
			n += 64 + int64(len(state))
		}
	}
	return n
}

// fewestDigits is the minimum number of digits of a digest that name a model.
const fewestDigits = 6

// digestOf returns the digest of a model: by its name, alarm or alarm@3, its digest, or the beginning of that.
func (c *call) digestOf(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "digest:")
	if len(name) < fewestDigits || strings.Trim(name, "0123456789abcdef") != "" || len(name) == 64 {
		return c.named(ctx, name)
	}
	if digest, err := c.named(ctx, name); err == nil {
		return digest, nil
	}
	all, err := c.models(ctx)
	if err != nil {
		return "", err
	}
	found := ""
	for _, m := range all.Models {
		if !strings.HasPrefix(m.Digest, name) || m.Digest == found {
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

// named finds a model by its name or its whole digest.
func (c *call) named(ctx context.Context, name string) (string, error) {
	own, err := c.client()
	if err != nil {
		return "", err
	}
	v, err := own.FindModel(ctx, name)
	return v.Digest, err
}

// models lists the registered models that the caller may name.
func (c *call) models(ctx context.Context) (client.Registered, error) {
	all, err := c.g.own.Registered(ctx)
	all.Models = slices.DeleteFunc(all.Models, func(m client.RegisteredModel) bool {
		return m.Owner != "" && m.Owner != c.who.Tenant && c.who.Tenant != ""
	})
	if c.who.Tenant != "" {
		all.Skipped = nil
	}
	return all, err
}

// fetch reads a model that an owner's jobs may name.
func (c *call) fetch(ctx context.Context, owner, digest string) (*factorgraph.Model, error) {
	if !form.IsDigest(digest) {
		return nil, notFound("%.80q is no digest of a model", digest)
	}
	b, err := c.g.bus.Models.Get(ctx, owner, digest)
	if err != nil {
		if errors.Is(err, client.ErrNotFound) {
			return nil, notFound("no model is registered under the digest %s", digest)
		}
		return nil, err
	}
	var g wire.Graph
	if err := wire.Decode(b, &g); err != nil {
		return nil, err
	}
	return decode(g.Model, g.Text)
}

// ownerOf returns the owner of a model: a caller that may see everybody's models finds each.
func (c *call) ownerOf(ctx context.Context, digest string) (string, error) {
	if c.who.Tenant != "" {
		return c.who.Tenant, nil
	}
	all, err := c.models(ctx)
	for _, m := range all.Models {
		if m.Digest == digest {
			return m.Owner, err
		}
	}
	return "", err
}

// decode reads a model that travelled.
func decode(native *wire.Model, text string) (*factorgraph.Model, error) {
	if native == nil {
		return parse([]byte(text), "", 0)
	}
	m, err := native.Decode()
	if err == nil {
		err = m.Validate()
	}
	return m, fault.Wrap(fault.Internal, err)
}

// Model is a registered model, or a version of a name of one.
type Model struct {
	Name    string `json:"name,omitempty"`    // absent: it has none
	Version int    `json:"version,omitempty"` // of the name, from 1
	By      string `json:"by,omitempty"`      // the author, as they said
	Digest  string `json:"digest,omitempty"`
	Owner   string `json:"owner,omitempty"` // the tenant whose it is; absent: everybody's
	Bytes   uint64 `json:"bytes,omitempty"` // as it is stored
	Time    int64  `json:"time,omitempty"`  // Unix milliseconds at which it was registered
}

// Models are the registered ones, oldest first.
type Models struct {
	Models  []Model  `json:"models"`
	Skipped []string `json:"skipped,omitempty"` // stored messages that cannot be read, with the reason: operators see and remove them
}

// modelList lists the registered models.
func (g *Gateway) modelList(c *call) error {
	all, err := c.models(c.r.Context())
	if err != nil {
		return err
	}
	out := Models{Models: []Model{}}
	for _, m := range all.Skipped {
		out.Skipped = append(out.Skipped, m.String())
	}
	for _, m := range all.Models {
		one, named := Model{Digest: m.Digest, Owner: m.Owner, Bytes: m.Bytes, Time: m.Time.UnixMilli()}, false
		for _, v := range all.Versions {
			if v.Digest == m.Digest && v.Owner == m.Owner {
				one.Name, one.Version, one.By, one.Time, named = v.Name, v.Version, v.By, v.Time.UnixMilli(), true
				out.Models = append(out.Models, one)
			}
		}
		if !named {
			out.Models = append(out.Models, one)
		}
	}
	return c.json(http.StatusOK, out)
}

// modelPost registers the model file that is the body.
func (g *Gateway) modelPost(c *call) error {
	m, err := c.register()
	if err != nil {
		return err
	}
	c.what = m.Digest
	c.w.Header().Set("Location", "/v1/models/"+m.Digest)
	return c.json(http.StatusCreated, m)
}

// modelPut registers the body under a name: other bytes are a new version.
func (g *Gateway) modelPut(c *call) error {
	m, err := c.register()
	if err != nil {
		return err
	}
	own, err := c.client()
	if err != nil {
		return err
	}
	by := c.who.Tenant
	if by == "" {
		by = Stage
	}
	v, err := own.NameModel(c.r.Context(), c.r.PathValue("model"), m.Digest, by)
	if err != nil {
		return err
	}
	c.what = v.String() + " " + v.Digest
	return c.json(http.StatusOK, Model{Name: v.Name, Version: v.Version, By: v.By, Digest: v.Digest, Owner: v.Owner})
}

// register registers the model that is the body.
func (c *call) register() (Model, error) {
	m, err := parse(c.text, c.r.URL.Query().Get("format"), c.g.limits.Body)
	if err != nil {
		return Model{}, bad("model: %w", err)
	}
	graph, err := wire.NewGraph(m)
	if err != nil {
		return Model{}, bad("model: %w", err)
	}
	own, err := c.client()
	if err != nil {
		return Model{}, err
	}
	digest, err := own.PutModel(c.r.Context(), graph)
	return Model{Digest: digest, Owner: c.who.Tenant}, err
}

// formGraph is the format of a model as its variables and scopes alone.
const formGraph = "graph"

// modelGet answers with a model in some format.
func (g *Gateway) modelGet(c *call) error {
	digest, err := c.digestOf(c.r.Context(), c.r.PathValue("model"))
	if err != nil {
		return err
	}
	owner, err := c.ownerOf(c.r.Context(), digest)
	if err != nil {
		return err
	}
	m, err := c.fetch(c.r.Context(), owner, digest)
	if err != nil {
		return err
	}
	if format := c.r.URL.Query().Get("format"); format != formGraph {
		return c.written(m, format)
	}
	of, err := graphOf(m)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, of)
}

// modelDelete removes a name with its versions, or a model by its digest.
func (g *Gateway) modelDelete(c *call) error {
	ctx, name := c.r.Context(), c.r.PathValue("model")
	if c.who.Tenant != "" {
		return refuse(http.StatusForbidden, fault.BadInput, "a tenant's key may not remove models")
	}
	v, err := g.own.RemoveRegistered(ctx, strings.TrimPrefix(name, "digest:"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, Model{Name: v.Name, Digest: v.Digest, Owner: v.Owner})
}
