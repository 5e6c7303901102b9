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

// price is what a contraction takes at a bond: flops, and bytes at its peak.
type price func(bond int) (flops, bytes float64, err error)

// once is a price that is computed once for a bond: a ladder asks for it again and again.
func (p price) once() price {
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

// bonds returns the rungs of truncated legs along the given plans, the most trusted first. Bonds double from
// firstBond; at each one all plans that fit the memory have a rung, one after the other, so that the sequence
// shows both how a plan's estimates move and how far plans are apart. The ladder ends where the first plan
// would change no more, at s.Bond if that is set, and else where the next rungs do not fit what is left of
// s.Budget; then the largest bond that does has the last word. It ends at a price that came late, too, where it has rungs.
func bonds(prices []price, s query.Settings) ([]rung, error) {
	l := steps{prices: prices, s: s, left: s.Budget}
	if s.Bond > 0 {
		l.left = math.Inf(1)
		for _, bond := range []int{(s.Bond + 3) / 4, (s.Bond + 1) / 2, s.Bond} {
			if n := len(l.rungs); n > 0 && l.rungs[n-1].bond == bond {
				continue
			}
			if _, err := l.add(bond); err != nil {
				return nil, err
			}
		}
		return l.rungs, nil
	}

	first := policy.FirstBond
	for first > 2 && (!l.roomFor(first) || !l.cheap(first)) {
		first /= 2
	}
	for bond := first; bond <= policy.MostBond && len(l.rungs) < policy.MostRungs; bond *= 2 {
		taken, err := l.add(bond)
		if err != nil {
			return l.rungs, err
		}
		if !taken {
			if bond > first {
				err = l.largest(bond/2, bond)
			}
			return l.rungs, err
		}
		if exhausted, err := l.exhausted(bond); err != nil || exhausted {
			return l.rungs, err
		}
	}

	return l.rungs, nil
}

// firstShare is the part of the budget that the first estimate may take, if a smaller bond makes
// it so.
// Measured: a quarter of it makes stated errors larger on 6 of 11 models, four times of it changes
// 2 of 26, decision 20. A deadline may cut off all but a sixteenth.
const firstShare = 1.0 / 16

// cheap reports whether a bond takes little of the budget: the first estimate shall be there early.
func (l *steps) cheap(bond int) bool {
	flops, _, err := l.prices[0](bond)
	return err == nil && flops <= firstShare*l.s.Budget
}

// roomFor reports whether some plan fits the memory at a bond.
func (l *steps) roomFor(bond int) bool {
	for _, price := range l.prices {
		if _, bytes, err := price(bond); err == nil && bytes <= float64(l.s.Memory) {
			return true
		}
	}
	return false
}

// steps are a sequence of estimates under construction.
type steps struct {
	prices []price
	s      query.Settings
	left   float64 // flops
	rungs  []rung
}

// add appends the rungs that a bond offers, and reports whether there are any.
func (l *steps) add(bond int) (bool, error) {
	rungs, err := l.offer(bond)
	for _, r := range rungs {
		l.left -= r.cost.Flops
	}
	l.rungs = append(l.rungs, rungs...)
	return len(rungs) > 0, err
}

// offer returns the rungs of a bond that fit the memory, none if the rest of the budget does not hold them all. Up to the second rung of
// the ladder it returns those that are held, the very first one in any case.
func (l *steps) offer(bond int) (rungs []rung, err error) {
	total := 0.0
	for k, price := range l.prices {
		flops, bytes, err := price(bond)
		if err != nil {
			return nil, err
		}
		if bytes > float64(l.s.Memory) {
			continue
		}
		if len(l.rungs)+len(rungs) > 0 && total+flops > l.left {
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

// ladderSlack is the least ratio of the costs at twice the bond and at the bond for which growth
// means anything.
// Measured: 1.005 changes nothing on 26 models, 2 ends two of them too soon, decision 20.
const ladderSlack = 1.02

// exhausted reports whether a larger bond would change nothing along the first plan.
func (l *steps) exhausted(bond int) (bool, error) {
	now, _, err := l.prices[0](bond)
	if err != nil {
		return false, err
	}
	next, _, err := l.prices[0](2 * bond)
	return next <= ladderSlack*now, err
}

// largest adds the largest bond that fits between low, which was taken, and high, which was not, in steps of an eighth of low: prices grow
// with the bond.
func (l *steps) largest(low, high int) error {
	step := max(low/8, 1)
	fits, exceeds := 0, (high-low)/step // k of bonds low + k·step
	for exceeds-fits > 1 {
		middle := (fits + exceeds) / 2
		rungs, err := l.offer(low + middle*step)
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
	_, err := l.add(low + fits*step)
	return err
}

// rung is an estimate of truncated legs before it is written out.
type rung struct {
	plan   int // which of the plans
	bond   int
	sliced []int      // variables that are fixed
	cost   query.Cost // of all slices together
}

// estimate writes a rung out: a part per slice.
func (r rung) estimate(plans []truncated.TruncatedPlan, domains []int) btn.Estimate {
	along := &plans[r.plan]
	e := btn.Estimate{
		Rule:     btn.Linear,
		Track:    fmt.Sprintf("%s %d", along.Family, along.Number),
		Slices:   sliceCount(r.sliced, domains),
		Lossless: along.Family == query.FamilyTree,
		Cost:     r.cost,
	}
	e.Level = math.Log2(float64(r.bond)) + math.Log2(float64(e.Slices))
	for at := range e.Slices {
		e.Parts = append(e.Parts, &truncated.Truncated{Along: along, Bond: r.bond, Slice: btn.Slice{Variables: r.sliced, At: at}})
	}
	return e
}

// sliceCount is how many slices fixing some variables makes.
func sliceCount(fixed, domains []int) int64 {
	n := int64(1)
	for _, v := range fixed {
		n *= int64(domains[v])
	}
	return n
}

// Bond is the largest number of values on a leg of an estimate of truncated legs.
func Bond(e *btn.Estimate) int { return e.Parts[0].(*truncated.Truncated).Bond }

// LegsOf returns the first part of an estimate of truncated legs, nil for one of another family.
func LegsOf(e *btn.Estimate) *truncated.Truncated {
	legs, _ := e.Parts[0].(*truncated.Truncated)
	return legs
}
