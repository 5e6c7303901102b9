// Command contract-worker contracts components, independently of each other. Scale this one.
package main

import (
	"os"

	"github.com/basetensor/basetensor/internal/doors/worker"
	"github.com/basetensor/basetensor/pkg/query"
)

func main() {
	os.Exit(worker.Main(query.StageContract,
		"contract-worker contracts components, independently of each other. Scale this one."))
}
