// Package cached encodes the values that workers keep in the cache: decompositions, and the networks of registered models.
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

// Memo remembers plans in a cache, as bytes, and the plans it has read last, decoded: a circuit
// takes longer to read than to evaluate. It is the proposal.Memo of learn-worker; plans are shared and
// must not be changed.
type Memo struct {
	Cache *cache.Cache

	bounds sync.Once
	read   memo.LRU[string, readPlan]
}

// readPlan is a plan and the bytes that it was read from, or written to.
type readPlan struct {
	from []byte
	plan *btn.Plan
}

// mostRead bounds the plans that are remembered as such, in bytes of the process. A plan takes about as much as its written form once
// more, and readOverhead beside both: a small one is mostly that.
const (
	mostRead     = 64 << 20
	readOverhead = 768
)

// decode returns the plan that b is, which the caller has found under key: the one remembered, where it was read from the same bytes.
func (m *Memo) decode(key string, b []byte) (*btn.Plan, error) {
	if r, ok := m.read.Get(key); ok && bytes.Equal(r.from, b) {
		return r.plan, nil
	}
	plan, err := message.DecodePlan(b)
	if err == nil {
		m.keep(key, b, plan)
	}
	return plan, err
}

// keep remembers a plan.
func (m *Memo) keep(key string, b []byte, plan *btn.Plan) {
	m.bounds.Do(func() { m.read.Bytes = mostRead })
	m.read.Put(key, readPlan{b, plan}, int64(len(key)+2*len(b))+readOverhead)
}

// Of returns the memo of an owner: it finds the plans of that one alone. Both share their bounds.
func (m *Memo) Of(owner string) proposal.Memo {
	if owner == "" {
		return m
	}
	return ownedPlans{m, owner}
}

type ownedPlans struct {
	*Memo
	owner string
}

// Do implements proposal.Memo.
func (o ownedPlans) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	return o.Memo.Do(ctx, cache.KeyOf(o.owner, key), compute)
}

// Do returns the plan under key, and whether it was remembered; else it computes the plan and
// stores it. Where another worker was first it returns that worker's plan. A stored plan that
// cannot be decoded, written by another version perhaps, is forgotten and computed again.
func (m *Memo) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	var plan *btn.Plan // set if this call computes
	var own []byte
	produce := func(ctx context.Context) ([]byte, error) {
		var err error
		if plan, err = compute(ctx); err != nil {
			return nil, err
		}
		own, err = message.EncodePlan(plan)
		return own, fault.Wrap(fault.Internal, err)
	}

	b, hit, err := m.Cache.GetOrCompute(ctx, key, produce)
	if err != nil {
		return nil, false, err
	}

	if plan != nil && bytes.Equal(b, own) {
		m.keep(key, b, plan)
		return plan, false, nil
	}

	if plan, err = m.decode(key, b); err == nil {
		return plan, hit, nil
	}

	m.Cache.Forget(ctx, key)
	plan, err = compute(ctx)
	return plan, false, err
}

// Value describes a value of the cache, for people.
type Value struct {
	// Of a plan.
	Method     query.Method `json:"method,omitempty"`
	Exact      bool         `json:"exact,omitempty"`
	Components int          `json:"components,omitempty"`
	Plan       *query.Cost  `json:"plan,omitempty"` // the cost of the first estimate
	Warnings   []string     `json:"warnings,omitempty"`
	Circuit    *Circuit     `json:"circuit,omitempty"`

	// Of a registered model.
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

// circuitOf describes the circuit of a plan; nil for none.
func circuitOf(ctx context.Context, p *btn.Plan) *Circuit {
	if len(p.Estimates) == 0 || len(p.Estimates[0].Parts) == 0 {
		return nil
	}
	compiled, ok := btn.Shared(p.Estimates[0].Parts[0]).(*circuit.Compiled)
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

// Describe decodes and describes the value under key. The description of an unknown kind is empty.
func Describe(ctx context.Context, key string, value []byte) (*Value, error) {
	switch cache.KindOf(key) {
	case "decomposition":
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
			Components: d.Len(),
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

// Overflow stores values as blobs that are too large for Redis.
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
