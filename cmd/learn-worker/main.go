// Command learn-worker decomposes base tensors into tractable components and caches them.
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/query"
)

func main() {
	os.Exit(worker.Main(query.StageLearn,
		"learn-worker decomposes base tensors into tractable components and caches them."))
}
