// Command learn-worker decomposes base tensors into tractable components and caches what it learned.
package main

import (
	"os"

	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/worker"
)

func main() {
	os.Exit(worker.Main(pipeline.StageLearn, "learn-worker decomposes base tensors into tractable components and caches what it learned."))
}
