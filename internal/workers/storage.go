package workers

import (
	"context"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/metrics"
)

// WatchStorage looks whether the server stores anything, also while no worker has anything to store, and says once
// when it does not and once when it does again. Until ctx ends.
func WatchStorage(ctx context.Context, b *bus.Bus, log *slog.Logger, m *metrics.Metrics) {
	tick := time.NewTicker(storageEvery)
	defer tick.Stop()
	stalled, probed := false, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(probed) >= bus.ProbeEvery {
			// What it finds the bus remembers; that a server is away, or not set up, others say.
			_ = b.Probe(ctx)
			probed = time.Now()
		}
		err := b.Storage()
		if ctx.Err() != nil || (err != nil) == stalled {
			continue
		}
		stalled = err != nil
		m.Storage(stalled)
		if stalled {
			log.Error("nothing is stored: make room on the disk of nats-server, then restart nats-server", "error", err)
		} else {
			log.Info("the NATS server stores again")
		}
	}
}

// storageEvery is how often it is looked whether a publish found out that nothing is stored.
const storageEvery = 500 * time.Millisecond
