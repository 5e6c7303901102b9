package main

import (
	"os"
	"time"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/internal/queue/bus"
)

// skewedWorker is the word in the place of a command with which this program is a worker whose clock is wrong: the stage and by how
// much follow.
const skewedWorker = "skewed-worker"

// runSkewed runs such a worker. Its settings come from the environment.
func runSkewed(stage, by string) int {
	skew, err := time.ParseDuration(by)
	if err != nil {
		return 2
	}
	bus.Clock = func() time.Time { return time.Now().Add(skew) }
	os.Args = os.Args[:1]
	return worker.Main(stage, "A worker whose clock is wrong.")
}
