package main

import (
	"math"
	"runtime/debug"

	"github.com/basetensor/basetensor/internal/config"
)

const (
	leastLimit = 3 << 30 // bytes of the process below which the collector is left alone
	besides    = 1 << 30 // bytes beside the tables
)

// limitMemory has the collector run more often before this process takes more than the tables and
// what belongs to them: by itself it lets garbage grow as large as what is alive. It is no bound;
// what is alive is bounded by the budgets. A GOMEMLIMIT in the environment stays.
func limitMemory(tables config.Size) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(max(leastLimit, min(int64(tables), math.MaxInt64-besides)+besides))
	}
}
