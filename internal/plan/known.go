package plan

// What is derived of a network without its evidence: once per job, or once per worker where networks come again.

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/lower"
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
	digest   [sha256.Size]byte
	span     span
	mapped   []string

	mu     sync.Mutex
	shaped bool
	shape  contractionorder.Hypergraph
	counts map[int64]countedForm // by memory budget
}

// countedForm is what counted returned.
type countedForm struct {
	dec *btn.Decomposition
	err error
}

// countsOf returns the network's form in count space, see counted.
func (f *facts) countsOf(ctx context.Context, net *btn.Network, memory int64) (*btn.Decomposition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, known := f.counts[memory]
	if known {
		return c.dec, c.err
	}
	c.dec, c.err = counted(ctx, net, memory)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.counts == nil || len(f.counts) >= keepFacts {
		f.counts = map[int64]countedForm{}
	}
	f.counts[memory] = c
	return c.dec, c.err
}

// of returns the facts of a network.
func (k *Known) of(net *btn.Network) *facts {
	if f := k.find(net); f != nil {
		return f
	}
	f := &facts{net: weak.Make(net), programs: &k.programs, digest: net.Digest(), span: coreSpan(net), mapped: mapWarnings(net)}
	if len(net.Cores)+len(net.Links) > keepTensors {
		return f
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.order.PushFront(f); k.order.Len() > keepFacts {
		k.order.Remove(k.order.Back())
	}
	return f
}

// find returns what is known of a network, nil for nothing. Two callers may both find nothing, and remember the same twice.
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
	return nil
}

// shapeOf returns the shape of the network, without evidence.
func (f *facts) shapeOf(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shaped {
		return f.shape, nil
	}
	var err error
	f.shape, err = lower.Shape(ctx, net)
	f.shaped = err == nil
	return f.shape, err
}
