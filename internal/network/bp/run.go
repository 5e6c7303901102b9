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

// Run runs belief propagation on an expression: it passes messages between tables and indices until none changes by more than the
// tolerance. Messages are normalised and kept as float64. They are computed with exponents if float64 would lose them. Within one message,
// entries 2^−600 below the largest may become 0.
//
// A run goes through phases: sequential, then residual, both without damping; both with 0.3; sequential with 0.6 and with 0.85. If Options
// ask for a schedule, all phases have that one, with these dampings. Each phase goes on from the messages of the one before. It lasts as
// long as each round of 16 pairs of sweeps, or as many updates, brings the change to at most 97 % of the smallest before. The run ends when
// the last phase has failed to do so eight times, or when the updates are spent. A tree takes one pair, and one more evaluation of its
// messages to confirm them.
//
// Messages that do not converge are a result (State.Converged, State.Change). A contradiction is one, too: for entries ≥ 0 it means Z = 0.
// A contradiction that is only one of float64 is no result: then a second run keeps the messages of all values that arc consistency allows
// at 2^−30 or more, and its state has not converged.
//
// Errors: sumproduct.ErrExpression; sumproduct.ErrNotFinite; fault.Internal for a start of another shape; fault.OverBudget for more than
// 2^31 incidences; sumproduct.ErrSpan if the second run ends in a contradiction, too; that of the context. Cost of a pair: for each table
// the entries times the number of its indices. Memory: about 30 bytes per incidence and 16 per entry of a message.
func Run(ctx context.Context, e *sumproduct.Expression, o Options) (*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	return run(ctx, g, o)
}

// run runs belief propagation on the graph of an expression, as Run describes. If the range of float64 is too small, so that messages
// contradict each other although the entries do not, it runs a second time with messages that stay above 0.
func run(ctx context.Context, g *graph, o Options) (*State, error) {
	if !(o.Damping >= 0 && o.Damping < 1) {
		return nil, fault.New(fault.BadInput, "bp: damping %v, at least 0 and below 1", o.Damping)
	}
	if o.Updates <= 0 {
		o.Updates = min(max(policy.MessageUpdates*int64(len(g.tableOf)), minUpdates), maxUpdates)
	}
	if !(o.Tolerance > 0) {
		o.Tolerance = tolerance
	}
	s := newState(g)
	s.Damping = o.Damping
	if err := s.setStart(o); err != nil {
		return nil, err
	}

	r := &runner{State: s, kernel: newKernel(g, s.toIndex, s.toTable), ctx: ctx, options: o}
	if err := r.run(); err != nil {
		return nil, err
	}

	// A contradiction that is due to the range of float64 needs a second run.
	s.findContradiction()
	isAllowed, err := s.allowedMessages(ctx)
	if err == nil && s.isNumericalContradiction(isAllowed) {
		err = r.rerunBounded(s.Contradiction, isAllowed)
	}
	return s, err
}

// newState returns a state of g with all messages 0.
func newState(g *graph) *State {
	size := g.messageStart[len(g.messageStart)-1]
	return &State{
		Contradiction: -1,
		Signed:        g.isSigned,
		graph:         g,
		toIndex:       make([]float64, size),
		toTable:       make([]float64, size),
	}
}

// runner carries out a run. It changes the messages of its State.
type runner struct {
	*State
	kernel      *kernel
	ctx         context.Context
	options     Options
	entriesRead int64 // entries read since the context was checked last
	// allowed is a list of all messages, which is 1 for the entries that stay at minAllowed or more; nil: there are none.
	isAllowed []float64
}

// run goes through the phases, each a schedule with a damping, until the run has converged, met a contradiction, or spent its updates. If
// it has not converged, it measures the change at the end.
func (r *runner) run() error {
	if err := r.sendConstantMessages(); err != nil || r.Contradiction >= 0 {
		return err
	}
	phases := r.options.phases()
	for n, phase := range phases {
		maxStalls := 1 // the phase ends after so many rounds without progress
		if isLast := n == len(phases)-1; isLast {
			maxStalls = maxLastStalls
		}
		if err := r.runPhase(phase, maxStalls); err != nil || r.Contradiction >= 0 {
			return err
		}
		if r.isDone() {
			break
		}
	}

	if r.Converged {
		return nil
	}
	return r.measureChange()
}

// sendConstantMessages computes the messages from tables of one index, which never change again, and then the messages from all indices to
// their tables. Either may set r.Contradiction.
func (r *runner) sendConstantMessages() error {
	for k := range r.graph.tableOf {
		if r.graph.role[k] == neverSent {
			noDamping := 0.0
			if _, err := r.updateMessage(int32(k), noDamping); err != nil {
				return err
			}
		}
	}
	for i := range r.graph.expression.Dims {
		r.sendFrom(i)
	}
	return nil
}

// updateMessage computes the message of incidence k from its table to its index. damping is the share of the old message that it keeps. It
// returns the largest change of an entry that there would be without damping. If the message is 0 for all values, it sets Contradiction and
// returns +Inf.
func (r *runner) updateMessage(k int32, damping float64) (change float64, err error) {
	if err := r.checkContext(len(r.graph.expression.Tables[r.graph.tableOf[k]].Data)); err != nil {
		return 0, err
	}
	r.Updates++
	newMessage, ok := r.kernel.messageToIndex(k)
	if !ok {
		r.Contradiction = r.graph.indexOf(k)
		return math.Inf(1), nil
	}
	message := r.graph.messageOf(r.toIndex, k)
	if r.isAllowed != nil { // a second run, after a contradiction that is due to the range of float64 (rerunBounded)
		keepAllowed(newMessage, r.graph.messageOf(r.isAllowed, k))
	}
	for a, x := range newMessage {
		change = max(change, math.Abs(x-message[a]))
		message[a] = x + damping*(message[a]-x)
	}
	return change, nil
}

// keepAllowed raises the entries of a message for allowed values to minAllowed, if they are below. isAllowed is not 0 for an allowed value.
func keepAllowed(message, isAllowed []float64) {
	for a, indicator := range isAllowed {
		if indicator != 0 {
			message[a] = max(message[a], minAllowed)
		}
	}
}

// sendFrom computes the messages from index i to its tables. It sets Contradiction to i if they allow no value.
func (r *runner) sendFrom(i int) {
	if !r.kernel.updateToTables(i) {
		r.Contradiction = i
	}
}

// checkContext is called before the given number of entries is read. Once in 2^22 entries it returns the error of the context. If
// Options.Enough has ended by then, it lowers the limit of the updates to those made so far, which ends the run.
func (r *runner) checkContext(entries int) error {
	r.entriesRead += int64(entries) + 8 // 8 for the call itself
	if r.entriesRead > 1<<22 {
		r.entriesRead = 0
		if r.options.hasEnough() {
			r.options.Updates = min(r.options.Updates, max(r.Updates, 1)) // a limit is at least 1
		}
		return r.ctx.Err()
	}
	return nil
}

// isDone reports whether the run has converged, met a contradiction, or spent its updates, or whether its Options.Enough has ended.
func (r *runner) isDone() bool {
	return r.Converged || r.Contradiction >= 0 || r.Updates >= r.options.Updates || r.options.hasEnough()
}

// runPhase makes rounds of a phase until the run is done (it has converged, met a contradiction, or spent its updates), or until maxStalls
// rounds had no progress. A phase is a schedule with a damping. A round returns the largest change of a message. It has no progress if
// that is more than progressFactor times the smallest change of a round before.
func (r *runner) runPhase(phase phase, maxStalls int) error {
	r.Damping = phase.damping
	runRound := r.sequentialRound
	if phase.schedule == Residual {
		q := newQueue(len(r.graph.expression.Dims))
		runRound = func() (float64, error) { return r.residualRound(q) }
	}

	smallest := math.Inf(1)
	for stalls := 0; ; {
		change, err := runRound()
		if err != nil || r.isDone() {
			return err
		}
		if change > progressFactor*smallest {
			stalls++
			if stalls == maxStalls {
				return nil
			}
		}
		smallest = min(smallest, change)
	}
}

// sequentialRound makes up to pairsPerRound pairs of sweeps and returns the smallest change of a pair. It stops early if the run is done.
// Messages change one after the other during a pair; so only measureChange, which changes none, decides whether the run has converged.
func (r *runner) sequentialRound() (smallest float64, err error) {
	smallest = math.Inf(1)
	for range pairsPerRound {
		change, err := r.sweepPair()
		if err != nil || r.Contradiction >= 0 {
			return smallest, err
		}
		r.Sweeps++
		smallest = min(smallest, change)
		// measureChange sets r.Converged.
		mayHaveConverged := change <= r.options.Tolerance || r.Sweeps == 1 // on trees one pair is enough
		if mayHaveConverged {
			if err := r.measureChange(); err != nil {
				return smallest, err
			}
		}
		if r.isDone() {
			break
		}
	}

	return smallest, nil
}

// sweepPair makes two sweeps over all indices. The first goes backwards and sends the messages from every table to its first index in the
// order; the second goes forwards and sends the messages from every table to its other indices. It returns the largest change of a
// message. At a contradiction it stops and returns +Inf.
func (r *runner) sweepPair() (change float64, err error) {
	order := r.graph.order
	for n := len(order) - 1; n >= 0; n-- {
		indexChange, err := r.updateIndex(int(order[n]), sentBackwards)
		if err != nil || r.Contradiction >= 0 { // indexChange is +Inf at a contradiction
			return indexChange, err
		}
		change = max(change, indexChange)
	}
	for _, i := range order {
		indexChange, err := r.updateIndex(int(i), sentForwards)
		if err != nil || r.Contradiction >= 0 {
			return indexChange, err
		}
		change = max(change, indexChange)
	}
	return change, nil
}

// updateIndex computes the messages to index i that are sent in the present sweep, over all indices forwards or backwards: the role of a
// message tells in which of the two it is sent. Then it computes the messages from i to its tables. It returns the largest change of a
// message to i. At a contradiction it stops and returns +Inf.
func (r *runner) updateIndex(i int, role role) (change float64, err error) {
	for k := r.graph.firstIncidence[i]; k < r.graph.endIncidence[i]; k++ {
		if r.graph.role[k] != role {
			continue
		}
		messageChange, err := r.updateMessage(k, r.Damping)
		if err != nil || r.Contradiction >= 0 {
			return messageChange, err // updateMessage returns +Inf at a contradiction
		}
		change = max(change, messageChange)
	}
	r.sendFrom(i)
	if r.Contradiction >= 0 {
		return math.Inf(1), nil
	}
	return change, nil
}

// measureChange computes every message from a table to an index anew, without changing any. It sets Change to the largest difference of an
// entry from the present message, and Converged to whether Change is within the tolerance. If a message is 0 for all values, it sets
// Contradiction, and Change to +Inf. It counts as an update of each message.
func (r *runner) measureChange() error {
	change := 0.0
	for k := range r.graph.tableOf {
		if err := r.checkContext(len(r.graph.expression.Tables[r.graph.tableOf[k]].Data)); err != nil {
			return err
		}
		r.Updates++
		newMessage, ok := r.kernel.messageToIndex(int32(k))
		if !ok {
			r.Contradiction = r.graph.indexOf(int32(k))
			change = math.Inf(1)
			break
		}
		messageChange := 0.0
		for a, x := range r.graph.messageOf(r.toIndex, int32(k)) {
			messageChange = max(messageChange, math.Abs(newMessage[a]-x))
		}
		change = max(change, messageChange)
	}

	r.Change, r.Converged = change, change <= r.options.Tolerance
	return nil
}
