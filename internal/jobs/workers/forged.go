package workers

import (
	"log/slog"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
)

// Forged returns a function that counts every forged message, and logs them as trouble.
func Forged(log *slog.Logger, m *metrics.Metrics) func(message.Kind, string) {
	var trouble bus.Trouble
	return func(kind message.Kind, subject string) {
		m.Forged(kind)
		trouble.Warn(log, "a message that no worker signed is ignored", "kind", kind, "subject", subject,
			"check", "btn doctor names workers with other --message-keys or --answers-key")
	}
}
