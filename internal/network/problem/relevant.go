package problem

// Parts of directed networks, each for the questions that depend only on it.

import (
	"encoding/binary"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// Bounds of the parts that are kept.
const (
	maxParts     = 256      // number of parts
	maxPartBytes = 64 << 20 // of all parts together, without their tables, which they share with the network
	partLegBytes = 128      // estimate for one leg or variable of a part
)

// parts is a cache of the parts of networks that were used last.
type parts struct {
	mu    sync.Mutex
	cache *memo.LRU[partKey, *btn.Network] // nil until it is first used
}

// partKey identifies a part by its network and its variables.
type partKey struct {
	net       weak.Pointer[btn.Network] // by identity
	variables string                    // differences of the ascending numbers, as uvarints
}

// Relevant returns the part of a network on which the values of a demand depend (btn.Network.Relevant), and the demand with the variables
// of that part. It returns net and d themselves if the values depend on the whole network. Demands that depend on the same variables get
// the same *btn.Network while the cache has it.
func (s *Shared) Relevant(net *btn.Network, d btn.Demand) (*btn.Network, btn.Demand) {
	variables, isAll := net.Relevant(d)
	if isAll {
		return net, d
	}
	part := s.cachedPart(net, variables)
	return part, net.RenumberDemand(part, d)
}

// cachedPart returns the part of a directed network that consists of some variables, net.Restrict(variables), from the cache if it is
// there; otherwise it makes the part and adds it. variables are ascending. A nil Shared has no cache. The key is the network and the list
// of variables, written as the differences of neighbours in the list.
func (s *Shared) cachedPart(net *btn.Network, variables []int) *btn.Network {
	if s == nil {
		return net.Restrict(variables)
	}
	var differences []byte // of neighbours in variables; most take one byte
	previous := 0
	for _, v := range variables {
		differences = binary.AppendUvarint(differences, uint64(v-previous))
		previous = v
	}
	cache := s.parts.openCache()
	key := partKey{weak.Make(net), string(differences)} // weak: the cache does not keep the network alive
	if part, ok := cache.Get(key); ok {
		return part
	}
	part := net.Restrict(variables)
	return cache.Add(key, part, int64(partLegBytes*(len(part.Dims)+len(variables))))
}

// openCache returns the cache. It makes one if there is none.
func (p *parts) openCache() *memo.LRU[partKey, *btn.Network] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cache == nil {
		p.cache = &memo.LRU[partKey, *btn.Network]{Entries: maxParts, Bytes: maxPartBytes}
	}
	return p.cache
}

// drop removes all parts.
func (p *parts) drop() {
	p.mu.Lock()
	p.cache = nil
	p.mu.Unlock()
}
