package truncated

// The second contraction of networks with entries below 0, which is that of their absolute values: its price and its memory.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// absolute is the number of bytes of a network's tables, which are held while their absolute values are contracted. It is 0 if no entry is
// below 0: then there is no such second contraction.
type absolute float64

// absoluteBytes returns the bytes of all tables of e if an entry is below 0, else 0.
func absoluteBytes(e *sumproduct.Expression) (bytes absolute) {
	if !e.Signed() {
		return 0
	}
	for _, t := range e.Tables {
		bytes += absolute(8 * len(t.Data))
	}
	return bytes
}

// SignsKeySuffix returns a suffix for the cache keys of plans. It is not empty if a network has entries below 0: then prices include a
// second contraction, of absolute values.
func SignsKeySuffix(p *Prepared) string {
	if p.absolute > 0 {
		return " and absolute values"
	}
	return ""
}

// addCost returns the cost of the first contraction together with that of the second one, of absolute values. If a is 0, there is no second
// one. It has no marginals and runs after the first, while the tables of the first are held.
func (a absolute) addCost(first, second legs.Cost) legs.Cost {
	if a > 0 {
		first.Flops += second.Flops
		first.Bytes = max(first.Bytes, second.Bytes+float64(a))
	}
	return first
}

// freeMemory returns the bytes that the tables leave of a memory (0: the default). It is at least 1, since 0 would stand for the default.
func (a absolute) freeMemory(memory int64) int64 {
	return max(1, int64(legs.MemoryOrDefault(memory))-int64(a))
}

// explain adds to an over-budget error of a search within freeMemory that the tables take memory, too. It returns other errors unchanged.
func (a absolute) explain(err error) error {
	if a == 0 || fault.CodeOf(err) != fault.OverBudget {
		return err
	}
	return fault.New(fault.OverBudget, "%w, beside %.0f bytes of the tables whose absolute values are contracted", err, float64(a))
}
