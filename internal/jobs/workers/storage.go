package workers

import (
	"context"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/bus"
)

// WatchStorage checks whether the server stores messages, also while no worker has any to store,
// and logs the change once in either direction. It returns when ctx ends.
func WatchStorage(ctx context.Context, c *bus.Conn, log *slog.Logger, m *metrics.Metrics) {
	stalled := false
	probed := time.Now()
	every(ctx, storageEvery, func(over bool) {
		if !over && time.Since(probed) >= bus.ProbeEvery {
			// The connection remembers the findings of Probe. That a server is away, or not set up, is reported
			// elsewhere.
			_ = c.Probe(ctx)
			_ = c.Synchronize(ctx)
			probed = time.Now()
		}

		err := c.CheckStorage()
		if ctx.Err() != nil || (err != nil) == stalled {
			return
		}

		stalled = err != nil
		m.Storage(stalled)
		if stalled {
			log.Error("nothing is stored: make room on the disk of nats-server, then restart nats-server", "error", err)
		} else {
			log.Info("the NATS server stores again")
		}
	})
}

// storageEvery is the interval at which it is checked whether a publish or a probe has found that
// nothing is stored.
const storageEvery = 500 * time.Millisecond
