// Command reparam-worker turns factor graphs into base tensor networks (Lemma 1).
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/query"
)

func main() {
	os.Exit(worker.Main(query.StageReparam,
		"reparam-worker turns factor graphs into base tensor networks (Lemma 1)."))
}
