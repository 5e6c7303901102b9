package aggregate

// Approximate answers that grow: estimates rung by rung, what they say about each other, and when that is enough.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Why an approximate answer stopped growing.
const (
	endedSettled  = "settled"
	endedComplete = "complete"
	endedDeadline = "deadline"
)

// Settled reports whether a query that grows needs no more values: the rungs that are complete, in sequence, state an
// uncertainty within its accuracy. Queries that do not grow need all their values: false. A query that has failed already needs none.
func Settled(in Input) bool {
	if in.Assignment != nil && in.Assignment.Error != nil {
		return true
	}
	if in.Decomposition == nil || in.Decomposition.Growth == nil {
		return false
	}
	parts, failed := present(in)
	if failed != nil {
		return true
	}
	g := climb(in, parts, false)
	return g.ended == endedSettled
}

// growth is what the complete rungs say.
type growth struct {
	rungs       []rung
	ended       string
	best        int              // rung that is the answer, −1 for none
	uncertainty *float64         // of the best
	moved       bool             // the best has a predecessor in its own sequence
	bp          *btn.Propagation // nil where it was not run
	hard        bool             // tables forbid values together
	unsure      bool             // entries may have been lost to the range of float64
}

// rung is an estimate with what it is made of.
type rung struct {
	btn.EstimateResult
	number int // of the decomposition's rungs
	z      scaled.Number
	parts  []btn.Value
	digits float64 // cancelled in the sum over the slices
	err    *btn.ErrorInfo
}

// part is the value of a component, if it has arrived.
type part struct {
	value btn.Value
	err   *btn.ErrorInfo
	there bool
}

// climb goes up the rungs whose components are all there, until their sequence has settled. Rungs after one that is not
// complete count only when there will be no more.
func climb(in Input, parts []part, last bool) growth {
	d := in.Decomposition
	g := growth{best: -1}
	if in.Assignment != nil {
		g.bp, g.hard, g.unsure = in.Assignment.Propagation, in.Assignment.Hard, in.Assignment.Unsure
	}
	whole := true
	for k := range d.Growth.Rungs {
		r, complete := estimate(d, k, g.hard, parts)
		if !complete {
			whole = false
			if !last {
				return g
			}
			continue
		}
		g.rungs = append(g.rungs, r)
		g.judge()
		if g.settled(d.Growth.Accuracy) {
			g.ended = endedSettled
			return g
		}
	}
	g.ended = endedComplete
	if !whole {
		g.ended = endedDeadline
	}
	return g
}

// settled reports whether what the rungs say needs no further one: the best dropped nothing, or it is known well enough, from
// a sequence of its own and, for truncated legs, from another plan that has got as far.
func (g *growth) settled(accuracy float64) bool {
	if g.best < 0 {
		return false
	}
	best := &g.rungs[g.best]
	if best.lossless() && !g.unsure {
		return true
	}
	if !g.moved || g.uncertainty == nil || *g.uncertainty > accuracy {
		return false
	}
	if best.Family == btn.FamilyRegions {
		return true
	}
	for i := range g.rungs {
		if r := &g.rungs[i]; r.LogZ != nil && r.track() != best.track() && r.level() >= best.level() {
			return true
		}
	}
	return false
}

// estimate sums a rung: Z̃ = Σ_s Z_s over its slices, Z_s = exp(ln Z_BP + Σ_r α_r ln(Z_r/Z_BP)) for regions.
func estimate(d *btn.Decomposition, k int, hard bool, parts []part) (rung, bool) {
	def := &d.Growth.Rungs[k]
	r := rung{number: k, EstimateResult: btn.EstimateResult{
		Family: def.Family, Plan: def.Plan, Bond: def.Bond, Kind: def.Kind, Size: def.Size, Slices: def.Count, Components: def.To - def.From,
	}}
	for i := def.From; i < def.To; i++ {
		p := &parts[i]
		if !p.there {
			return r, false
		}
		if p.err != nil && r.err == nil {
			r.err = p.err
		}
		r.Flops += p.value.Flops
		r.parts = append(r.parts, p.value)
	}
	if r.err != nil {
		r.Failed = r.err.Message
		return r, true
	}
	var err error
	if def.Family == btn.FamilyRegions {
		err = r.regions(d, def)
	} else {
		err = r.truncated()
	}
	if err == nil && hard && r.contradicted() {
		err = errContradiction
	}
	if err == nil && r.z.IsZero() {
		err = fmt.Errorf("the total is exactly 0, and an estimate cannot show that Z is 0")
	}
	if err != nil {
		r.err = failure(fault.FailedEstimate, "%v", err)
		r.Failed = err.Error()
		return r, true
	}
	r.LogZ = finite(r.z.LogAbs())
	return r, true
}

// errContradiction is why regions of constraints fail that leave nothing possible: ln Z of the others says nothing then.
var errContradiction = errors.New("the constraints of a region contradict each other or nearly so: Z may be 0, which the exact way would show")

// contradicted reports whether some region had nothing that is possible.
func (r *rung) contradicted() bool {
	return slices.ContainsFunc(r.parts, func(v btn.Value) bool { return v.Region != nil && v.Region.NonPositive > 0 })
}

func (r *rung) truncated() error {
	discarded := 0.0
	terms := make([]scaled.Number, len(r.parts))
	for i, v := range r.parts {
		terms[i] = v.Z
		if t := v.Truncation; t != nil {
			discarded = max(discarded, t.Discarded)
			r.Truncated = r.Truncated || t.Truncated
			r.Reused = r.Reused || t.Reused
			if r.Relearned == "" {
				r.Relearned = t.Relearned
			}
			r.PeakBytes = max(r.PeakBytes, t.Bytes)
		} else if !v.Z.IsZero() {
			return fmt.Errorf("component %d does not say what it truncated", i)
		}
	}
	r.Discarded = finite(discarded)
	e, err := Sum(ones(len(terms)), terms)
	r.z, r.digits = e.Total, e.CancellationDigits
	return err
}

func (r *rung) regions(d *btn.Decomposition, def *btn.Rung) error {
	r.Truncated = true
	logs, linear := make([]scaled.Number, def.Count), make([]scaled.Number, def.Count)
	lnZ, sum := make([]float64, def.Count), make([]scaled.Number, def.Count)
	seen := make([]bool, def.Count)
	for i, v := range r.parts {
		s := d.Components[def.From+i].Slice
		if v.Region == nil {
			if v.Z.IsZero() { // the slice is impossible
				continue
			}
			return fmt.Errorf("component %d has no regions", i)
		}
		if !seen[s] {
			seen[s], lnZ[s], sum[s] = true, v.Region.LnBethe, scaled.One
		}
		lnZ[s] += v.Region.LnSum
		sum[s] = sum[s].Add(v.Region.Linear)
		r.Regions += v.Region.Regions
		r.PeakBytes = max(r.PeakBytes, 8*math.Exp2(v.Region.Widest))
		linear[s] = scaled.FromLog(v.Region.LnBethe)
	}
	for s := range logs {
		if seen[s] {
			logs[s] = scaled.FromLog(lnZ[s])
			linear[s] = linear[s].Mul(sum[s])
		}
	}
	if e, err := Sum(ones(len(linear)), linear); err == nil && !e.Total.IsZero() {
		r.LogZLinear = finite(e.Total.LogAbs())
	}
	e, err := Sum(ones(len(logs)), logs)
	r.z = e.Total
	return err
}

func ones(n int) []scaled.Number {
	a := make([]scaled.Number, n)
	for i := range a {
		a[i] = scaled.One
	}
	return a
}

// present is collect for queries that may be answered before all their values are there.
func present(in Input) ([]part, *btn.ErrorInfo) {
	parts := make([]part, len(in.Decomposition.Components))
	for _, u := range sortedUnits(in.Values) {
		switch c := u.Component; {
		case u.Query != in.Query:
			return nil, failure(fault.Internal, "a value of query %d arrived for query %d", u.Query, in.Query)
		case c < 0 || c >= len(parts):
			return nil, failure(fault.Internal, "a value of component %d arrived, the decomposition has %d", c, len(parts))
		case parts[c].there && compareUnits(u, btn.UnitValue{Unit: u.Unit, Value: parts[c].value, Error: parts[c].err}) != 0:
			return nil, failure(fault.Internal, "component %d arrived twice with different values", c)
		default:
			parts[c] = part{value: u.Value, err: u.Error, there: true}
		}
	}
	return parts, nil
}

// grown answers a query that grows.
func grown(in Input) (btn.Result, scaled.Number) {
	r, none := start(in), scaled.Number{}
	r.Residual, r.LnExplained, r.ConditionGram = nil, nil, nil
	r.Propagation = finitePropagation(in.Assignment.Propagation)
	fail := func(e *btn.ErrorInfo) (btn.Result, scaled.Number) {
		r.Status, r.Error = "error", e
		return r, none
	}
	parts, failed := present(in)
	if failed != nil {
		return fail(failed)
	}
	g := climb(in, parts, true)
	if g.ended == endedDeadline && !in.Deadline {
		return fail(failure(fault.Internal, "values are missing, and the estimates there are have not settled"))
	}
	r.Ended, r.Run, r.Components = g.ended, &btn.Run{}, 0
	for _, e := range g.rungs {
		r.Estimates = append(r.Estimates, e.EstimateResult)
		r.Run.Flops += e.Flops
		r.Components += e.Components
	}
	r.Warnings = append(r.Warnings, g.warnings(in)...)
	if g.best < 0 {
		switch {
		case len(g.rungs) == 0:
			return fail(failure(fault.Deadline, "the deadline came before the first estimate"))
		default:
			return fail(g.rungs[len(g.rungs)-1].err)
		}
	}
	best := g.rungs[g.best]
	r.Status, r.LogZ, r.Log10Z = "ok", best.LogZ, finite(best.z.Log10Abs())
	r.Uncertainty, r.CancellationDigits = g.uncertainty, finite(best.digits)
	var warning string
	r.Marginals, warning = best.marginals()
	if warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	if r.Marginals != nil {
		if r.MarginalUncertainty = g.marginalChange(r.Marginals); r.MarginalUncertainty == nil {
			r.Warnings = append(r.Warnings, "no other estimate has marginals: nothing is known of their quality, and they need larger bonds than Z")
		}
	}
	return r, best.z
}

// marginals returns those of the rung's slices together, by their weights.
func (r *rung) marginals() ([][]float64, string) {
	var m []*btn.Marginals
	for _, v := range r.parts {
		if v.Marginals != nil {
			m = append(m, v.Marginals)
		} else if !v.Z.IsZero() {
			return nil, ""
		}
	}
	p, warning, err := marginals(ones(len(m)), m)
	if err != nil {
		return nil, err.Error()
	}
	return p, warning
}
