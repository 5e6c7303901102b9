// Package ladder proposes estimates by truncated legs: a sequence of growing bonds along searched plans, within a budget.
package ladder

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// price returns the flops of a contraction along one plan at a bond, and its bytes at the peak.
type price func(bond int) (flops, bytes float64, err error)

// memoised returns the same prices from a memory: p computes that of each bond once, since a ladder asks for it several times.
func (p price) memoised() price {
	type flopsAndBytes struct{ flops, bytes float64 }
	prices := map[int]flopsAndBytes{}
	return func(bond int) (float64, float64, error) {
		if earlier, ok := prices[bond]; ok {
			return earlier.flops, earlier.bytes, nil
		}
		flops, bytes, err := p(bond)
		if err == nil {
			prices[bond] = flopsAndBytes{flops, bytes}
		}
		return flops, bytes, err
	}
}

// buildRungs returns the rungs of a ladder: estimates at growing bonds along several plans. prices has the prices of each plan, the most
// trusted plan first. At each bond every plan that fits the memory has a rung, so that the ladder shows both how the estimates of a plan
// change and how far plans are apart. If s.Bond is set, it is the last bond. Otherwise the ladder grows with the budget (growRungs). If a
// price takes too long, it returns the rungs so far with the error.
func buildRungs(prices []price, s query.Settings) ([]rung, error) {
	l := builder{prices: prices, settings: s, remaining: s.Budget}
	if s.Bond == 0 {
		return l.growRungs()
	}
	l.remaining = math.Inf(1)
	for _, bond := range []int{(s.Bond + 3) / 4, (s.Bond + 1) / 2, s.Bond} { // a quarter and a half, rounded up
		if n := len(l.rungs); n > 0 && l.rungs[n-1].bond == bond { // small bonds coincide
			continue
		}
		if _, err := l.addBond(bond); err != nil {
			return nil, err
		}
	}
	return l.rungs, nil
}

// growRungs adds rungs whose bonds double, from the first one that is cheap, and returns them. The ladder ends if a larger bond would
// change nothing along the first plan, or if the next rungs exceed the remaining budget. Then it adds the largest bond that fits. With an
// error it returns the rungs so far. A rung is an estimate along one plan at one bond.
func (l *builder) growRungs() ([]rung, error) {
	first := policy.FirstBond
	for first > 2 && (!l.fitsMemory(first) || !l.isCheap(first)) {
		first /= 2
	}
	for bond := first; bond <= policy.MostBond && len(l.rungs) < policy.MostRungs; bond *= 2 {
		isAdded, err := l.addBond(bond)
		if err != nil {
			return l.rungs, err
		}
		if !isAdded {
			if bond > first { // bond/2 fits and bond does not
				err = l.addLargest(bond/2, bond)
			}
			return l.rungs, err
		}
		if isExhausted, err := l.isExhausted(bond); err != nil || isExhausted {
			return l.rungs, err
		}
	}
	return l.rungs, nil
}

// firstShare is the share of the budget that the first estimate may take, if a smaller bond can achieve that.
// Measured: a quarter of it makes stated errors larger on 6 of 11 models, four times of it changes
// 2 of 26, decision 20. A deadline may cut off all but a sixteenth.
const firstShare = 1.0 / 16

// isCheap reports whether an estimate at a bond along the first plan takes at most firstShare of the budget, so that it is there early.
func (l *builder) isCheap(bond int) bool {
	flops, _, err := l.prices[0](bond)
	return err == nil && flops <= firstShare*l.settings.Budget
}

// fitsMemory reports whether some plan fits the memory at a bond.
func (l *builder) fitsMemory(bond int) bool {
	for _, price := range l.prices {
		if _, bytes, err := price(bond); err == nil && bytes <= float64(l.settings.Memory) {
			return true
		}
	}
	return false
}

// builder builds a ladder.
type builder struct {
	prices    []price // by plan, the most trusted first
	settings  query.Settings
	remaining float64 // flops of the budget that the rungs leave
	rungs     []rung
}

// addBond appends the rungs of a bond that fit (rungsAt). isAdded is false if there are none.
func (l *builder) addBond(bond int) (isAdded bool, err error) {
	rungs, err := l.rungsAt(bond)
	for _, r := range rungs {
		l.remaining -= r.cost.Flops
	}
	l.rungs = append(l.rungs, rungs...)
	return len(rungs) > 0, err
}

// rungsAt returns a rung at a bond for each plan that fits the memory. It returns none if the remaining budget does not hold all of them,
// with one exception: for the first two rungs of the ladder it returns those that the budget holds, and the very first one in any case. A
// rung is an estimate along one plan at one bond.
func (l *builder) rungsAt(bond int) (rungs []rung, err error) {
	total := 0.0 // flops of rungs
	for k, price := range l.prices {
		flops, bytes, err := price(bond)
		if err != nil {
			return nil, err
		}
		if bytes > float64(l.settings.Memory) {
			continue
		}
		isVeryFirst := len(l.rungs) == 0 && len(rungs) == 0
		if !isVeryFirst && total+flops > l.remaining {
			if len(rungs) > 0 && len(l.rungs) < 2 {
				break // at the bottom of the ladder one plan alone is better than none
			}
			return nil, nil // later rungs have to be there for all plans
		}
		total += flops
		rungs = append(rungs, rung{plan: k, bond: bond, cost: query.Cost{Flops: flops, Bytes: bytes}})
	}
	return rungs, nil
}

// ladderSlack is the smallest ratio of the flops at twice the bond to those at the bond for which a larger bond changes the estimate.
// Measured: 1.005 changes nothing on 26 models, 2 ends two of them too soon, decision 20.
const ladderSlack = 1.02

// isExhausted reports whether a larger bond would change nothing along the first plan: twice the bond costs no more.
func (l *builder) isExhausted(bond int) (bool, error) {
	flops, _, err := l.prices[0](bond)
	if err != nil {
		return false, err
	}
	doubleFlops, _, err := l.prices[0](2 * bond)
	return doubleFlops <= ladderSlack*flops, err
}

// addLargest adds the estimates of the largest bond that fits the budget, between low, which fits, and high, which does not. It tries low +
// k·step with a step of an eighth of low, and finds k by bisection, since prices grow with the bond. It adds nothing if k is 0 or 1.
// l.rungsAt returns no rungs for a bond that does not fit.
func (l *builder) addLargest(low, high int) error {
	step := max(low/8, 1)               // chosen
	fits, exceeds := 0, (high-low)/step // the largest k that is known to fit, and the smallest that is known not to
	for exceeds-fits > 1 {
		middle := (fits + exceeds) / 2
		rungs, err := l.rungsAt(low + middle*step)
		if err != nil {
			return err
		}
		if len(rungs) > 0 {
			fits = middle
		} else {
			exceeds = middle
		}
	}
	if fits <= 1 { // hardly more than low, which has rungs already
		return nil
	}
	_, err := l.addBond(low + fits*step)
	return err
}

// rung is an estimate of truncated legs before it is written out.
type rung struct {
	plan   int // the number of its plan
	bond   int
	sliced []int      // variables that are fixed in each slice; nil if there are no slices
	cost   query.Cost // of all slices together
}

// estimate returns the estimate of a rung, with a part for each slice. A rung is an estimate along one plan at one bond, in slices if that
// does not fit the memory: one for each choice of values of the variables r.sliced.
func (r rung) estimate(plans []truncated.TruncatedPlan, domains []int) btn.Estimate {
	plan := &plans[r.plan]
	e := btn.Estimate{
		Rule:     btn.Linear,
		Track:    fmt.Sprintf("%s %d", plan.Family, plan.Number),
		Slices:   sliceCount(r.sliced, domains),
		Lossless: plan.Family == query.FamilyTree, // exact if no part truncates anything
		Cost:     r.cost,
	}
	e.Level = math.Log2(float64(r.bond)) + math.Log2(float64(e.Slices))
	for slice := range e.Slices {
		e.Parts = append(e.Parts, &truncated.Truncated{Plan: plan, Bond: r.bond, Slice: btn.Slice{Variables: r.sliced, At: slice}})
	}
	return e
}

// sliceCount returns the number of slices if the given variables are fixed: the product of their numbers of values.
func sliceCount(variables, domains []int) int64 {
	count := int64(1)
	for _, v := range variables {
		count *= int64(domains[v])
	}
	return count
}

// Bond returns the bond of an estimate by truncated legs: the largest number of values on a leg.
func Bond(e *btn.Estimate) int { return e.Parts[0].(*truncated.Truncated).Bond }

// FirstPart returns the first part of an estimate by truncated legs. It returns nil for an estimate by another method.
func FirstPart(e *btn.Estimate) *truncated.Truncated {
	legs, _ := e.Parts[0].(*truncated.Truncated) // nil if the part is another one
	return legs
}
