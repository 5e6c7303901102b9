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

// findContradiction sets Contradiction if messages that have not converged exclude all values of an index or of a table once they are sent
// to all tables again, as Restore sends them.
func (s *State) findContradiction() {
	if s.Converged || s.Contradiction >= 0 || s.Signed || s.g.e.Scale.IsZero() {
		return
	}
	sent := newState(s.g)
	copy(sent.m, s.m)
	s.Contradiction = sent.sendAllMessages()
}

// sendAllMessages computes the messages to all tables. It returns an index all of whose values are excluded, or an index of such a table;
// −1 if there is none.
func (s *State) sendAllMessages() (contradiction int) {
	kernel := newKernel(s.g, s.m, s.v)
	for i := range s.g.e.Dims {
		if !kernel.updateToTables(i) {
			return i
		}
	}
	for t, table := range s.g.e.Tables {
		if len(table.Scope) > 0 && kernel.tableValue(t).IsZero() {
			return table.Scope[0]
		}
	}
	return -1
}

// isOnlyOfFloat64 reports whether a run ended in a contradiction that arc consistency does not confirm. allowed is the result of
// allowedMessages.
func (s *State) isOnlyOfFloat64(allowed []float64) bool {
	return s.Contradiction >= 0 && !s.Signed && allowed != nil
}

// rerunBounded runs again, after a contradiction at an index that is only one of float64, with messages that exclude no allowed value. The
// resulting messages are no fixed point, not even on a tree. It returns an error that wraps sumproduct.ErrSpan if they contradict each
// other, too.
func (r *runner) rerunBounded(index int, allowed []float64) error {
	r.allowed, r.Contradiction = allowed, -1
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

// allowedMessages examines a contradiction between entries ≥ 0 by arc consistency: entries and messages are 0 or 1, so that a value that
// messages exclude has no term in Z. It returns these messages, which have 1 for the values they allow. It returns nil if an index has no
// allowed value (then Z = 0), if there is no contradiction, or if entries are below 0.
func (s *State) allowedMessages(ctx context.Context) (allowed []float64, err error) {
	if s.Contradiction < 0 || s.Signed {
		return nil, nil
	}
	rounded := &sumproduct.Expression{
		Dims:   s.g.e.Dims,
		Tables: make([]sumproduct.Table, len(s.g.e.Tables)),
		Scale:  s.g.e.Scale,
	}
	for t, table := range s.g.e.Tables {
		rounded.Tables[t] = sumproduct.Table{
			Scope: table.Scope,
			Data:  replaceByIndicators(append([]float64(nil), table.Data...)),
		}
	}

	g := *s.g
	g.e = rounded
	indicators := newState(&g)
	r := &runner{State: indicators, kernel: newKernel(&g, indicators.m, indicators.v), ctx: ctx}
	for a := range indicators.m {
		indicators.m[a] = 1
	}

	isContradiction, err := r.excludeValues()
	if err != nil || isContradiction {
		return nil, err
	}
	return indicators.m, nil
}

// excludeValues passes messages of 0 and 1 until none changes, and reports whether they exclude all values of an index.
func (r *runner) excludeValues() (isContradiction bool, err error) {
	for i := range r.g.e.Dims {
		if r.sendFrom(i); r.Contradiction >= 0 {
			return true, nil
		}
	}

	for hasChanged := true; hasChanged; {
		hasChanged = false
		for n := range 2 * len(r.g.order) {
			i := int(r.g.order[min(n, 2*len(r.g.order)-1-n)]) // forwards, then backwards
			for k := r.g.begin[i]; k < r.g.end[i]; k++ {
				if err := r.checkContext(len(r.g.e.Tables[r.g.tableOf[k]].Data)); err != nil {
					return false, fmt.Errorf("bp: %w", err)
				}
				out, ok := r.kernel.messageToIndex(k)
				if !ok {
					return true, nil
				}
				m := r.g.message(r.m, k)
				for a, x := range replaceByIndicators(out) {
					hasChanged = hasChanged || x != m[a]
					m[a] = x
				}
			}

			if r.sendFrom(i); r.Contradiction >= 0 {
				return true, nil
			}
			replaceByIndicators(r.v[r.g.offset[r.g.begin[i]]:r.g.offset[r.g.end[i]]])
		}
	}

	return false, nil
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
