package pipeline

import (
	"strconv"

	"github.com/basetensor/basetensor/pkg/internal/bus"
)

// headerCost is on a task: the flops that it is expected to take. The payload says it too; this is to be read without decoding.
const headerCost = "Btn-Cost"

// smallFlops is what a task may cost to be one of several at a time: a millisecond. Its tables have no more entries than it has
// operations, so all slots together hold tens of megabytes.
const smallFlops = 1e6

// weight is 1 for a small task; any other, also one that does not say what it costs, has the worker to itself but for one slot: what
// takes minutes must not hold up what takes milliseconds.
func weight(m *bus.Delivered, slots int) int {
	if cost, err := strconv.ParseFloat(m.Header.Get(headerCost), 64); err == nil && cost >= 0 && cost <= smallFlops {
		return 1
	}
	return max(1, slots-1)
}
