// Command contract-worker contracts components, independently of each other. Scale this one.
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/pipeline"
)

func main() {
	os.Exit(worker.Main(pipeline.StageContract,
		"contract-worker contracts components, independently of each other. Scale this one."))
}
