package judge

// What ln Z lies between: the best of all bounds on either side.

import "math"

// BoundsDelta is the probability that some of the sampled bounds of a job does not hold: of all estimates of all its queries.
// Chosen: the design's.
const BoundsDelta = 1e-3

// Bounds are the best ones on either side of ln Z. The zero value has none.
type Bounds struct {
	proved, sampled interval
	least           float64 // a lower bound on ln Z unless Z is 0
}

// interval is what ln Z lies between.
type interval struct {
	isKnown      bool
	lower, upper Side
}

// Side is a bound on one side, nats, and what it is by, in words.
type Side struct {
	Ln float64
	By string
}

// narrow takes the better of two bounds on each side.
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

// Prove takes in a bound that follows from the model alone. least bounds ln Z from below unless Z is 0; −Inf if nothing does.
func (b *Bounds) Prove(lower, upper, least float64, by string) {
	if !b.proved.isKnown {
		b.least = math.Inf(-1)
	}
	b.proved.narrow(Side{lower, by}, Side{upper, by})
	b.least = max(b.least, least)
}

// Sample takes in bounds that hold with probability 1 − BoundsDelta together with all other sampled bounds of a job.
func (b *Bounds) Sample(lower, upper Side) { b.sampled.narrow(lower, upper) }

// Sampled returns the best sampled bounds, −Inf and +Inf if there are none.
func (b *Bounds) Sampled() (lower, upper Side) {
	if !b.sampled.isKnown {
		return Side{Ln: math.Inf(-1)}, Side{Ln: math.Inf(1)}
	}
	return b.sampled.lower, b.sampled.upper
}

// Between returns what ln Z is known to lie between, widened by rounding, and the probability with which it does: −Inf and +Inf if
// nothing bounds it. Sampled bounds that contradict others are those that fail. Bounds and sampled components are computed in logarithms,
// which have no range to leave.
func (b *Bounds) Between() (lower, upper Side, level float64) {
	lower, upper, level = Side{Ln: math.Inf(-1)}, Side{Ln: math.Inf(1)}, 1
	if p := &b.proved; p.isKnown {
		lower = Side{p.lower.Ln - Widening(p.lower.Ln), p.lower.By}
		upper = Side{p.upper.Ln + Widening(p.upper.Ln), p.upper.By}
	}
	if s := &b.sampled; s.isKnown && max(s.lower.Ln, lower.Ln) <= min(s.upper.Ln, upper.Ln) {
		if s.lower.Ln > lower.Ln {
			lower, level = s.lower, 1-BoundsDelta
		}
		if s.upper.Ln < upper.Ln {
			upper, level = s.upper, 1-BoundsDelta
		}
	}
	return lower, upper, level
}

// Reach returns the largest distance from ln Z of a value between the bounds, +Inf without an upper or a lower bound. If there is no other
// lower bound, the least weight of a state is one: it holds unless Z is 0, which no estimate shows.
func (b *Bounds) Reach(ln float64) float64 {
	lower, upper, _ := b.Between()
	if math.IsInf(lower.Ln, -1) && b.proved.isKnown {
		lower.Ln = b.least
	}
	ln = min(max(ln, lower.Ln), upper.Ln)
	return max(upper.Ln-ln, ln-lower.Ln)
}

// Widening is how far rounding may move a bound or an exact ln Z, nats: ten digits of Z are left, and rounding of its
// logarithm. It is 0 for a bound that is not finite.
func Widening(ln float64) float64 {
	if ln-ln != 0 {
		return 0
	}
	return 1e-10 + Floor(ln)
}
