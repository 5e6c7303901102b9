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

// So many networks are known. Of one with more tensors the digest, the range and warnings are kept alone: what else is derived of it is
// large itself, and soon made beside the work on it.
const (
	keepFacts   = 32
	keepTensors = 1 << 13
)

// Known remembers what Assign derives of the networks that it was asked about last, by identity: digest,
// shape, warnings, programs. A network must not change; it is not kept alive. Assignments are the same with
// it and without. The zero value is empty; it may be used by several goroutines.
type Known struct {
	// Problems may be those that the parts of the plans are contracted on afterwards, in the same process and
	// under the same Options: what planning made of a network need not be made again then. Nil: each call has
	// its own.
	Problems *problem.Shared
	Options  problem.Options

	bounds   sync.Once
	networks memo.LRU[weak.Pointer[btn.Network], *facts]
	common   proposal.Facts
}

// facts are what one network's assignments have in common.
type facts struct {
	*proposal.Facts
	span   span
	mapped []string
}

// factsOf returns the facts of a network. Two callers may both derive them; one of them is remembered.
func (k *Known) factsOf(net *btn.Network) *facts {
	k.bounds.Do(func() { k.networks.Entries = keepFacts })
	who := weak.Make(net)
	f, ok := k.networks.Get(who)
	if !ok {
		f = &facts{Facts: proposal.NewFacts(net, &k.common), span: coreSpan(net), mapped: mapWarnings(net)}
		f = k.networks.Add(who, f, 0)
	}
	if len(net.Cores)+len(net.Links) > keepTensors {
		return &facts{Facts: f.Facts.Fresh(), span: f.span, mapped: f.mapped}
	}
	return f
}
