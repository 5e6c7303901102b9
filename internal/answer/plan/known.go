package plan

// What is derived of a network without its evidence: once per job, or once per worker where networks come again.

import (
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// Limits of what NetworkMemory remembers.
const (
	// keepFacts is the number of networks.
	keepFacts = 32
	// keepTensors is the largest number of tensors of a network of which everything is kept. Of a larger one only the digest, the span
	// and the warnings are kept: the rest is large itself, and takes little time beside the work on the network.
	keepTensors = 1 << 13
)

// NetworkMemory remembers what Assign derives of the networks that it was asked about last, by identity: digest, shape, warnings,
// programs. A network must not change; it is not kept alive. Assignments are the same with it and without. The zero value is empty. Several
// goroutines may use it.
type NetworkMemory struct {
	// Problems are shared with the contraction of the parts, if that is in the same process and under the same Options. What planning
	// made of a network need not be made again then. If it is nil, each call has its own.
	Problems *problem.Shared
	Options  problem.Options

	setLimit sync.Once // sets the limit of networks
	networks memo.LRU[weak.Pointer[btn.Network], *facts]
	common   proposal.Facts // results that do not depend on a network
}

// facts are what all assignments of one network have in common.
type facts struct {
	*proposal.Facts
	coreSpan    span     // of the cores (spanOfCores)
	mapWarnings []string // warnings that maps have rounded the tensors
}

// factsOf returns the facts of a network, from memory if it has them. Of a network with more than keepTensors tensors, only the digest, the
// span and the warnings are remembered; each call returns new facts with these, without the results of methods. If two callers derive facts
// at the same time, one result is remembered, and both callers get it.
func (k *NetworkMemory) factsOf(net *btn.Network) *facts {
	k.setLimit.Do(func() { k.networks.Entries = keepFacts })
	key := weak.Make(net) // a weak pointer: the memory does not keep the network
	f, ok := k.networks.Get(key)
	if !ok {
		f = &facts{Facts: proposal.NewFacts(net, &k.common), coreSpan: spanOfCores(net), mapWarnings: mapWarnings(net)}
		f = k.networks.Add(key, f, 0) // 0 bytes: only the number of networks is limited
	}
	if len(net.Cores)+len(net.Links) > keepTensors {
		return &facts{Facts: f.Facts.WithoutResults(), coreSpan: f.coreSpan, mapWarnings: f.mapWarnings}
	}
	return f
}
