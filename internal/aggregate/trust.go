package aggregate

// How far an approximate answer is to be trusted: from what its estimates say about each other.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
)

// rounding is the error of an estimate that dropped nothing above rounding, per nat of ln Z and one nat, as measured: singular
// values below 1e-12 of the largest are dropped everywhere.
const rounding = 1e-13

// judge chooses the best estimate so far and states its uncertainty.
//
//   - An estimate whose quality is known is the best, and states none.
//   - An estimate along a tree that dropped nothing above rounding is the best, within rounding.
//   - Else it is one of the highest level, along the plan whose sequence has moved least. Its uncertainty is the larger of the
//     change that its own sequence would make next and of twice its distance from the other plans' highest estimates (trees,
//     orders, sizes).
//     The next change is last²/(last but one); after two estimates the distance between the plans says how fast it falls.
//     What truncations dropped is withheld from that hope: see doubt.
//     A plan that still moves ten times as much says little of the best one: a tenth of its distance counts. What changes and
//     distances do not show has a say of its own: see cautious.
//     Regions know one phase: theirs is at least what other fixed points of belief propagation would add to Z, and, where it
//     did not converge, how far they are from its value. A family with the regions of the one before is no estimate of its own.
//     Regions do not grow monotonically: theirs is the last change, and at least a tenth of the one before.
//   - Where no sequence has two estimates yet, the plans' distance counts tenfold, and at least the root of the discarded weight.
//
// The discarded weight is no bound by itself: it was seen at 1e-8 beside an error of 0.1.
func (g *sequence) judge() {
	g.best, g.uncertainty, g.moved = -1, nil, false
	for i, r := range g.estimates {
		if r.of.Quality != nil && r.err == nil {
			g.best = i
			return
		}
		if r.LogZ == nil {
			continue
		}
		if r.lossless() && !g.unsure {
			g.best, g.uncertainty = i, finite(floor(*r.LogZ))
			return
		}
		if g.best < 0 || r.of.Level > g.estimates[g.best].of.Level {
			g.best = i
		}
	}
	if g.best < 0 {
		return
	}
	g.steadiest()
	best := g.estimates[g.best]
	if g.unsure || g.plateau(best) {
		return
	}
	others := g.others(best)
	last, moved := g.next(best, math.Inf(1)) // without help from others
	spread, far, worse := 0.0, 0.0, 0
	for _, other := range others {
		distance := math.Abs(*other.LogZ - *best.LogZ)
		if theirs, known := g.next(other, math.Inf(1)); known && moved && !best.isLogLinear() && theirs > policy.Hopeless*last {
			worse++ // its distance is its own error, in the main, as far as its truncations mean anything
			far = max(far, distance/policy.Hopeless, distance*max(doubt(best), doubt(other)))
			continue
		}
		spread = max(spread, distance)
	}
	u, _ := g.next(best, spread)
	g.moved, u = moved, max(u, policy.Apart*spread, far)
	if !best.isLogLinear() {
		if last, _ := g.lastChange(best); worse == len(others) {
			u = max(u, last) // nothing to compare with: no hope of the next change being smaller
		}
		u = g.cautious(best, u, len(others) == 0)
	}
	if best.Slices > 1 && best.isLogLinear() {
		u = max(u, g.wholeNext(best), g.fromWhole(best))
	}
	if best.isLogLinear() {
		u = max(u, phases(g.bp), unconverged(g.bp, *best.LogZ))
	}
	switch {
	case moved:
	case len(others) > 0 && best.Discarded != nil: // plans may agree for being alike: what was dropped has a say
		u = max(policy.Alike*spread, math.Sqrt(*best.Discarded))
	case spread > 0: // regions of other kinds
		u = max(u, policy.Alike*spread)
	default:
		return
	}
	g.uncertainty = finite(max(u, floor(*best.LogZ)))
}

// cautious is an uncertainty of truncated legs, u by their changes and distances, with what those do not show.
//
//   - A best estimate that no other plan stands beside (alone) is uncertain by the root of what it discarded, at least. So is one
//     whose last change is exactly 0: that is a plateau and no convergence.
//   - It is uncertain by the share that was discarded, whatever its plans agree about.
//   - Estimates at or below 0, and forbidden combinations: lostSign, branches.
func (g *sequence) cautious(best *estimate, u float64, alone bool) float64 {
	change, known := g.lastChange(best)
	if best.Discarded != nil {
		share := max(*best.Discarded, 0)
		u = max(u, share)
		if alone || known && change == 0 {
			u = max(u, math.Sqrt(share))
		}
	}
	u = max(u, g.signs(best))
	if g.hard {
		u *= policy.Branches
	}
	return u
}

// plateau reports whether regions of constraints did not change at all from one size to the next: belief propagation sees
// nothing of constraints that are even everywhere, like parities, and neither do regions that close no cycle of them.
func (g *sequence) plateau(best *estimate) bool {
	change, known := g.lastChange(best)
	return g.hard && best.isLogLinear() && known && change <= floor(*best.LogZ)
}

// doubt is how much of a change is not to be hoped away after a truncation that left out this share: its fourth root. A small
// change after truncations that drop a percent is as likely an accident as a sign of convergence.
func doubt(r *estimate) float64 {
	if r.Discarded == nil {
		return 0
	}
	return math.Sqrt(math.Sqrt(max(*r.Discarded, 0)))
}

// signs is lostSign where an estimate of at least half the best one's bond came out at or below 0, else 0.
func (g *sequence) signs(best *estimate) float64 {
	for i := range g.estimates {
		if r := g.estimates[i]; r.LogZ == nil && r.Truncated && !r.isLogLinear() && r.of.Level >= best.of.Level-1 {
			return policy.LostSign
		}
	}
	return 0
}

func floor(lnZ float64) float64 { return rounding * (1 + math.Abs(lnZ)) }

// phases returns what other fixed points of belief propagation may add to ln Z, the one that regions correct being first: at least
// ln Σ_k exp(ln Z_k − ln Z_1), and ln k for k of them, for between those found lie others that were not. 0 where there is one.
func phases(p *btn.Propagation) float64 {
	if p == nil || len(p.Phases) < 2 {
		return 0
	}
	sum := 0.0
	for _, z := range p.Phases {
		sum += math.Exp(min(z-p.Phases[0], 0))
	}
	return max(math.Log(sum), math.Log(float64(len(p.Phases))))
}

// fromWhole is how far regions in slices are from the last whole regions: slices of a smaller size lose loops that those have.
func (g *sequence) fromWhole(best *estimate) float64 {
	distance := 0.0
	for i := range g.estimates {
		if r := g.estimates[i]; r.LogZ != nil && r.isLogLinear() && r.Slices == 1 {
			distance = math.Abs(*r.LogZ - *best.LogZ)
		}
	}
	return distance
}

// unconverged is how far regions are from a Bethe value whose messages still move; 0 at a fixed point.
func unconverged(p *btn.Propagation, lnZ float64) float64 {
	if p == nil || p.Converged || p.LogZ == nil {
		return 0
	}
	return math.Abs(lnZ - *p.LogZ)
}

// lastChange is how far an estimate is from the one before it in its sequence; false where there is none.
func (g *sequence) lastChange(best *estimate) (float64, bool) {
	before := math.NaN()
	for i := range g.estimates {
		if r := g.estimates[i]; r.LogZ != nil && r.of.Track == best.of.Track && r.of.Level < best.of.Level {
			before = *r.LogZ
		}
	}
	if math.IsNaN(before) {
		return 0, false
	}
	return math.Abs(*best.LogZ - before), true
}

// steadiest makes that estimate of the highest level the best whose own sequence has moved least; the first of equals.
func (g *sequence) steadiest() {
	top, least := g.estimates[g.best].of.Level, math.Inf(1)
	for i := range g.estimates {
		r := g.estimates[i]
		if r.LogZ == nil || r.of.Level != top {
			continue
		}
		if u, moved := g.next(r, math.Inf(1)); moved && u < least {
			g.best, least = i, u
		}
	}
}

// lossless reports whether an estimate dropped nothing above rounding, where that makes it exact up to rounding.
func (r *estimate) lossless() bool { return !r.Truncated && r.of.Lossless }

// isLogLinear reports whether the estimate corrects the value of belief propagation: such sequences are not monotone.
func (r *estimate) isLogLinear() bool { return r.of.Rule == btn.LogLinear }

// next is the change that the sequence of the best estimate would make next; false where it has no predecessor. spread is
// the distance of the other plans at its level.
func (g *sequence) next(best *estimate, spread float64) (float64, bool) {
	var values []float64
	regions := int64(-1)
	for i := range g.estimates {
		r := g.estimates[i]
		if r.LogZ == nil || r.of.Track != best.of.Track || r.of.Level > best.of.Level {
			continue
		}
		if n := len(values); n > 0 && r.isLogLinear() && r.Regions == regions && *r.LogZ == values[n-1] {
			continue // the same regions: agreement with itself
		}
		values, regions = append(values, *r.LogZ), r.Regions
	}
	n := len(values)
	if n < 2 {
		return 0, false
	}
	last := math.Abs(values[n-1] - values[n-2])
	if n == 2 {
		if before := g.spreadBefore(best); before > 0 && !best.isLogLinear() {
			return last * min(1, max(policy.Slowest, doubt(best), spread/before)), true
		}
		return last, true
	}
	before := math.Abs(values[n-2] - values[n-3])
	if best.isLogLinear() {
		return regionsNext(last, before), true
	}
	if before == 0 {
		return last, true
	}
	return max(last*min(1, max(policy.Slowest, doubt(best), last/before)), before*min(1, max(policy.Accident, doubt(best)))), true
}

// regionsNext is what a sequence of regions has still to go: at least its last change and a tenth of the one before,
// because it is not monotone; last·r/(1−r) where the changes fall by r = last/before, and three times the last where they do not.
func regionsNext(last, before float64) float64 {
	u := max(last, policy.Steady*before)
	if last >= before {
		return 3 * last
	}
	return max(u, min(10*last, last*last/(before-last)))
}

// wholeNext is what the whole regions below regions in slices have still to go: slices say nothing of the size.
func (g *sequence) wholeNext(best *estimate) float64 {
	var last *estimate
	for i := range g.estimates {
		if r := g.estimates[i]; r.LogZ != nil && r.isLogLinear() && r.Slices == 1 && r.Kind == best.Kind && r.Size <= best.Size {
			last = r
		}
	}
	if last == nil {
		return 0
	}
	u, _ := g.next(last, 0)
	return u
}

// spreadBefore is the largest distance of other plans from the best one's at the level below its own; 0 for none.
func (g *sequence) spreadBefore(best *estimate) float64 {
	var before *estimate
	for i := range g.estimates {
		if r := g.estimates[i]; r.LogZ != nil && r.of.Track == best.of.Track && r.of.Level < best.of.Level {
			before = r
		}
	}
	spread := 0.0
	for i := range g.estimates {
		if r := g.estimates[i]; before != nil && r.LogZ != nil && r.of.Track != best.of.Track && r.of.Level == before.of.Level {
			spread = max(spread, math.Abs(*r.LogZ-*before.LogZ))
		}
	}
	return spread
}

// others are the highest estimates of the other tracks. Whole regions do not count beside regions in slices: where there
// are several phases they know only one. The value of belief propagation is where regions begin, and no estimate beside them.
func (g *sequence) others(best *estimate) []*estimate {
	latest := map[string]*estimate{}
	var tracks []string
	top := math.Inf(-1)
	for i := range g.estimates {
		r := g.estimates[i]
		if r.LogZ == nil || r.of.Track == best.of.Track || r.of.Level < 0 || best.Slices > 1 && r.Slices == 1 && r.isLogLinear() {
			continue
		}
		if _, known := latest[r.of.Track]; !known {
			tracks = append(tracks, r.of.Track)
		}
		latest[r.of.Track] = r
	}
	for _, t := range tracks {
		top = max(top, latest[t].of.Level)
	}
	var out []*estimate
	for _, t := range tracks {
		if latest[t].of.Level == top {
			out = append(out, latest[t])
		}
	}
	return out
}

// marginalChange is the largest change of a probability from the estimate before the best one, of any track; nil without.
func (g *sequence) marginalChange(p [][]float64) *float64 {
	var before [][]float64
	for i := range g.estimates {
		if i != g.best && g.estimates[i].LogZ != nil {
			if q, _ := g.estimates[i].marginals(); q != nil {
				before = q
			}
		}
	}
	if before == nil {
		if g.estimates[g.best].lossless() && !g.unsure {
			return finite(rounding)
		}
		return nil
	}
	change := 0.0
	for v := range p {
		for x := range p[v] {
			change = max(change, math.Abs(p[v][x]-before[v][x]))
		}
	}
	return finite(change)
}

// warnings says in words what a number would hide.
func (g *sequence) warnings(a *btn.Assignment) []string {
	var out []string
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	failed, dropped := 0, int64(0)
	for i := range g.estimates {
		if g.estimates[i].LogZ == nil {
			failed++
		}
		for _, v := range g.estimates[i].parts {
			if v.Region != nil {
				dropped += v.Region.NonPositive
			}
		}
	}
	if failed > 0 {
		warn("%d of %d estimates failed: a total at or below 0, or no room for it", failed, len(g.estimates))
	}
	if dropped > 0 {
		warn("%d regions were left out because their ratio to belief propagation came out at or below 0", dropped)
	}
	if g.best < 0 {
		return out
	}
	if g.ended == endedDeadline {
		warn("the deadline came before the estimates settled: this is the best one so far")
	}
	switch u := g.uncertainty; {
	case g.unsure:
		warn("the entries of the model span more than float64 holds side by side: terms may be lost, and nothing is known " +
			"of the quality of this estimate")
	case u == nil && len(g.estimates) > 1+failed && g.plateau(g.estimates[g.best]):
		warn("regions of constraints do not change with their size: nothing is known of the quality of this estimate")
	case u == nil:
		warn("this is a single estimate, and nothing is known of its quality")
	case g.ended != endedSettled:
		warn("the estimates still move: by about %.2g nats, more than the accuracy asked for (%.2g)", *u, a.Plan.Accuracy)
	}
	if p := a.Propagation; p != nil {
		out = append(out, propagationWarnings(p, g.estimates[g.best])...)
	}
	return out
}

func propagationWarnings(p *btn.Propagation, best *estimate) []string {
	var out []string
	if !p.Converged && best.isLogLinear() {
		out = append(out, fmt.Sprintf("belief propagation did not converge (last change %.2g): regions stand on messages "+
			"that still move", p.Change))
	}
	if len(p.Phases) > 1 {
		out = append(out, fmt.Sprintf("competing phases: belief propagation has %d fixed points, ln Z from %.6g to %.6g; "+
			"regions correct only the one they stand on",
			len(p.Phases), p.Phases[len(p.Phases)-1], p.Phases[0]))
	}
	return out
}
