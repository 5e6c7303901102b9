package judge

// What ln Z lies between: the best of all bounds on either side.

import "math"

// BoundsDelta is the largest probability that any sampled bound of a job does not hold, of all estimates of all its queries.
// Chosen: the design's.
const BoundsDelta = 1e-3

// Bounds are the best bounds on ln Z on either side. The zero value has none.
type Bounds struct {
	proved  interval // by bounds that follow from the model
	sampled interval // by bounds that needed a random draw
	// ifPositive is a further proved lower bound, which holds unless Z is 0. It is −Inf if there is none. It is set only if proved is
	// known.
	ifPositive float64
}

// interval is two bounds that ln Z lies between. The zero value has none.
type interval struct {
	isKnown      bool // false for the zero value
	lower, upper Side
}

// Side is a bound on one side of ln Z.
type Side struct {
	Ln float64 // nats; −Inf or +Inf if nothing bounds ln Z on this side
	By string  // what proves it, in words
}

// narrow replaces each end of the interval by the given one if that is tighter.
func (i *interval) narrow(lower, upper Side) {
	if !i.isKnown {
		*i = interval{true, Side{Ln: math.Inf(-1)}, Side{Ln: math.Inf(1)}}
	}
	if lower.Ln > i.lower.Ln {
		i.lower = lower
	}
	if upper.Ln < i.upper.Ln {
		i.upper = upper
	}
}

// AddProved adds a lower and an upper bound on ln Z that follow from the model, in nats. A side without a bound is −Inf or +Inf.
// ifPositive is a lower bound that holds unless Z is 0, −Inf if there is none. by is what proves the bounds, in words.
func (b *Bounds) AddProved(lower, upper, ifPositive float64, by string) {
	if !b.proved.isKnown {
		b.ifPositive = math.Inf(-1)
	}
	b.proved.narrow(Side{lower, by}, Side{upper, by})
	b.ifPositive = max(b.ifPositive, ifPositive)
}

// AddSampled adds a lower and an upper bound on ln Z that needed a random draw. All sampled bounds of a job hold together with probability
// 1 − BoundsDelta.
func (b *Bounds) AddSampled(lower, upper Side) { b.sampled.narrow(lower, upper) }

// Sampled returns the best lower and upper bound that needed a random draw. A side without a bound is −Inf or +Inf.
func (b *Bounds) Sampled() (lower, upper Side) {
	if !b.sampled.isKnown {
		return Side{Ln: math.Inf(-1)}, Side{Ln: math.Inf(1)}
	}
	return b.sampled.lower, b.sampled.upper
}

// Tightest returns the best lower and the best upper bound on ln Z. A side without a bound is −Inf or +Inf. Proved bounds are widened by
// rounding. level is the probability that both hold: 1 if both are proved, otherwise 1 − BoundsDelta. If the sampled bounds contradict the
// proved ones, they have failed and do not count.
func (b *Bounds) Tightest() (lower, upper Side, level float64) {
	lower, upper, level = Side{Ln: math.Inf(-1)}, Side{Ln: math.Inf(1)}, 1
	if p := &b.proved; p.isKnown {
		lower = Side{p.lower.Ln - RoundingMargin(p.lower.Ln), p.lower.By}
		upper = Side{p.upper.Ln + RoundingMargin(p.upper.Ln), p.upper.By}
	}
	s := &b.sampled
	isConsistent := max(s.lower.Ln, lower.Ln) <= min(s.upper.Ln, upper.Ln)
	if s.isKnown && isConsistent {
		if s.lower.Ln > lower.Ln {
			lower, level = s.lower, 1-BoundsDelta
		}
		if s.upper.Ln < upper.Ln {
			upper, level = s.upper, 1-BoundsDelta
		}
	}
	return lower, upper, level
}

// FartherDistance returns how far ln Z may be from ln, an estimate of it, in nats: the distance to the farther bound. An ln outside of
// the bounds counts as the nearer bound. If nothing else bounds ln Z from below, the bound that holds unless Z is 0 is taken, since no
// estimate shows that Z is 0. It returns +Inf if there is no upper bound or no lower bound.
func (b *Bounds) FartherDistance(ln float64) float64 {
	lower, upper, _ := b.Tightest()
	if math.IsInf(lower.Ln, -1) && b.proved.isKnown {
		lower.Ln = b.ifPositive
	}
	ln = min(max(ln, lower.Ln), upper.Ln)
	return max(upper.Ln-ln, ln-lower.Ln)
}

// RoundingMargin returns the largest error of a bound or an exact ln Z by rounding, in nats: 1e-10, which leaves ten digits of Z, plus the
// rounding of the logarithm. It returns 0 if ln is NaN or ±Inf.
func RoundingMargin(ln float64) float64 {
	if isFinite := ln-ln == 0; !isFinite {
		return 0
	}
	return 1e-10 + LeastError(ln)
}
