package wire

// A model by itself on the wire: registered once, named by digest afterwards.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Graph is a registered model: a factor graph without a job, kept under the SHA-256 of its bytes,
// which requests then name. The graph is either Model or Text, never both.
type Graph struct {
	Model *Model `msgpack:"model,omitempty"`
	Text  string `msgpack:"text,omitempty"` // the text of a file in a format of package formats
}

// NewGraph returns m as it is registered. It shares m's slices.
func NewGraph(m *factorgraph.Model) (*Graph, error) {
	body, err := NewModel(m)
	return &Graph{Model: body}, err
}

// Name returns "graph".
func (g *Graph) Name() string { return "graph" }

// Validate checks the graph as Request.Validate does.
func (g *Graph) Validate() error { return checkSource(g.Model, g.Text, nil) }

// EncodeGraph returns the bytes to register and their digest. Lists that are empty are taken as
// absent. The error has the code bad_input.
func EncodeGraph(g *Graph) (b []byte, digest string, err error) {
	if err = g.Validate(); err == nil {
		b, err = codec.Marshal(g.Name(), g, true) // canonical: empty lists are absent
	}
	if limit := maxBytes(g); err == nil && len(b) > limit {
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), limit)
	}
	if err != nil {
		return nil, "", fault.Wrap(fault.BadInput, codec.WithField(g.Name(), err))
	}
	return b, Digest(b), nil
}

// checkSource checks that exactly one of a native model, a text and a digest is given. Of a native model it checks
// scopes, shapes and lengths, too. A nil digest says that the message has no such field.
func checkSource(m *Model, text string, digest *string) error {
	hasDigest := digest != nil && *digest != ""
	switch {
	case m == nil && text == "" && digest == nil:
		return codec.Invalid("model", "neither model nor text is given")
	case m == nil && text == "" && !hasDigest:
		return codec.Invalid("model", "none of model, text and model_digest is given")
	case m != nil && text != "":
		return codec.Invalid("text", "both model and text are given")
	case hasDigest && (m != nil || text != ""):
		return codec.Invalid("model_digest", "the model is given as well")
	case hasDigest:
		return form.CheckDigest("model_digest", *digest)
	case m != nil:
		return codec.WithField("model", m.check())
	}
	return nil
}
