package plan

// What is derived of a network without its evidence: once per job, or once per worker where networks come again.

import (
	"context"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/digest"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/memo"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/problem"
)

// recurringKey is the key of Recurring in a context.
type recurringKey struct{}

// Recurring returns a context under which Assign takes the network for one that was asked about before, as that of a registered model:
// what serves later queries as well is made at the first.
func Recurring(ctx context.Context) context.Context {
	return context.WithValue(ctx, recurringKey{}, true)
}

// recurring reports whether ctx is one of Recurring.
func recurring(ctx context.Context) bool {
	is, _ := ctx.Value(recurringKey{}).(bool)
	return is
}

// So many networks are known, of so many tensors each at most: what is derived of larger ones is large
// itself, and soon made beside the work on them.
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
	programs einsum.Programs
}

// facts are what one network's assignments have in common.
type facts struct {
	programs *einsum.Programs
	digest   [digest.Size]byte
	span     span
	mapped   []string

	mu     sync.Mutex
	shaped bool
	shape  contractionorder.Hypergraph
	counts map[int64]countedForm // by memory budget

	zeros                  sync.Once
	logical, whollyLogical bool
}

// logicalOf reports whether circuits are looked for, see logic.Logical.
func (f *facts) logicalOf(net *btn.Network) bool {
	f.lookForZeros(net)
	return f.logical
}

// whollyLogicalOf reports whether circuits are looked for before trees are.
func (f *facts) whollyLogicalOf(net *btn.Network) bool {
	f.lookForZeros(net)
	return f.whollyLogical
}

func (f *facts) lookForZeros(net *btn.Network) {
	f.zeros.Do(func() {
		f.logical = logic.Logical(net, policy.LogicalShare)
		f.whollyLogical = f.logical && logic.Logical(net, policy.WhollyLogicalShare)
	})
}

// countedForm is what counted returned.
type countedForm struct {
	plan *btn.Plan
	err  error
}

// countsOf returns the network's form in count space, see counted.
func (f *facts) countsOf(ctx context.Context, net *btn.Network, memory int64) (*btn.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, known := f.counts[memory]
	if known {
		return c.plan, c.err
	}
	c.plan, c.err = counted(ctx, net, memory)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.counts == nil || len(f.counts) >= keepFacts {
		f.counts = map[int64]countedForm{}
	}
	f.counts[memory] = c
	return c.plan, c.err
}

// factsOf returns the facts of a network. Two callers may both derive them; one of them is remembered.
func (k *Known) factsOf(net *btn.Network) *facts {
	k.bounds.Do(func() { k.networks.Entries = keepFacts })
	who := weak.Make(net)
	if f, ok := k.networks.Get(who); ok {
		return f
	}
	f := &facts{programs: &k.programs, digest: net.Digest(), span: coreSpan(net), mapped: mapWarnings(net)}
	if len(net.Cores)+len(net.Links) > keepTensors {
		return f
	}
	return k.networks.Add(who, f, 0)
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
