// Package cached encodes the values that workers keep in the cache: decompositions, and the networks of registered
// models.
package cached

import (
	"bytes"
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/cache"
	_ "github.com/basetensor/basetensor/internal/methods" // plans of the cache have parts of all of them
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Memo remembers plans as bytes in a cache, and the plans it has read last also decoded: a circuit takes longer to read
// than to evaluate. It is the proposal.Memo of learn-worker. Plans are shared and must not be changed.
type Memo struct {
	Cache *cache.Cache

	bounds sync.Once // sets the bound of plans
	plans  memo.LRU[string, decodedPlan]
}

// decodedPlan is a plan with its encoded bytes.
type decodedPlan struct {
	encoded []byte
	plan    *btn.Plan
}

const (
	// maxPlanBytes bounds the memory of the decoded plans. A plan takes about twice the size of its bytes, and planOverhead
	// besides, which is most of a small one.
	maxPlanBytes = 64 << 20
	planOverhead = 768
)

// decode returns the plan that the bytes b, found under key, encode. If a decoded plan with the same bytes is
// remembered under key, it returns that.
func (m *Memo) decode(key string, b []byte) (*btn.Plan, error) {
	if r, ok := m.plans.Get(key); ok && bytes.Equal(r.encoded, b) {
		return r.plan, nil
	}
	plan, err := message.DecodePlan(b)
	if err == nil {
		m.remember(key, b, plan)
	}
	return plan, err
}

// remember keeps a decoded plan.
func (m *Memo) remember(key string, b []byte, plan *btn.Plan) {
	m.bounds.Do(func() { m.plans.Bytes = maxPlanBytes })
	m.plans.Put(key, decodedPlan{b, plan}, int64(len(key)+2*len(b))+planOverhead)
}

// Of returns the memo of an owner, which finds only the plans of that owner. Both memos share one bound. If owner is
// "", it returns m.
func (m *Memo) Of(owner string) proposal.Memo {
	if owner == "" {
		return m
	}
	return ownedPlans{m, owner}
}

// ownedPlans is the memo of one owner.
type ownedPlans struct {
	*Memo
	owner string
}

// Do implements proposal.Memo with the owner's own key.
func (o ownedPlans) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	return o.Memo.Do(ctx, cache.KeyOf(o.owner, key), compute)
}

// Do returns the plan under key, and true if it was remembered. Otherwise it computes the plan and stores it. If
// another worker was first, it returns that worker's plan. A stored plan that cannot be decoded, perhaps from another
// version, is forgotten and computed again.
func (m *Memo) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	var plan *btn.Plan // set if this call computes
	var encoded []byte // its bytes
	produce := func(ctx context.Context) ([]byte, error) {
		var err error
		if plan, err = compute(ctx); err != nil {
			return nil, err
		}
		encoded, err = message.EncodePlan(plan)
		return encoded, fault.Wrap(fault.Internal, err)
	}

	b, hit, err := m.Cache.GetOrCompute(ctx, key, produce)
	if err != nil {
		return nil, false, err
	}

	if plan != nil && bytes.Equal(b, encoded) {
		m.remember(key, b, plan)
		return plan, false, nil
	}

	if plan, err = m.decode(key, b); err == nil {
		return plan, hit, nil
	}

	// The stored plan cannot be decoded.
	m.Cache.Forget(ctx, key)
	plan, err = compute(ctx)
	return plan, false, err
}

// Value describes a value of the cache, for people.
type Value struct {
	// These fields describe a plan.
	Method     query.Method `json:"method,omitempty"`
	Exact      bool         `json:"exact,omitempty"`
	Components int          `json:"components,omitempty"`
	Plan       *query.Cost  `json:"plan,omitempty"` // the cost of the first estimate
	Warnings   []string     `json:"warnings,omitempty"`
	Circuit    *Circuit     `json:"circuit,omitempty"`

	// These fields describe the network of a registered model.
	Network   string `json:"network,omitempty"` // digest of its network's bytes
	Variables int    `json:"variables,omitempty"`
}

// Circuit says how large a circuit is.
type Circuit struct {
	Edges     int   `json:"edges"` // cost of a pass
	Bytes     int64 `json:"bytes"` // in memory
	Variables int   `json:"variables"`
	// Functional and Parametric are as of circuit.Compiled.
	Functional bool `json:"functional,omitempty"`
	Parametric bool `json:"parametric,omitempty"`
}

// circuitOf describes the circuit of a plan's first part, or returns nil if that part has no circuit, or the circuit
// cannot be compiled now. A circuit has the sums and products that compute Z; all parts of a plan share one.
func circuitOf(ctx context.Context, p *btn.Plan) *Circuit {
	if len(p.Estimates) == 0 || len(p.Estimates[0].Parts) == 0 {
		return nil
	}
	compiled, ok := btn.SharedData(p.Estimates[0].Parts[0]).(*circuit.Compiled)
	if !ok {
		return nil
	}
	c, err := compiled.Circuit(ctx)
	if err != nil {
		return nil
	}
	return &Circuit{
		Edges: c.Edges(), Bytes: c.Bytes(), Variables: c.Variables(), Functional: compiled.Functional, Parametric: compiled.Parametric,
	}
}

// Describe decodes the value under key and describes it for people. The description of an unknown kind is empty.
func Describe(ctx context.Context, key string, value []byte) (*Value, error) {
	switch cache.KindOf(key) {
	case "decomposition": // a plan
		d, err := message.DecodePlan(value)
		if err != nil {
			return nil, err
		}
		var cost *query.Cost
		if len(d.Estimates) > 0 {
			cost = &d.Estimates[0].Cost
		}
		return &Value{
			Method:     d.Method,
			Exact:      d.Exact(),
			Components: d.PartCount(),
			Plan:       cost,
			Warnings:   d.Warnings,
			Circuit:    circuitOf(ctx, d),
		}, nil
	case "network":
		p, ok := DecodeNetwork(value)
		if !ok {
			return nil, fault.New(
				fault.BadInput, "pipeline: %s: not a network's digest and domains", key,
			)
		}
		return &Value{Network: p.Blob, Variables: len(p.Domains)}, nil
	}
	return &Value{}, nil
}

// Overflow stores values that are too large for Redis as blobs.
type Overflow struct{ Blobs *bus.Blobs }

// Get returns the blob of a digest.
func (o Overflow) Get(ctx context.Context, digest string) ([]byte, error) {
	return o.Blobs.Get(ctx, digest)
}

// Put stores value as a blob, under its own digest.
func (o Overflow) Put(ctx context.Context, _ string, value []byte) error {
	_, err := o.Blobs.Put(ctx, value)
	return err
}
