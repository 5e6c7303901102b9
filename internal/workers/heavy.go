package workers

import (
	"strconv"

	"github.com/basetensor/basetensor/internal/bus"
)

// headerCost is the header of a task with the flops that it is expected to take. The payload has
// them too; the header is read without decoding it.
const headerCost = "Btn-Cost"

// smallFlops is the most flops a task may cost to be contracted beside others: about a millisecond
// of work. Its tables have no more entries than it has operations, so all slots together hold tens
// of megabytes.
const smallFlops = 1e6

// heavy reports whether a task is not small, or does not say what it costs.
func heavy(m *bus.Delivered) bool {
	cost, err := strconv.ParseFloat(m.Header.Get(headerCost), 64)

	return err != nil || !(cost >= 0 && cost <= smallFlops)
}
