package sumproduct

// The memory budget: the error of tables that do not fit.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// OverBudget returns the error that an elimination of the given cost, plan, needs more than the allowed memory, in bytes. It wraps
// ErrOverBudget, with the code fault.OverBudget.
func OverBudget(plan query.Cost, memory int64) error {
	bytes := fmt.Sprintf("%.0f bytes", plan.Bytes)
	if plan.Bytes > 1e15 {
		bytes = fmt.Sprintf("2^%.1f bytes", math.Log2(plan.Bytes))
	}
	return fault.New(fault.OverBudget,
		"%w: exact elimination needs %s of tables (width %d, largest table 2^%.1f entries, "+
			"%.3g flops), the budget is %d bytes",
		ErrOverBudget, bytes, plan.Width, plan.Log2Table, plan.Flops, memory)
}
