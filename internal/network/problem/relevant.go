package problem

// Parts of directed networks, each for the questions that depend on it alone.

import (
	"encoding/binary"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// So many parts are kept, of about so many bytes together without their tables, which are the network's.
const (
	keepParts     = 256
	keepPartBytes = 64 << 20
	partLegBytes  = 128
)

// parts are those used last.
type parts struct {
	mu    sync.Mutex
	known *memo.LRU[partKey, *btn.Network]
}

// partKey is a network, by identity, and the variables of a part.
type partKey struct {
	net       weak.Pointer[btn.Network]
	variables string
}

// Relevant returns the part of a network on which the values of a demand depend (btn.Network.Relevant), and the demand on it; the
// network and the demand themselves if that is all of it. Demands that depend on the same variables have one part as long as it is known.
func (s *Shared) Relevant(net *btn.Network, d btn.Demand) (*btn.Network, btn.Demand) {
	variables, all := net.Relevant(d)
	if all {
		return net, d
	}
	part := s.part(net, variables)
	return part, net.On(part, d)
}

// part returns the part of a network that variables make up, the known one if there is one.
func (s *Shared) part(net *btn.Network, variables []int) *btn.Network {
	if s == nil {
		return net.Restrict(variables)
	}
	var text []byte
	before := 0
	for _, v := range variables {
		text = binary.AppendUvarint(text, uint64(v-before))
		before = v
	}
	known := s.parts.list()
	key := partKey{weak.Make(net), string(text)}
	if part, ok := known.Get(key); ok {
		return part
	}
	part := net.Restrict(variables)
	return known.Add(key, part, int64(partLegBytes*(len(part.Dims)+len(variables))))
}

// list returns the known parts.
func (p *parts) list() *memo.LRU[partKey, *btn.Network] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = &memo.LRU[partKey, *btn.Network]{Entries: keepParts, Bytes: keepPartBytes}
	}
	return p.known
}

// drop forgets all parts.
func (p *parts) drop() {
	p.mu.Lock()
	p.known = nil
	p.mu.Unlock()
}
