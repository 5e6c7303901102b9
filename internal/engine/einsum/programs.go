package einsum

// Compiled programs, for repeated contractions of the same network.

import (
	"slices"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// So many programs are remembered, of so many bytes together at most.
const (
	keepPrograms     = 32
	keepProgramBytes = 64 << 20
)

// Programs remembers the programs used last, within policy.ProgramFlops. The zero value is empty, nil remembers nothing. It
// keeps no network alive. It may be used by several goroutines.
type Programs struct {
	bounds sync.Once
	known  memo.LRU[programKey, *remembered]
}

// programKey is a network, by identity, and a hash of an order.
type programKey struct {
	net   weak.Pointer[btn.Network]
	order uint64
}

// remembered is the answer of Compile for a network and an order.
type remembered struct {
	order   []int
	mu      sync.Mutex
	done    bool
	program *Program // nil: no
}

// Of is Compile(net, order, policy.ProgramFlops), remembered. The network must not change any more. Answers are the same as without memory.
func (p *Programs) Of(net *btn.Network, order []int) (*Program, bool) {
	if p == nil {
		return Compile(net, order, policy.ProgramFlops)
	}
	p.bounds.Do(func() { p.known.Entries, p.known.Bytes = keepPrograms, keepProgramBytes })
	key := programKey{weak.Make(net), hash(order)}
	c, ok := p.known.Get(key)
	if !ok {
		c = p.known.Add(key, &remembered{order: order}, 0)
	}
	if !slices.Equal(c.order, order) { // two orders of one hash
		return Compile(net, order, policy.ProgramFlops)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		if c.program, ok = Compile(net, c.order, policy.ProgramFlops); ok {
			p.known.Resize(key, int64(c.program.Plan(true).Bytes))
		}
		c.done = true
	}
	return c.program, c.program != nil
}

// hash is FNV-1a over the indices of an order.
func hash(order []int) uint64 {
	h := uint64(14695981039346656037)
	for _, i := range order {
		h = (h ^ uint64(i)) * 1099511628211
	}
	return h
}
