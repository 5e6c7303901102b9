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

// takeModel finds the model of a request, puts it or its digest into the job, and returns the names of its variables.
// Exactly one of model, text and model_name has to be given.
func (c *call) takeModel(ctx context.Context, in *Infer, job *wire.Request) (*factorgraph.Labels, error) {
	givenCount := 0
	for _, has := range []bool{in.Model != nil, in.Text != "", in.ModelName != ""} {
		if has {
			givenCount++
		}
	}
	if givenCount != 1 {
		return nil, badRequest("exactly one of model, text and model_name is needed, not %d of them", givenCount)
	}
	if in.Format != "" && in.Text == "" {
		return nil, badRequest("format belongs to text, which is not given")
	}
	if in.ModelName != "" {
		return c.takeRegistered(ctx, in.ModelName, job)
	}

	// the model of the request itself
	field, text, format := "model", []byte(in.Model), string(formats.JSON)
	if in.Text != "" {
		field, text, format = "text", []byte(in.Text), in.Format
	}
	m, err := parseModel(text, format, c.gateway.limits.Body)
	if err != nil {
		return nil, badRequest("%s: %w", field, err)
	}
	message, err := wire.NewRequest(m)
	if err != nil {
		return nil, err
	}
	job.Model = message.Model
	c.askedModel = fmt.Sprintf("%d variables", len(m.Domains))
	return m.Labels()
}

// parseModel reads a model file of at most maxBytes bytes, decompressed, and checks it. 0 stands for the default limit. If
// format is "", the text shows the format.
func parseModel(text []byte, format string, maxBytes int64) (*factorgraph.Model, error) {
	var as formats.Format
	if format != "" {
		var err error
		if as, err = formats.Parse(format); err != nil {
			return nil, err
		}
	}
	return formats.Read(bytes.NewReader(text), as, "", uai.Limits{Bytes: maxBytes})
}

// Bounds of the memory of registered models, which never change.
const (
	mostKnown  = 256
	knownBytes = 64 << 20
)

// takeRegistered finds a registered model, names it in the job by its digest, and returns the names of its variables.
func (c *call) takeRegistered(ctx context.Context, name string, job *wire.Request) (*factorgraph.Labels, error) {
	digest, err := c.digestOf(ctx, name)
	if err != nil {
		return nil, err
	}
	job.ModelDigest, c.askedModel = digest, digest
	key := c.caller.Tenant + "." + digest
	if labels, ok := c.gateway.labels.Get(key); ok {
		return labels, nil
	}
	m, err := c.fetchModel(ctx, c.caller.Tenant, digest)
	if err != nil {
		return nil, err
	}
	labels, err := m.Labels()
	if err != nil {
		return nil, err
	}
	return c.gateway.labels.Add(key, labels, labelBytes(m)), nil
}

// labelBytes estimates the memory of the labels of a model: its texts, 64 bytes for each text, about what a string and its entry in a map
// take, and 8 for each variable.
func labelBytes(m *factorgraph.Model) int64 {
	n := int64(8 * len(m.Domains))
	for _, name := range slices.Concat(m.Names, m.Aliases) {
		n += 64 + int64(len(name))
	}
	for _, states := range m.States {
		for _, state := range states {
			n += 64 + int64(len(state))
		}
	}
	return n
}

// fewestDigits is the minimum number of digits of a digest that name a model.
const fewestDigits = 6

// digestOf returns the digest of a registered model. name is its name, such as alarm or alarm@3, its digest, or at
// least six digits with which only its digest begins.
func (c *call) digestOf(ctx context.Context, name string) (string, error) {
	name = strings.TrimPrefix(name, "digest:")
	isHexadecimal := strings.Trim(name, "0123456789abcdef") == ""
	mayBePrefix := len(name) >= fewestDigits && isHexadecimal && len(name) != 64 // with 64 digits it is a whole digest
	if !mayBePrefix {
		return c.findDigest(ctx, name)
	}
	if digest, err := c.findDigest(ctx, name); err == nil { // hexadecimal digits may also be a name
		return digest, nil
	}

	// the only digest that begins so
	registered, err := c.visibleModels(ctx)
	if err != nil {
		return "", err
	}
	digest := ""
	for _, m := range registered.Models {
		if !strings.HasPrefix(m.Digest, name) || m.Digest == digest {
			continue
		}
		if digest != "" {
			return "", badRequest("%s begins the digests of several models: %.16s… and %.16s…", name, digest, m.Digest)
		}
		digest = m.Digest
	}
	if digest == "" {
		return "", notFound("no model's digest begins with %s", name)
	}
	return digest, nil
}

// findDigest returns the digest of a model by its name or its whole digest.
func (c *call) findDigest(ctx context.Context, name string) (string, error) {
	tenantClient, err := c.client()
	if err != nil {
		return "", err
	}
	version, err := tenantClient.FindModel(ctx, name)
	return version.Digest, err
}

// visibleModels returns the registered models that the caller may name.
func (c *call) visibleModels(ctx context.Context) (client.Registered, error) {
	registered, err := c.gateway.ownClient.Registered(ctx)
	registered.Models = slices.DeleteFunc(registered.Models, func(m client.RegisteredModel) bool {
		return m.Owner != "" && m.Owner != c.caller.Tenant && c.caller.Tenant != ""
	})
	if c.caller.Tenant != "" {
		registered.Skipped = nil
	}
	return registered, err
}

// fetchModel reads a registered model that jobs of the owner may name.
func (c *call) fetchModel(ctx context.Context, owner, digest string) (*factorgraph.Model, error) {
	if !form.IsDigest(digest) {
		return nil, notFound("%.80q is no digest of a model", digest)
	}
	b, err := c.gateway.bus.Models.Get(ctx, owner, digest)
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
	return decodeModel(g.Model, g.Text)
}

// ownerOf returns the owner under whom a model's digest is looked up. That is the caller's tenant. For a caller without a
// tenant it is the owner of the first registered model with the digest, "" if there is none.
func (c *call) ownerOf(ctx context.Context, digest string) (string, error) {
	if c.caller.Tenant != "" {
		return c.caller.Tenant, nil
	}
	registered, err := c.visibleModels(ctx)
	for _, m := range registered.Models {
		if m.Digest == digest {
			return m.Owner, err
		}
	}
	return "", err
}

// decodeModel returns the model of a message: the native one or, if that is nil, the one in text, a model file.
func decodeModel(native *wire.Model, text string) (*factorgraph.Model, error) {
	if native == nil {
		return parseModel([]byte(text), "", 0)
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

// listModels answers with the registered models.
func (g *Gateway) listModels(c *call) error {
	registered, err := c.visibleModels(c.request.Context())
	if err != nil {
		return err
	}
	list := Models{Models: []Model{}}
	for _, m := range registered.Skipped {
		list.Skipped = append(list.Skipped, m.String())
	}
	for _, m := range registered.Models {
		// a line for each version of a name, or one without a name
		line, hasName := Model{Digest: m.Digest, Owner: m.Owner, Bytes: m.Bytes, Time: m.Time.UnixMilli()}, false
		for _, v := range registered.Versions {
			if v.Digest == m.Digest && v.Owner == m.Owner {
				line.Name, line.Version, line.By, line.Time, hasName = v.Name, v.Version, v.By, v.Time.UnixMilli(), true
				list.Models = append(list.Models, line)
			}
		}
		if !hasName {
			list.Models = append(list.Models, line)
		}
	}
	return c.writeJSON(http.StatusOK, list)
}

// postModel registers the model file that is the body.
func (g *Gateway) postModel(c *call) error {
	m, err := c.register()
	if err != nil {
		return err
	}
	c.changed = m.Digest
	c.response.Header().Set("Location", "/v1/models/"+m.Digest)
	return c.writeJSON(http.StatusCreated, m)
}

// putModel registers the model file that is the body under a name. If its content differs from the last version, it is
// a new version.
func (g *Gateway) putModel(c *call) error {
	model, err := c.register()
	if err != nil {
		return err
	}
	tenantClient, err := c.client()
	if err != nil {
		return err
	}
	author := c.caller.Tenant
	if author == "" {
		author = Stage
	}
	version, err := tenantClient.NameModel(c.request.Context(), c.request.PathValue("model"), model.Digest, author)
	if err != nil {
		return err
	}
	c.changed = version.String() + " " + version.Digest
	return c.writeJSON(http.StatusOK, Model{
		Name: version.Name, Version: version.Version, By: version.By, Digest: version.Digest, Owner: version.Owner,
	})
}

// register registers the model that is the body.
func (c *call) register() (Model, error) {
	model, err := parseModel(c.body, c.request.URL.Query().Get("format"), c.gateway.limits.Body)
	if err != nil {
		return Model{}, badRequest("model: %w", err)
	}
	graph, err := wire.NewGraph(model)
	if err != nil {
		return Model{}, badRequest("model: %w", err)
	}
	tenantClient, err := c.client()
	if err != nil {
		return Model{}, err
	}
	digest, err := tenantClient.PutModel(c.request.Context(), graph)
	return Model{Digest: digest, Owner: c.caller.Tenant}, err
}

// formGraph is the format of a model as its variables and scopes alone.
const formGraph = "graph"

// getModel answers with a model in the format that the request names, or as a graph.
func (g *Gateway) getModel(c *call) error {
	digest, err := c.digestOf(c.request.Context(), c.request.PathValue("model"))
	if err != nil {
		return err
	}
	owner, err := c.ownerOf(c.request.Context(), digest)
	if err != nil {
		return err
	}
	m, err := c.fetchModel(c.request.Context(), owner, digest)
	if err != nil {
		return err
	}
	if format := c.request.URL.Query().Get("format"); format != formGraph {
		return c.writeModel(m, format)
	}
	graph, err := graphOf(m)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, graph)
}

// deleteModel removes a name with its versions, or a model by its digest.
func (g *Gateway) deleteModel(c *call) error {
	ctx, name := c.request.Context(), c.request.PathValue("model")
	if c.caller.Tenant != "" {
		return refuse(http.StatusForbidden, fault.BadInput, "a tenant's key may not remove models")
	}
	removed, err := g.ownClient.RemoveRegistered(ctx, strings.TrimPrefix(name, "digest:"))
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, Model{Name: removed.Name, Digest: removed.Digest, Owner: removed.Owner})
}
