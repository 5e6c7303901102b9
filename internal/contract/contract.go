// Package contract computes the value Z(T^Q) of one component of a decomposition: the network with its base tensor
// replaced by Q = C ∘ R (Lemmas 2 to 4, and C = B exactly).
package contract

// Component: the entry point, checks, and the dispatch on the component's class.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrComponent says that a component does not fit the network: its class, levels or shapes are wrong.
var ErrComponent = errors.New("contract: component")

// ErrMemory says that a component needs more memory than the budget.
var ErrMemory = errors.New("contract: over the memory budget")

// Options of a contraction. The zero value works.
type Options struct {
	Memory  int64 // bytes for tables and count polynomials; 0 means btn.DefaultMemory
	Threads int   // of the class base, 0 means all processors; the value has the same bits for any number
	// Marginals asks for Value.Marginals too, at about three times the cost.
	Marginals bool
	// Joint asks for Value.Joint too, of these variables: of slices of a contraction tree and of closed forms.
	Joint []int
	// Base and Evidence are the network before it was conditioned, and on what: for components of approximate classes,
	// whose plans serve any evidence, and of class base on small networks, which are compiled without evidence.
	Base     *btn.Network
	Evidence factorgraph.Evidence
	// Messages are those of belief propagation on the conditioned network, for class region; nil: it is run.
	Messages []float64
	// Projectors remembers those of trees without evidence, which few observations may use; nil: they are learned each time.
	Projectors ProjectorMemo
	// Shared may have what the component has in common with the one before; nil: everything is made anew.
	Shared *Shared
}

// Component returns Z(T^{Q^(i)}) · Scale for component i of dec, without its weight α_i. The network is valid, and conditioned
// on the query's evidence already. The classes and their costs, n legs, k links L^(j) of n_j legs:
//
//	rank-one            Π_j ⟨L^(j), ⊗v_ℓ⟩                          Lemma 2, O(Σ_j d^{n_j}), O(d·n_j) for links in CP form
//	cp                  Σ_t w_t Π_j ⟨L^(j), ⊗v_ℓt⟩                 Lemma 2, the rank times as much
//	symmetric           Σ_c S_c [z^c] Π_j p_j(z), R = 1           Lemma 3, O(Σ_j d^{n_j} + n²) for two levels
//	symmetry-rank-one   the same with R absorbed into the links   Lemma 4, as Lemma 3
//	base                C = B, exactly, along the component's elimination order
//	parts               C = B, exactly, as the product of the network's connected parts (Decomposition.Parts)
//	truncated           C = B with truncated legs, one slice of a rung, along its plan
//	region              regions of one slice of a rung, in the BP gauge: Value.Region
//
// Learned maps O_ℓ (dec.Rotations) act on the leg weights: W_ℓ[x, a] = Σ_{y: λ(y)=a} O_ℓ[x, y] v_ℓ[y]. The class base is exact in
// any coordinates and ignores them.
//
// With Options.Marginals, Value.Marginals holds w_v(x) ∂Z/∂w_v(x) of every variable and value, by one pass back over what
// gave Z: products without one link for the classes of rank one, correlations down the product tree for the symmetric
// ones, derivatives step by step for the class base. Nothing is divided by.
//
// The same arguments give the same bits. ctx is looked at between links and between products.
// Errors: ErrComponent where dec and net disagree, ErrNoVariables where there are no variables to have marginals, ErrMemory (with the bytes needed; fault.OverBudget), those of
// tensor.CountPoly, and ctx's.
func Component(ctx context.Context, net *btn.Network, dec *btn.Decomposition, i int, o Options) (btn.Value, error) {
	if o.Memory == 0 {
		o.Memory = btn.DefaultMemory
	}
	if err := check(net, dec, i); err != nil {
		return btn.Value{}, fault.Wrap(fault.BadInput, err)
	}
	if err := ctx.Err(); err != nil {
		return btn.Value{}, err
	}
	j := job{ctx: ctx, net: net, dec: dec, q: &dec.Components[i], ops: &countspace.Ops{}, memory: o.Memory, threads: o.Threads, options: o}
	if o.Marginals {
		m, err := newCollected(net)
		if err != nil {
			return btn.Value{}, err
		}
		j.m = m
	}
	if len(o.Joint) > 0 {
		if err := j.checkJoint(o.Joint); err != nil {
			return btn.Value{}, err
		}
		j.joint = o.Joint
	}
	v, err := j.run()
	if err != nil {
		return btn.Value{}, fmt.Errorf("contract: component %d (%s): %w", i, j.q.Class, err)
	}
	return v, nil
}

// job is one contraction.
type job struct {
	ctx     context.Context
	net     *btn.Network
	dec     *btn.Decomposition
	q       *btn.Component
	ops     *countspace.Ops
	memory  int64
	threads int
	m       *collected // nil: no marginals
	joint   []int      // nil: no joint marginal
	options Options
}

func (j job) run() (btn.Value, error) {
	switch j.q.Class {
	case btn.ClassParts:
		return j.byParts()
	case btn.ClassRankOne:
		return j.value(func(j job) (scaled.Number, error) { return j.rankOne(j.q.R, scaled.One) })
	case btn.ClassCP:
		return j.value(job.cp)
	case btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		return j.value(job.symmetric)
	case btn.ClassTruncated:
		return j.truncated()
	case btn.ClassRegion:
		return j.regions()
	}
	return j.base()
}

// check holds a component against the network, so that what follows can index without fear.
func check(net *btn.Network, dec *btn.Decomposition, i int) error {
	if i < 0 || i >= len(dec.Components) {
		return fmt.Errorf("%w %d: there are %d", ErrComponent, i, len(dec.Components))
	}
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%w %d: %w", ErrComponent, i, fmt.Errorf(format, args...))
	}
	q := &dec.Components[i]
	if len(dec.Rotations) != 0 && len(dec.Rotations) != len(net.Dims) {
		return wrong("%d learned maps for %d legs", len(dec.Rotations), len(net.Dims))
	}
	for l, o := range dec.Rotations {
		if d := net.Dims[l]; o != nil && len(o) != d*d {
			return wrong("learned map of leg %d has %d entries, dimension %d needs its square", l, len(o), d)
		}
	}
	switch q.Class {
	case btn.ClassRankOne:
		return checkVectors(net, q, wrong)
	case btn.ClassCP:
		return checkCP(net, q, wrong)
	case btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		if q.Class == btn.ClassSymmetric && q.R != nil {
			return wrong("class symmetric has R = 1, vectors are given")
		}
		if err := checkVectors(net, q, wrong); err != nil {
			return err
		}
		return checkSymmetricPart(net, dec, q, wrong)
	case btn.ClassBase:
		return nil
	case btn.ClassParts:
		if err := net.CheckParts(dec.Parts); err != nil {
			return wrong("%w", err)
		}
		return nil
	case btn.ClassTruncated, btn.ClassRegion:
		return checkRung(dec, q, wrong)
	}
	return wrong("unknown class %q", q.Class)
}

// checkRung holds a component of an approximate class against the decomposition's rungs.
func checkRung(dec *btn.Decomposition, q *btn.Component, wrong wrongf) error {
	if dec.Growth == nil || q.Rung < 0 || q.Rung >= len(dec.Growth.Rungs) {
		return wrong("rung %d does not exist", q.Rung)
	}
	r := &dec.Growth.Rungs[q.Rung]
	if q.Class == btn.ClassTruncated && (r.Plan < 0 || r.Plan >= len(dec.Growth.Plans)) {
		return wrong("plan %d does not exist", r.Plan)
	}
	return nil
}

type wrongf func(format string, args ...any) error

func checkVectors(net *btn.Network, q *btn.Component, wrong wrongf) error {
	if len(q.R) != 0 && len(q.R) != len(net.Dims) {
		return wrong("vectors for %d legs, the network has %d", len(q.R), len(net.Dims))
	}
	for l, v := range q.R {
		if v != nil && len(v) != net.Dims[l] {
			return wrong("vector of leg %d has %d entries, the leg has dimension %d", l, len(v), net.Dims[l])
		}
	}
	return nil
}

func checkCP(net *btn.Network, q *btn.Component, wrong wrongf) error {
	if q.CP == nil || len(q.CP.Shape) != len(net.Dims) || len(q.CP.Vectors) != len(net.Dims) {
		return wrong("needs a CP tensor over all %d legs", len(net.Dims))
	}
	for l, d := range net.Dims {
		switch v := q.CP.Vectors[l]; {
		case q.CP.Shape[l] != d:
			return wrong("the CP tensor has dimension %d on leg %d, the leg has %d", q.CP.Shape[l], l, d)
		case v == nil && len(q.CP.Weights) != d:
			return wrong("identity vectors on leg %d need rank %d, the rank is %d", l, d, len(q.CP.Weights))
		case v != nil && len(v) != d*len(q.CP.Weights):
			return wrong("vectors of leg %d have %d entries, %d terms of dimension %d are needed", l, len(v), len(q.CP.Weights), d)
		}
	}
	return nil
}

func checkSymmetricPart(net *btn.Network, dec *btn.Decomposition, q *btn.Component, wrong wrongf) error {
	if err := dec.Levels.Validate(net.Dims); err != nil {
		return wrong("%w", err)
	}
	shape := dec.Levels.Shape()
	if len(q.S.Shape) != len(shape) {
		return wrong("S has %d count variables, the levels have %d", len(q.S.Shape), len(shape))
	}
	entries, err := dec.Levels.Size()
	if err != nil {
		return wrong("%w", err)
	}
	for a, s := range shape {
		if q.S.Shape[a] != s {
			return wrong("S has %d counts at level %d, the levels have %d", q.S.Shape[a], a+1, s)
		}
	}
	if q.S.Coef.Len() != entries || (q.S.Coef.Exp != nil && len(q.S.Coef.Exp) != entries) {
		return wrong("S has %d coefficients, its shape %v needs %d", q.S.Coef.Len(), shape, entries)
	}
	if !q.S.Coef.IsFinite() {
		return wrong("S has an entry that is not finite")
	}
	return nil
}
