package main

import (
	"math"
	"runtime/debug"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/config"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

const (
	// leastLimit is what the process may take whatever --memory says: up to that the collector is
	// left alone.
	leastLimit = 3 << 30
	// runtimes is what it takes beside tables and model: the program, the servers, buffers.
	runtimes = 192 << 20
	// garbage is the part of --memory that is left to what the collector has not found yet.
	garbage = 16
	// copies is how many times a model's numbers are in memory at a time: as they were read, in the
	// message, as a network, and in the stream of networks.
	copies = 4
)

// tables is how much of --memory tables may have: without the rest of the process, so that all of it
// takes no more. Of little memory, up to the default, tables have all; the process takes up to
// leastLimit then.
func tables(memory config.Size, m *factorgraph.Model) int64 {
	whole, model := int64(memory), int64(0)
	if m != nil {
		model = 8 * int64(m.Stats().Entries)
	}
	return max(min(whole, btn.DefaultMemory), whole-whole/garbage-runtimes-copies*model)
}

// limitMemory has the collector run more often before this process takes more than --memory: by
// itself it lets garbage grow as large as what is alive. It is no bound; what is alive is bounded by
// the budgets. A GOMEMLIMIT in the environment stays.
func limitMemory(memory config.Size) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(max(leastLimit, int64(memory)-int64(memory)/(2*garbage)))
	}
}
