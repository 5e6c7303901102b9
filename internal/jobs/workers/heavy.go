package workers

import (
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// heavy reports whether a task is not small, or does not state its cost.
func heavy(m *bus.Delivered) bool {
	cost, says := message.Cost(m.Header)
	return !says || cost > message.SmallFlops
}
