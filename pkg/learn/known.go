package learn

// What is derived of a network without its evidence: once per job, or once per worker where networks come again.

import (
	"container/list"
	"crypto/sha256"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
)

// So many networks are known, of so many tensors each at most: what is derived of larger ones is large itself, and soon made
// beside the work on them.
const (
	keepFacts   = 32
	keepTensors = 1 << 13
)

// Known remembers what Assign derives of the networks that it was asked about last, by identity: digest, shape, warnings,
// programs. A network must not change; it is not kept alive. Assignments are the same with it and without. The zero value is
// empty; it may be used by several goroutines.
type Known struct {
	mu       sync.Mutex
	order    list.List // of *facts, most recent first
	programs einsum.Programs
}

// facts are what one network's assignments have in common.
type facts struct {
	net      weak.Pointer[btn.Network]
	programs *einsum.Programs

	once   sync.Once
	digest [sha256.Size]byte
	span   span
	signs  []string

	shapeOnce sync.Once
	shape     elimination.Hypergraph
	shapeErr  error
}

// of returns the facts of a network.
func (k *Known) of(net *btn.Network) *facts {
	f := k.find(net)
	f.once.Do(func() {
		f.digest = net.BaseDigest()
		f.span = coreSpan(net)
		f.signs = signWarnings(net)
	})
	return f
}

func (k *Known) find(net *btn.Network) *facts {
	who := weak.Make(net)
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.order.Front(); e != nil; e = e.Next() {
		if f := e.Value.(*facts); f.net == who {
			k.order.MoveToFront(e)
			return f
		}
	}
	f := &facts{net: who, programs: &k.programs}
	if len(net.Cores)+len(net.Links) > keepTensors {
		return f
	}
	k.order.PushFront(f)
	if k.order.Len() > keepFacts {
		k.order.Remove(k.order.Back())
	}
	return f
}

// shapeOf returns the shape of the network, without evidence.
func (f *facts) shapeOf(net *btn.Network) (elimination.Hypergraph, error) {
	f.shapeOnce.Do(func() { f.shape, f.shapeErr = einsum.Shape(net) })
	return f.shape, f.shapeErr
}
