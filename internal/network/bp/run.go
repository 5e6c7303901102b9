// Package bp is loopy belief propagation (sum-product) on an expression of any arity and any
// domains: messages, beliefs and the Bethe value of ln Z, exact on trees. On a factor graph it gives
// the gauge of its messages, and the base tensor network in it.
package bp

// Run: schedules, damping, convergence.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Run passes messages on e until none changes by more than the tolerance. Messages are normalised,
// kept as float64, and computed with exponents where float64 would lose them; within one message,
// entries 2^−600 below the largest may become 0.
//
// A schedule and damping are kept for as long as each round of 16 pairs of sweeps (or as many
// updates) brings the change below 97 % of the smallest before. Then follow, from where the messages
// are: residual without damping, sequential and residual with 0.3, sequential with 0.6 and 0.85; a
// schedule that is asked for goes through these dampings alone. A run ends when the last of them has
// stalled eight times, or the updates are spent. A tree takes one pair, and one more evaluation of
// its messages that confirms it.
//
// Not converging is a result (State.Converged, State.Change), and so is a contradiction, which for
// entries ≥ 0 means Z = 0. A contradiction of float64 alone is no result: a second run keeps the messages of all values that arc
// consistency allows above 2^−30, and does not converge.
// Errors: sumproduct.ErrExpression, sumproduct.ErrNotFinite, a start of another shape
// (fault.Internal); fault.OverBudget for more than 2^31 incidences; sumproduct.ErrSpan where the second
// run ends in a contradiction, too; the context's. Cost of a pair: each table's entries times
// its order; memory about 30 bytes an incidence and 16 an entry of a message.
func Run(ctx context.Context, e *sumproduct.Expression, o Options) (*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	return run(ctx, g, o)
}

// run is Run on a graph that is there already.
func run(ctx context.Context, g *graph, o Options) (*State, error) {
	if !(o.Damping >= 0 && o.Damping < 1) {
		return nil, fault.New(fault.BadInput, "bp: damping %v, at least 0 and below 1", o.Damping)
	}
	if o.Updates <= 0 {
		o.Updates = min(max(policy.MessageUpdates*int64(len(g.table)), leastUpdate), mostUpdates)
	}
	if !(o.Tolerance > 0) {
		o.Tolerance = tolerance
	}
	s := newState(g)
	s.Damping = o.Damping
	if err := s.start(o); err != nil {
		return nil, err
	}

	r := &runner{State: s, c: newKernel(g, s.m, s.v), ctx: ctx, o: o}
	if err := r.run(); err != nil {
		return nil, err
	}
	s.contradictInside()
	allowed, err := s.consistent(ctx)
	if err == nil && s.isOfFloat64(allowed) {
		err = r.bounded(s.Contradiction, allowed)
	}
	return s, err
}

// newState has all messages at 0.
func newState(g *graph) *State {
	size := g.at[len(g.at)-1]
	return &State{
		Contradiction: -1,
		Signed:        g.signed,
		g:             g,
		m:             make([]float64, size),
		v:             make([]float64, size),
	}
}

// runner is a run under way.
type runner struct {
	*State
	c    *kernel
	ctx  context.Context
	o    Options
	work int64 // entries read since the context was looked at
	// allowed has 1 for every entry of a message that is kept above 0; nil: none is.
	allowed []float64
}

// run goes through the phases until one converges; see Run.
func (r *runner) run() error {
	if err := r.prepare(); err != nil || r.Contradiction >= 0 {
		return err
	}
	phases := r.o.phases()
	for n, p := range phases {
		if err := r.try(p, n == len(phases)-1); err != nil || r.Contradiction >= 0 {
			return err
		}
		if r.done() {
			break
		}
	}

	if r.Converged {
		return nil
	}
	return r.check()
}

// prepare computes the messages of tables of order one, which never change again, and those to
// tables.
func (r *runner) prepare() error {
	for k := range r.g.table {
		if r.g.roles[k] == only {
			if _, err := r.update(int32(k), 0); err != nil {
				return err
			}
		}
	}
	for i := range r.g.e.Dims {
		r.send(i)
	}
	return nil
}

// update computes m_{t→i} of incidence k, keeps a part of the old one, and returns its change
// before damping.
func (r *runner) update(k int32, damping float64) (float64, error) {
	if err := r.look(len(r.g.e.Tables[r.g.table[k]].Data)); err != nil {
		return 0, err
	}
	r.Updates++
	out, ok := r.c.toIndex(k)
	if !ok {
		r.Contradiction = r.g.index(k)
		return math.Inf(1), nil
	}
	m, change := r.g.message(r.m, k), 0.0
	if r.allowed != nil {
		admit(out, r.g.message(r.allowed, k))
	}
	for a, x := range out {
		change = max(change, math.Abs(x-m[a]))
		m[a] = x + damping*(m[a]-x)
	}
	return change, nil
}

// admit keeps the allowed entries of a message above leastAllowed.
func admit(message, allowed []float64) {
	for a, is := range allowed {
		if is != 0 {
			message[a] = max(message[a], leastAllowed)
		}
	}
}

// send computes the messages of index i to its tables.
func (r *runner) send(i int) {
	if !r.c.toTables(i) {
		r.Contradiction = i
	}
}

// look returns the context's error, once every few million entries.
func (r *runner) look(entries int) error {
	if r.work += int64(entries) + 8; r.work > 1<<22 {
		r.work = 0
		if r.o.enough() {
			r.o.Updates = min(r.o.Updates, max(r.Updates, 1))
		}
		return r.ctx.Err()
	}
	return nil
}

// done says that nothing is left to do.
func (r *runner) done() bool { return r.Converged || r.Contradiction >= 0 || r.Updates >= r.o.Updates }

// try keeps to a phase until the smallest change of a round stalls, the last phase until it has some
// rounds more.
func (r *runner) try(p phase, last bool) error {
	r.Damping = p.damping
	round, before := r.sweeps, math.Inf(1)
	if p.schedule == Residual {
		q := newQueue(len(r.g.e.Dims))
		round = func() (float64, error) { return r.residual(q) }
	}
	for stalls := 0; ; {
		best, err := round()
		if err != nil || r.done() {
			return err
		}
		if best > progress*before {
			if stalls++; !last || stalls == lastStalls {
				return nil
			}
		}
		before = min(before, best)
	}
}

// sweeps is a round of pairs of sweeps; it returns their smallest change.
func (r *runner) sweeps() (float64, error) {
	best := math.Inf(1)
	for range patience {
		change, err := r.pair()
		if err != nil || r.Contradiction >= 0 {
			return best, err
		}
		r.Sweeps++
		best = min(best, change)
		if change <= r.o.Tolerance || r.Sweeps == 1 {
			if err := r.check(); err != nil {
				return best, err
			}
		}
		if r.done() {
			break
		}
	}

	return best, nil
}

// pair is a sweep backwards, which sends to the first index of every table, and one forwards to the
// others.
func (r *runner) pair() (float64, error) {
	order, change := r.g.order, 0.0
	for n := range 2 * len(order) {
		i, now := 0, first
		if n < len(order) {
			i = int(order[len(order)-1-n])
		} else {
			i, now = int(order[n-len(order)]), later
		}

		for k := r.g.begin[i]; k < r.g.end[i]; k++ {
			if r.g.roles[k] != now {
				continue
			}
			by, err := r.update(k, r.Damping)
			if err != nil || r.Contradiction >= 0 {
				return by, err
			}
			change = max(change, by)
		}

		if r.send(i); r.Contradiction >= 0 {
			return math.Inf(1), nil
		}
	}
	return change, nil
}

// check recomputes every message, changes none, and sets Change and Converged.
func (r *runner) check() error {
	change := 0.0
	for k := range r.g.table {
		if err := r.look(len(r.g.e.Tables[r.g.table[k]].Data)); err != nil {
			return err
		}
		r.Updates++
		out, ok := r.c.toIndex(int32(k))
		if !ok {
			r.Contradiction = r.g.index(int32(k))
			change = math.Inf(1)
			break
		}
		by := 0.0
		for a, x := range r.g.message(r.m, int32(k)) {
			by = max(by, math.Abs(out[a]-x))
		}
		change = max(change, by)
	}

	r.Change, r.Converged = change, change <= r.o.Tolerance
	return nil
}
