// Command aggregator sums the weighted values of a job's components and publishes its one answer
// (Lemma 5).
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/pipeline"
)

func main() {
	os.Exit(worker.Main(pipeline.StageAggregate,
		"aggregator sums the weighted values of a job's components and publishes its one answer (Lemma 5)."))
}
