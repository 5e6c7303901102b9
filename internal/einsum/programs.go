package einsum

// What was compiled, for those who contract the same network again.

import (
	"container/list"
	"slices"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
)

// So many programs are remembered, of so many bytes together at most.
const (
	keepPrograms     = 32
	keepProgramBytes = 64 << 20
)

// Programs remembers the programs that were asked for last: those of ProgramFlops. The zero value is empty, nil remembers
// nothing. It keeps no network alive. It may be used by several goroutines.
type Programs struct {
	mu    sync.Mutex
	order list.List // of *compiled, most recent first
	bytes float64
}

// compiled is the answer of Compile for a network, by identity, and an order.
type compiled struct {
	net     weak.Pointer[btn.Network]
	order   []int
	mu      sync.Mutex
	done    bool
	program *Program // nil: no
	bytes   float64
}

// Of is Compile(net, order, ProgramFlops), remembered. The network must not change any more. Answers are the same as without memory.
func (p *Programs) Of(net *btn.Network, order []int) (*Program, bool) {
	if p == nil {
		return Compile(net, order, policy.ProgramFlops)
	}
	c := p.find(net, order)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		if c.program, c.done = Compile(net, c.order, policy.ProgramFlops); c.done {
			p.weigh(c)
		}
		c.done = true
	}
	return c.program, c.program != nil
}

// find returns the entry of a network and an order, a new one if there is none.
func (p *Programs) find(net *btn.Network, order []int) *compiled {
	p.mu.Lock()
	defer p.mu.Unlock()
	who := weak.Make(net)
	for e := p.order.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*compiled); c.net == who && slices.Equal(c.order, order) {
			p.order.MoveToFront(e)
			return c
		}
	}
	c := &compiled{net: who, order: order}
	p.order.PushFront(c)
	p.trim()
	return c
}

// weigh adds the bytes of an entry that has been compiled.
func (p *Programs) weigh(c *compiled) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.order.Front(); e != nil; e = e.Next() {
		if e.Value == c {
			c.bytes = c.program.Plan(true).Bytes
			p.bytes += c.bytes
		}
	}
	p.trim()
}

func (p *Programs) trim() {
	for p.order.Len() > keepPrograms || p.bytes > keepProgramBytes {
		p.bytes -= p.order.Remove(p.order.Back()).(*compiled).bytes
	}
}
