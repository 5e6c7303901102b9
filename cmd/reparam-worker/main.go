// Command reparam-worker turns factor graphs into base tensor networks (Lemma 1).
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/pipeline"
)

func main() {
	os.Exit(worker.Main(pipeline.StageReparam,
		"reparam-worker turns factor graphs into base tensor networks (Lemma 1)."))
}
