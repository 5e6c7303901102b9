// Command aggregator sums the weighted values of a job's components and publishes its one answer
// (Lemma 5).
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/query"
)

func main() {
	os.Exit(worker.Main(query.StageAggregate,
		"aggregator sums the weighted values of a job's components and publishes its one answer (Lemma 5)."))
}
