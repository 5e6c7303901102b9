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

// weight is 1 for a small task. Any other, also one that does not say what it costs, takes two slots, and one such task is worked on at a
// time: what takes minutes must not hold up what takes milliseconds, and those wait for the server more than they compute.
func weight(m *bus.Delivered, slots int) int {
	if cost, err := strconv.ParseFloat(m.Header.Get(headerCost), 64); err == nil && cost >= 0 && cost <= smallFlops {
		return 1
	}
	return min(2, slots)
}
