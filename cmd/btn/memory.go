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
	otherMemory = 192 << 20
	// garbageShare divides --memory: this part is left to garbage that is not yet collected.
	garbageShare = 16
	// copies is the number of a model's copies in memory at a time: as read, in the message, as a network, and in the stream of networks.
	modelCopies = 4
)

// tableMemory returns the part of --memory for tables: what is left after garbage, other memory, and the copies of the
// model. If the memory is at most the default, tables have all of it, and the process may take up to leastLimit.
func tableMemory(memory config.Size, m *factorgraph.Model) int64 {
	total, modelBytes := int64(memory), int64(0)
	if m != nil {
		modelBytes = 8 * int64(m.Stats().Entries)
	}
	return max(min(total, query.DefaultMemory), total-total/garbageShare-otherMemory-modelCopies*modelBytes)
}

// limitMemory makes the collector run more often before this process takes more than --memory: by itself it lets
// garbage grow to the size of the live heap. It is no bound, since the budgets bound the live heap. A GOMEMLIMIT in the
// environment stays.
func limitMemory(memory config.Size) {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(max(leastLimit, int64(memory)-int64(memory)/(2*garbageShare)))
	}
}
