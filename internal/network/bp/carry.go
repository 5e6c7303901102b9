package bp

// Carry: messages of a network as the start of a run under evidence.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Carry returns the messages of a run on the expression of a network (State.Messages) as
// Options.Warm for the expression of the same network under evidence: each message restricted to
// the remaining values, scaled to sum 1. Messages that from does not have, or that exclude all
// remaining values, are uniform. Tables are in the same sequence. If the two have other indices, because a table of
// vectors is smaller as a dense one under the evidence, nothing can be carried: it returns nil, a cold start.
//
// Errors: messages of another shape than from (fault.BadInput), the errors of Run for
// invalid expressions. Linear time.
func Carry(from, to *sumproduct.Expression, messages []float64) ([]float64, error) {
	size := Entries(from)
	if len(messages) != size {
		return nil, fault.New(fault.BadInput,
			"bp: %d numbers in messages over %d indices, the expression has %d", len(messages), len(from.Dims), size)
	}
	if len(from.Dims) != len(to.Dims) {
		return nil, nil
	}

	out := make([]float64, 0, Entries(to))
	next, at := 0, 0 // the table of from to look at, and where its messages begin
	for _, t := range to.Tables {
		for next < len(from.Tables) && !equalsReduced(from.Tables[next].Scope, to.Dims, t.Scope) {
			at += width(from, next)
			next++
		}

		if next == len(from.Tables) {
			for _, i := range t.Scope {
				out = append(out, uniform(to.Dims[i])...)
			}
			continue
		}

		for _, i := range from.Tables[next].Scope {
			if to.Dims[i] > 1 {
				out = append(out, cut(messages[at:at+from.Dims[i]], values(from, i), values(to, i))...)
			}
			at += from.Dims[i]
		}

		next++
	}

	return out, nil
}

// Entries is the length of State.Messages on an expression.
func Entries(e *sumproduct.Expression) int {
	size := 0
	for n := range e.Tables {
		size += width(e, n)
	}
	return size
}

// width is the number of entries of all messages of table n.
func width(e *sumproduct.Expression, n int) int {
	size := 0
	for _, i := range e.Tables[n].Scope {
		size += e.Dims[i]
	}
	return size
}

// equalsReduced reports whether scope equals whole without its indices of dimension 1.
func equalsReduced(whole, dims, scope []int) bool {
	k := 0
	for _, i := range whole {
		if dims[i] == 1 {
			continue
		}
		if k == len(scope) || scope[k] != i {
			return false
		}
		k++
	}
	return k == len(scope)
}

// values lists the values of index i in the network's numbering.
func values(e *sumproduct.Expression, i int) []int {
	if i < len(e.Support) && e.Support[i] != nil {
		return e.Support[i]
	}
	all := make([]int, e.Dims[i])
	for x := range all {
		all[x] = x
	}
	return all
}

// cut returns the entries of a message over values of that belong to those left, scaled to sum 1,
// and zeros for values that it does not have.
func cut(message []float64, of, left []int) []float64 {
	out := make([]float64, len(left))
	for a, x := range left {
		if k, ok := slices.BinarySearch(of, x); ok {
			out[a] = message[k]
		}
	}
	if total := normalise(out); !(total > tiny && total < huge) {
		return uniform(len(left))
	}
	return out
}

func uniform(d int) []float64 {
	return slices.Repeat([]float64{1 / float64(d)}, d)
}
