package main

import (
	"math"
	"runtime/debug"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// leastLimit is the process's memory under any --memory: up to that the collector is left alone.
	leastLimit = 3 << 30
	// runtimes is the memory beside tables and model: the program, the servers, buffers.
	runtimes = 192 << 20
	// garbage is the part of --memory that is left to garbage not yet collected.
	garbage = 16
	// copies is the number of a model's copies in memory at a time: as read, in the message, as a network, and in the stream of networks.
	copies = 4
)

// tables returns the part of --memory for tables: without the rest of the process, so that all of it takes no more. Of
// little memory, up to the default, tables have all; the process takes up to leastLimit then.
func tables(memory config.Size, m *factorgraph.Model) int64 {
	whole, model := int64(memory), int64(0)
	if m != nil {
		model = 8 * int64(m.Stats().Entries)
	}
	return max(min(whole, query.DefaultMemory), whole-whole/garbage-runtimes-copies*model)
}

// limitMemory has the collector run more often before this process takes more than --memory: by itself it lets garbage grow to the size
// of the live heap. It is no bound; the budgets bound the live heap. A GOMEMLIMIT in the environment stays.
func limitMemory(memory config.Size) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(max(leastLimit, int64(memory)-int64(memory)/(2*garbage)))
	}
}
