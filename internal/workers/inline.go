package workers

// Models that requests carry themselves: one that comes again, byte for byte, is not read and built anew.

import (
	"crypto/sha256"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/cached"
	"github.com/basetensor/basetensor/internal/codec"
	"github.com/basetensor/basetensor/internal/memo"
	"github.com/basetensor/basetensor/pkg/wire"
)

// So many of the last models are known, of so many variables together.
const (
	keepInline      = 256
	inlineVariables = 1 << 20
)

// inline is the networks of the models that came last; a variable counts as a byte.
type inline = memo.LRU[inlineKey, cached.Network]

// inlineKey is a model by its bytes in the message, and what its network depends on beside it.
type inlineKey struct {
	model    [sha256.Size]byte
	text     bool
	settings btn.Settings
}

// keyOf returns the key of a request that carries its model, from the message that it was read from; false if it is not there.
func keyOf(m *wire.Request, payload []byte) (inlineKey, bool) {
	k := inlineKey{text: m.Model == nil, settings: m.Settings.WithDefaults()}
	model := []byte(m.UAI)
	if !k.text {
		model = codec.Part(payload, "model")
	}
	k.model = sha256.Sum256(model)
	return k, len(model) > 0
}
