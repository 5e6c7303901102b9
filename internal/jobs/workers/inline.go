package workers

// Models that requests carry themselves: one that comes again, byte for byte, is not read and built
// again.

import (
	"crypto/sha256"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Bounds of the networks that are remembered: their number, and the sum of their variables.
const (
	keepInline      = 256
	inlineVariables = 1 << 20
)

// inline remembers the networks of the models that requests carried last; a variable counts as a
// byte of its bound.
type inline = memo.LRU[inlineKey, cached.Network]

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
func keyOf(owner string, m *wire.Request, payload []byte) (inlineKey, bool) {
	k := inlineKey{owner: owner, text: m.Model == nil, settings: m.Settings.WithDefaults(), parametric: stage.AreParametric(m.Queries)}

	model := []byte(m.Text)
	if !k.text {
		model = codec.Part(payload, "model")
	}

	k.model = sha256.Sum256(model)
	return k, len(model) > 0
}
