package workers

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// Forged returns a function that counts every forged message, and logs one a second at most.
func Forged(log *slog.Logger, m *metrics.Metrics) func(message.Kind, string) {
	var said atomic.Int64 // Unix nanoseconds
	return func(kind message.Kind, subject string) {
		m.Forged(kind)
		last, now := said.Load(), time.Now().UnixNano()
		if now-last > int64(time.Second) && said.CompareAndSwap(last, now) {
			log.Warn("a message that no worker signed is ignored", "kind", kind, "subject", subject)
		}
	}
}
