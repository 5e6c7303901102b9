package pipeline

// Models that requests carry themselves: one that comes again, byte for byte, is not read and built anew.

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/wire"
)

// So many of the last models are known, of at most so many variables each.
const (
	keepInline      = 256
	inlineVariables = 1 << 13
)

// inline remembers the networks of the models that came last.
type inline struct {
	mu    sync.Mutex
	order list.List // of *inlined, most recent first
	by    map[inlineKey]*list.Element
}

// inlineKey is a model by its bytes in the message, and what its network depends on beside it.
type inlineKey struct {
	model    [sha256.Size]byte
	text     bool
	settings btn.Settings
}

type inlined struct {
	key inlineKey
	prepared
}

// keyOf returns the key of a request that carries its model, from the message that it was read from.
func keyOf(m *wire.Model, message []byte) inlineKey {
	k := inlineKey{text: m.Model == nil, settings: m.Settings.WithDefaults()}
	if k.text {
		k.model = sha256.Sum256([]byte(m.UAI))
	} else {
		k.model = sha256.Sum256(wire.Part(message, "model"))
	}
	return k
}

func (l *inline) get(k inlineKey) (prepared, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.by[k]
	if e == nil {
		return prepared{}, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*inlined).prepared, true
}

func (l *inline) put(k inlineKey, p prepared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[k] != nil || len(p.domains) > inlineVariables {
		return
	}
	if l.by == nil {
		l.by = map[inlineKey]*list.Element{}
	}
	l.by[k] = l.order.PushFront(&inlined{k, p})
	if l.order.Len() > keepInline {
		delete(l.by, l.order.Remove(l.order.Back()).(*inlined).key)
	}
}
