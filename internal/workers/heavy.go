package workers

import (
	"strconv"

	"github.com/basetensor/basetensor/internal/bus"
)

// headerCost is on a task: the flops that it is expected to take. The payload says it too; this is to be read without decoding.
const headerCost = "Btn-Cost"

// smallFlops is what a task may cost to be one of several at a time: a millisecond. Its tables have no more entries than it has
// operations, so all slots together hold tens of megabytes.
const smallFlops = 1e6

// heavy reports whether a task is not small, or does not say what it costs.
func heavy(m *bus.Delivered) bool {
	cost, err := strconv.ParseFloat(m.Header.Get(headerCost), 64)
	return err != nil || !(cost >= 0 && cost <= smallFlops)
}
