package bp

// Contradictions: is Z = 0, or is a message only beyond float64?

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// minAllowed is the smallest entry for a value that arc consistency allows, in the messages of a bounded run, which sum to 1.
const minAllowed = 0x1p-30

// findContradiction tests messages that have not converged: it sets Contradiction if they exclude all values of an index or of a table. For
// the test it sends the messages of a copy from the indices to all tables again, as Restore does.
func (s *State) findContradiction() {
	if s.Converged || s.Contradiction >= 0 || s.Signed || s.graph.expression.Scale.IsZero() {
		return
	}
	restored := newState(s.graph)
	copy(restored.toIndex, s.toIndex)
	s.Contradiction = restored.sendAllMessages()
}

// sendAllMessages computes the messages from the indices to all tables. It returns an index of a contradiction, or −1 if there is none.
// This is an index all of whose values are excluded by the messages to it, or the first index of a table all of whose entries are 0 or
// excluded.
func (s *State) sendAllMessages() (contradiction int) {
	kernel := newKernel(s.graph, s.toIndex, s.toTable)
	for i := range s.graph.expression.Dims {
		if !kernel.updateToTables(i) {
			return i
		}
	}
	for t, table := range s.graph.expression.Tables {
		if len(table.Scope) > 0 && kernel.tableValue(t).IsZero() {
			return table.Scope[0]
		}
	}
	return -1
}

// isNumericalContradiction reports whether a run ended in a contradiction only because of the range of float64: arc consistency does not
// confirm it. isAllowed is the result of allowedMessages, which is nil if arc consistency confirms a contradiction.
func (s *State) isNumericalContradiction(allowed []float64) bool {
	return s.Contradiction >= 0 && !s.Signed && allowed != nil
}

// rerunBounded runs belief propagation again with messages that exclude no allowed value: the entries of allowed values stay at minAllowed
// or more. It is called after a contradiction at an index that is due to the range of float64 only: small entries became 0. The resulting
// messages are no fixed point, not even on a tree, so Converged becomes false. It returns an error that wraps sumproduct.ErrSpan if these
// messages contradict each other, too.
func (r *runner) rerunBounded(index int, isAllowed []float64) error {
	r.isAllowed, r.Contradiction = isAllowed, -1
	if err := r.setStart(r.options); err != nil {
		return err
	}
	if err := r.run(); err != nil {
		return err
	}
	r.Converged, r.Change = false, max(r.Change, minAllowed)
	r.findContradiction()
	if r.Contradiction >= 0 {
		return fault.New(fault.Unsupported, "%w: messages to index %d exclude all its values", sumproduct.ErrSpan, index)
	}
	return nil
}

// allowedMessages tests a contradiction between entries ≥ 0 by arc consistency: belief propagation in which every entry and message that
// is not 0 is replaced by 1. A value that these messages exclude has no term in Z. isAllowed has the messages from tables to indices, with
// 1 for each allowed value and 0 for the others. It is nil in three cases: if an index has no allowed value (then Z = 0), if s has no
// contradiction, or if entries are below 0.
func (s *State) allowedMessages(ctx context.Context) (isAllowed []float64, err error) {
	if s.Contradiction < 0 || s.Signed {
		return nil, nil
	}

	// The same expression with the entries 0 and 1.
	indicatorExpression := &sumproduct.Expression{
		Dims:   s.graph.expression.Dims,
		Tables: make([]sumproduct.Table, len(s.graph.expression.Tables)),
		Scale:  s.graph.expression.Scale,
	}
	for t, table := range s.graph.expression.Tables {
		indicatorExpression.Tables[t] = sumproduct.Table{
			Scope: table.Scope,
			Data:  replaceByIndicators(append([]float64(nil), table.Data...)),
		}
	}

	g := *s.graph
	g.expression = indicatorExpression
	indicators := newState(&g)
	r := &runner{State: indicators, kernel: newKernel(&g, indicators.toIndex, indicators.toTable), ctx: ctx}
	for a := range indicators.toIndex {
		indicators.toIndex[a] = 1
	}

	isContradiction, err := r.excludeValues()
	if err != nil || isContradiction {
		return nil, err
	}
	return indicators.toIndex, nil
}

// excludeValues passes messages of 0 and 1 between tables and indices until none changes: 0 stands for a value that is excluded, 1 for
// every other. It reports whether they exclude all values of an index.
func (r *runner) excludeValues() (isContradiction bool, err error) {
	for i := range r.graph.expression.Dims {
		r.sendFrom(i) // sets Contradiction if the messages to i exclude all its values
		if r.Contradiction >= 0 {
			return true, nil
		}
	}

	for anyChanged := true; anyChanged; {
		anyChanged = false
		for n := range 2 * len(r.graph.order) {
			i := int(r.graph.order[min(n, 2*len(r.graph.order)-1-n)]) // all indices forwards, then backwards
			hasChanged, isContradiction, err := r.excludeAt(i)
			if err != nil || isContradiction {
				return isContradiction, err
			}
			anyChanged = anyChanged || hasChanged
		}
	}
	return false, nil
}

// excludeAt computes the messages from the tables of index i to it, and from it to its tables, as messages of 0 and 1. hasChanged tells
// whether a message to i has changed, and isContradiction that the messages exclude all values of an index.
func (r *runner) excludeAt(i int) (hasChanged, isContradiction bool, err error) {
	for k := r.graph.firstIncidence[i]; k < r.graph.endIncidence[i]; k++ {
		if err := r.checkContext(len(r.graph.expression.Tables[r.graph.tableOf[k]].Data)); err != nil {
			return false, false, fmt.Errorf("bp: %w", err)
		}
		newMessage, ok := r.kernel.messageToIndex(k)
		if !ok { // it is 0 for every value of i
			return false, true, nil
		}
		message := r.graph.messageOf(r.toIndex, k)
		for a, x := range replaceByIndicators(newMessage) {
			hasChanged = hasChanged || x != message[a]
			message[a] = x
		}
	}

	r.sendFrom(i)
	if r.Contradiction >= 0 {
		return false, true, nil
	}
	// The messages to the tables of i are one piece of memory.
	begin := r.graph.messageStart[r.graph.firstIncidence[i]]
	end := r.graph.messageStart[r.graph.endIncidence[i]]
	replaceByIndicators(r.toTable[begin:end])
	return hasChanged, false, nil
}

// replaceByIndicators replaces every entry that is not 0 by 1, in place, and returns x.
func replaceByIndicators(x []float64) []float64 {
	for a := range x {
		if x[a] != 0 {
			x[a] = 1
		}
	}
	return x
}
