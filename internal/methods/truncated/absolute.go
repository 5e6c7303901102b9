package truncated

// The second contraction of networks with entries below 0, which is that of their absolute values: its price and its memory.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// absolute is the number of bytes of the tables, which are held while their absolute values are contracted. It is 0 if no entry is below
// 0, so that there is no second contraction.
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

// Signs returns a suffix for keys of plans whose searches and prices include the second contraction. It is empty if there is none.
func Signs(p *Prepared) string {
	if p.absolute > 0 {
		return " and absolute values"
	}
	return ""
}

// addCost returns c, the cost of the first contraction, with that of the second. withoutMarginals is the cost of a contraction without
// marginals.
func (a absolute) addCost(c, withoutMarginals legs.Cost) legs.Cost {
	if a > 0 {
		c.Flops += withoutMarginals.Flops
		c.Bytes = max(c.Bytes, withoutMarginals.Bytes+float64(a))
	}
	return c
}

// freeMemory returns the bytes of a memory that the tables leave, at least 1, since 0 stands for the default.
func (a absolute) freeMemory(memory int64) int64 { return max(1, int64(legs.Memory(memory))-int64(a)) }

// explain adds to an error over budget of a contraction in freeMemory that the tables take memory, too. It returns other errors as they
// are.
func (a absolute) explain(err error) error {
	if a == 0 || fault.CodeOf(err) != fault.OverBudget {
		return err
	}
	return fault.New(fault.OverBudget, "%w, beside %.0f bytes of the tables whose absolute values are contracted", err, float64(a))
}
