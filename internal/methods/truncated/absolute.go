package truncated

// The second contraction of networks with entries below 0, of absolute values: its price, and its place in the memory.

import (
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// absolute is the bytes of the tables that are held while their absolute values are contracted; 0: no entry is below 0.
type absolute float64

func absoluteOf(e *sumproduct.Expression) (bytes absolute) {
	if !e.Signed() {
		return 0
	}
	for _, t := range e.Tables {
		bytes += absolute(8 * len(t.Data))
	}
	return bytes
}

// Signs names the second contraction in keys of plans, whose searches and prices know it; empty where there is none.
func Signs(p *Prepared) string {
	if p.absolute > 0 {
		return " and absolute values"
	}
	return ""
}

// with adds the second contraction to the cost of the first; alone is the cost without marginals.
func (a absolute) with(c, alone legs.Cost) legs.Cost {
	if a > 0 {
		c.Flops += alone.Flops
		c.Bytes = max(c.Bytes, alone.Bytes+float64(a))
	}
	return c
}

// room is the rest of a memory, bytes; at least 1, as 0 is the default.
func (a absolute) room(memory int64) int64 { return max(1, int64(legs.Memory(memory))-int64(a)) }

// beside says in an error of room what else takes the memory.
func (a absolute) beside(err error) error {
	if a == 0 || fault.CodeOf(err) != fault.OverBudget {
		return err
	}
	return fault.New(fault.OverBudget, "%w, beside %.0f bytes of the tables whose absolute values are contracted", err, float64(a))
}
