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

// price returns the flops of a contraction at a bond, and its bytes at the peak.
type price func(bond int) (flops, bytes float64, err error)

// remember returns p with a memory: it computes the price of each bond once, which a ladder asks for several times.
func (p price) remember() price {
	type known struct{ flops, bytes float64 }
	prices := map[int]known{}
	return func(bond int) (float64, float64, error) {
		if k, ok := prices[bond]; ok {
			return k.flops, k.bytes, nil
		}
		flops, bytes, err := p(bond)
		if err == nil {
			prices[bond] = known{flops, bytes}
		}
		return flops, bytes, err
	}
}

// buildRungs returns the rungs of truncated legs along plans with these prices, the most trusted plan first. Bonds double from a first
// one. At each bond all plans that fit the memory have a rung, so that the sequence shows both how the estimates of a plan change and how
// far plans are apart. If s.Bond is set, it is the last bond. Otherwise the ladder ends if the first plan would change no more, or if the
// next rungs exceed the remaining budget; the last rung then has the largest bond that fits. If a price is late, it returns the rungs so
// far with the error.
func buildRungs(prices []price, s query.Settings) ([]rung, error) {
	l := steps{prices: prices, s: s, remaining: s.Budget}
	if s.Bond > 0 {
		l.remaining = math.Inf(1)
		for _, bond := range []int{(s.Bond + 3) / 4, (s.Bond + 1) / 2, s.Bond} {
			if n := len(l.rungs); n > 0 && l.rungs[n-1].bond == bond {
				continue
			}
			if _, err := l.addBond(bond); err != nil {
				return nil, err
			}
		}
		return l.rungs, nil
	}

	first := policy.FirstBond
	for first > 2 && (!l.fitsMemory(first) || !l.isCheap(first)) {
		first /= 2
	}
	for bond := first; bond <= policy.MostBond && len(l.rungs) < policy.MostRungs; bond *= 2 {
		isTaken, err := l.addBond(bond)
		if err != nil {
			return l.rungs, err
		}
		if !isTaken {
			if bond > first {
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

// isCheap reports whether a bond takes at most firstShare of the budget along the first plan, so that the first estimate is there early.
func (l *steps) isCheap(bond int) bool {
	flops, _, err := l.prices[0](bond)
	return err == nil && flops <= firstShare*l.s.Budget
}

// fitsMemory reports whether some plan fits the memory at a bond.
func (l *steps) fitsMemory(bond int) bool {
	for _, price := range l.prices {
		if _, bytes, err := price(bond); err == nil && bytes <= float64(l.s.Memory) {
			return true
		}
	}
	return false
}

// steps are a sequence of estimates under construction.
type steps struct {
	prices    []price
	s         query.Settings
	remaining float64 // flops of the budget
	rungs     []rung
}

// addBond appends the rungs of a bond that fit (rungsAt), and reports whether there are any.
func (l *steps) addBond(bond int) (bool, error) {
	rungs, err := l.rungsAt(bond)
	for _, r := range rungs {
		l.remaining -= r.cost.Flops
	}
	l.rungs = append(l.rungs, rungs...)
	return len(rungs) > 0, err
}

// rungsAt returns the rungs of a bond that fit the memory. It returns none if the remaining budget does not hold all of them, with one
// exception: for the first two rungs of the ladder it returns those that the budget holds, and the very first one in any case.
func (l *steps) rungsAt(bond int) (rungs []rung, err error) {
	total := 0.0
	for k, price := range l.prices {
		flops, bytes, err := price(bond)
		if err != nil {
			return nil, err
		}
		if bytes > float64(l.s.Memory) {
			continue
		}
		if len(l.rungs)+len(rungs) > 0 && total+flops > l.remaining {
			if len(l.rungs) == 0 || len(rungs) > 0 && len(l.rungs) < 2 {
				break // one plan alone is better than none
			}
			return nil, nil
		}
		total += flops
		rungs = append(rungs, rung{plan: k, bond: bond, cost: query.Cost{Flops: flops, Bytes: bytes}})
	}
	return rungs, nil
}

// ladderSlack is the smallest ratio of the flops at twice the bond to those at the bond for which a larger bond changes the estimate.
// Measured: 1.005 changes nothing on 26 models, 2 ends two of them too soon, decision 20.
const ladderSlack = 1.02

// isExhausted reports whether a larger bond would change nothing along the first plan, since its price does not grow.
func (l *steps) isExhausted(bond int) (bool, error) {
	now, _, err := l.prices[0](bond)
	if err != nil {
		return false, err
	}
	next, _, err := l.prices[0](2 * bond)
	return next <= ladderSlack*now, err
}

// addLargest adds the rungs of the largest bond that fits between low, which fits, and high, which does not. It searches in steps of an
// eighth of low, by bisection, since prices grow with the bond. It adds none if that is at most one step above low.
func (l *steps) addLargest(low, high int) error {
	step := max(low/8, 1)
	fits, exceeds := 0, (high-low)/step // k of bonds low + k·step
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
	if fits <= 1 { // hardly more than what is there
		return nil
	}
	_, err := l.addBond(low + fits*step)
	return err
}

// rung is an estimate of truncated legs before it is written out.
type rung struct {
	plan   int // which of the plans
	bond   int
	sliced []int      // variables that are fixed in each slice
	cost   query.Cost // of all slices together
}

// estimate returns the estimate of a rung, with a part for each slice.
func (r rung) estimate(plans []truncated.TruncatedPlan, domains []int) btn.Estimate {
	plan := &plans[r.plan]
	e := btn.Estimate{
		Rule:     btn.Linear,
		Track:    fmt.Sprintf("%s %d", plan.Family, plan.Number),
		Slices:   sliceCount(r.sliced, domains),
		Lossless: plan.Family == query.FamilyTree,
		Cost:     r.cost,
	}
	e.Level = math.Log2(float64(r.bond)) + math.Log2(float64(e.Slices))
	for slice := range e.Slices {
		e.Parts = append(e.Parts, &truncated.Truncated{Along: plan, Bond: r.bond, Slice: btn.Slice{Variables: r.sliced, At: slice}})
	}
	return e
}

// sliceCount returns the number of slices if some variables are fixed.
func sliceCount(fixed, domains []int) int64 {
	n := int64(1)
	for _, v := range fixed {
		n *= int64(domains[v])
	}
	return n
}

// Bond returns the largest number of values on a leg of an estimate of truncated legs.
func Bond(e *btn.Estimate) int { return e.Parts[0].(*truncated.Truncated).Bond }

// LegsOf returns the first part of an estimate of truncated legs. It returns nil for an estimate of another method.
func LegsOf(e *btn.Estimate) *truncated.Truncated {
	legs, _ := e.Parts[0].(*truncated.Truncated)
	return legs
}
