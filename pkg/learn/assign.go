package learn

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/btn"
	contraction "github.com/basetensor/basetensor/pkg/contract"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// MaxClosedFormTerms bounds the number of components of an exact closed-form decomposition.
const MaxClosedFormTerms = 64

// replanFlops is the work above which a query's evidence is worth an elimination order of its own.
const replanFlops = 1e6

// Assign decides for every query which decomposition of net's base tensor answers it, learning what is not in memo
// (nil: nothing is remembered, Cache is "off"). What is learned depends on the network and the settings alone; only an
// elimination order is adapted to a query's evidence, where that is cheaper.
//
// Method exact: C = B along an elimination order, or the closed form where elimination exceeds the memory budget and
// the cores' own ranks are small. Method auto: exact where it fits, else symmetry-cp. A query that exceeds the
// budget has its error in its assignment, with the bytes it needs.
func Assign(ctx context.Context, net *btn.Network, evidence []factorgraph.Evidence, s btn.Settings, memo Memo) (*btn.Job, error) {
	s = s.WithDefaults()
	a := &assigner{ctx: ctx, net: net, settings: s, memo: memo, job: &btn.Job{}, known: map[string]int{}}
	for _, e := range evidence {
		assignment, err := a.assign(e)
		if err != nil {
			if ctxErr := ctx.Err(); ctxErr != nil {
				return nil, ctxErr
			}
			assignment = btn.Assignment{
				Decomposition: -1,
				Cache:         a.cacheState(),
				Error:         &btn.ErrorInfo{Code: fault.CodeOf(err), Message: err.Error(), Stage: "learn-worker"},
			}
		}
		a.job.Assignments = append(a.job.Assignments, assignment)
	}
	return a.job, nil
}

// assigner carries one job's decisions. Decompositions are computed at most once per job and key.
type assigner struct {
	ctx      context.Context
	net      *btn.Network
	settings btn.Settings
	memo     Memo
	job      *btn.Job
	known    map[string]int // key → index into job.Decompositions
	anyMiss  bool
	hits     map[string]bool
}

func (a *assigner) cacheState() string {
	switch {
	case a.memo == nil:
		return "off"
	case a.anyMiss:
		return "miss"
	}
	return "hit"
}

func (a *assigner) assign(e factorgraph.Evidence) (btn.Assignment, error) {
	conditioned, err := a.net.Condition(e)
	if err != nil {
		return btn.Assignment{}, fault.Wrap(fault.BadInput, err)
	}
	switch a.settings.Method {
	case btn.MethodSymmetryCP:
		return a.symmetryCP(conditioned, nil)
	case btn.MethodExact, btn.MethodAuto:
	default:
		return btn.Assignment{}, fault.New(fault.BadInput, "learn: unknown method %q", a.settings.Method)
	}
	exact, err := a.exact(conditioned)
	if err == nil || a.settings.Method == btn.MethodExact || !errors.Is(err, einsum.ErrOverBudget) {
		return exact, err
	}
	return a.symmetryCP(conditioned, []string{"the exact way does not fit: " + err.Error()})
}

// exact assigns C = B along an order, or the closed form.
func (a *assigner) exact(conditioned *btn.Network) (btn.Assignment, error) {
	shape, err := einsum.Shape(a.net)
	if err != nil {
		return btn.Assignment{}, err
	}
	index, hit, err := a.remember("exact", shape, func(context.Context) (*btn.Decomposition, error) {
		return exactDecomposition(a.net, shape, a.settings.Memory)
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	base := a.job.Decompositions[index]
	assignment := btn.Assignment{Decomposition: index, Cache: hit, LnLinks: math.Inf(-1)}
	if len(base.Components) != 1 || base.Components[0].Class != btn.ClassBase {
		return assignment, nil // closed form: no order to adapt, no tables to fit
	}
	plan := base.Plan
	under, err := einsum.Shape(conditioned)
	if err != nil {
		return btn.Assignment{}, err
	}
	if !sameDims(under, shape) {
		plan = elimination.Evaluate(under, base.Components[0].Order)
		if plan.Flops > replanFlops {
			own := elimination.Best(under)
			if p := elimination.Evaluate(under, own); p.Flops < plan.Flops {
				plan = p
				assignment.Decomposition = len(a.job.Decompositions)
				a.job.Decompositions = append(a.job.Decompositions, baseDecomposition(own, p))
			}
		}
	}
	assignment.Plan = &plan
	if plan.Bytes > float64(a.settings.Memory) {
		return btn.Assignment{}, einsum.OverBudget(plan, a.settings.Memory)
	}
	return assignment, nil
}

// exactDecomposition is what exact learns once per network: an order for C = B, or a closed form. Elimination comes
// first where it fits, because it adds no terms of both signs; a closed form of one component has none to add either,
// and is taken when it is cheaper (a symmetric core over 200 variables: count polynomials against a chain of counters).
func exactDecomposition(net *btn.Network, shape elimination.Hypergraph, memory int64) (*btn.Decomposition, error) {
	order := elimination.Best(shape)
	plan := elimination.Evaluate(shape, order)
	most := 0
	switch {
	case plan.Bytes > float64(memory):
		most = MaxClosedFormTerms
	case plan.Flops > replanFlops:
		most = 1
	}
	if most > 0 {
		closed, ok, err := ClosedForm(net, most)
		if err != nil {
			return nil, err
		}
		if ok && (most > 1 || contraction.Cost(net, closed, 0) < plan.Flops) {
			closed.Method = btn.MethodExact
			return closed, nil
		}
	}
	return baseDecomposition(order, plan), nil
}

func baseDecomposition(order []int, plan btn.Plan) *btn.Decomposition {
	return &btn.Decomposition{
		Method:        btn.MethodExact,
		Components:    []btn.Component{{Class: btn.ClassBase, Order: order}},
		Alpha:         []scaled.Number{scaled.One},
		Exact:         true,
		LnNormError:   math.Inf(-1),
		ConditionGram: 1,
		Plan:          plan,
	}
}

// symmetryCP assigns the paper's learned decomposition; a closed form with few enough terms is used where B has one.
func (a *assigner) symmetryCP(conditioned *btn.Network, warnings []string) (btn.Assignment, error) {
	s := a.settings
	s.Method = btn.MethodSymmetryCP
	index, hit, err := a.remember(settingsKey(s), elimination.Hypergraph{}, func(ctx context.Context) (*btn.Decomposition, error) {
		closed, ok, err := ClosedForm(a.net, s.Components)
		if err != nil || ok {
			return closed, err
		}
		affordable, warning := Economise(a.net, s)
		dec, err := Decompose(ctx, a.net, affordable)
		if err == nil && warning != "" {
			dec.Warnings = append(dec.Warnings, warning)
		}
		return dec, err
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	return btn.Assignment{Decomposition: index, Cache: hit, LnLinks: btn.LnLinks(conditioned), Warnings: warnings}, nil
}

// settingsKey lists what a learned decomposition depends on beside the network.
func settingsKey(s btn.Settings) string {
	return fmt.Sprintf("%s components=%d seed=%d nonnegative=%t maps=%t sweeps=%d starts=%d flops=%g", s.Method, s.Components, s.Seed, s.NonNegative, s.LearnMaps, s.Sweeps, s.Starts, s.LearnFlops)
}

// remember returns the index of the decomposition of a key, computing it through the memo at most once per job.
func (a *assigner) remember(settings string, shape elimination.Hypergraph, compute func(context.Context) (*btn.Decomposition, error)) (int, string, error) {
	key := a.key(settings, shape)
	if index, ok := a.known[key]; ok {
		if a.memo == nil {
			return index, "off", nil
		}
		if a.hits[key] {
			return index, "hit", nil
		}
		return index, "miss", nil
	}
	var dec *btn.Decomposition
	var err error
	hit := false
	if a.memo == nil {
		dec, err = compute(a.ctx)
	} else {
		dec, hit, err = a.memo.Do(a.ctx, key, compute)
	}
	if err != nil {
		return -1, "", err
	}
	if a.hits == nil {
		a.hits = map[string]bool{}
	}
	a.known[key], a.hits[key] = len(a.job.Decompositions), hit
	a.anyMiss = a.anyMiss || !hit
	a.job.Decompositions = append(a.job.Decompositions, dec)
	return a.remember(settings, shape, compute)
}

// key identifies a decomposition by everything it depends on: algorithm version, base tensor, settings and, for an
// elimination order, the shape of the network it orders and the budget that chose between order and closed form.
func (a *assigner) key(settings string, shape elimination.Hypergraph) string {
	base := a.net.BaseDigest()
	h := sha256.New()
	h.Write(base[:])
	h.Write([]byte(settings))
	var word [8]byte
	number := func(x int) {
		binary.LittleEndian.PutUint64(word[:], uint64(x))
		h.Write(word[:])
	}
	if settings == "exact" {
		number(int(a.settings.Memory))
	}
	number(len(shape.Dims))
	for _, d := range shape.Dims {
		number(d)
	}
	for _, edge := range shape.Edges {
		number(len(edge))
		for _, v := range edge {
			number(v)
		}
	}
	return "btn:v1:decomposition:" + AlgorithmVersion + ":" + hex.EncodeToString(h.Sum(nil))
}

func sameDims(a, b elimination.Hypergraph) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if a.Dims[i] != b.Dims[i] {
			return false
		}
	}
	return true
}
