package admission

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	// besides is the memory of a process beside the messages in work: the runtime, caches, buffers.
	// With little memory it is a quarter of that.
	besides = 384 << 20
	// headroom is the part of the limit that the collector leaves free: stacks, the program itself.
	headroom = 16
	// negligible is the size below which messages are not counted and never wait.
	negligible = 1 << 20
)

// cgroup is the file in which Linux states the memory limit of a container.
const cgroup = "/sys/fs/cgroup/memory.max"

// LimitProcess bounds the memory of this process and returns the bound, 0 for none: flag where it is
// given, else GOMEMLIMIT, else the limit of the cgroup. The collector runs more often near it.
func LimitProcess(flag int64) int64 {
	set := debug.SetMemoryLimit(-1)
	switch {
	case flag == 0 && set != math.MaxInt64:
		return set
	case flag == 0:
		text, err := os.ReadFile(cgroup)
		if err != nil {
			return 0
		}
		if flag, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return 0 // "max"
		}
	}
	debug.SetMemoryLimit(min(set, flag-flag/headroom))
	return flag
}

// Memory is shared by all messages that a process works on. A nil one is not bounded.
type Memory struct {
	limit, most int64
	free        *semaphore.Weighted
}

// NewMemory returns the memory of a process with a limit; nil for 0.
func NewMemory(limit int64) *Memory {
	if limit <= 0 {
		return nil
	}
	most := limit - min(besides, limit/4)
	return &Memory{limit, most, semaphore.NewWeighted(most)}
}

// Hold waits for so many bytes, in the sequence of calls, and returns the function that gives them
// back. It fails with the error of ctx, or with over_budget if the request exceeds the total.
func (m *Memory) Hold(ctx context.Context, bytes float64) (free func(), err error) {
	if m == nil || bytes < negligible {
		return func() {}, nil
	}
	if bytes > float64(m.most) {
		return nil, fault.New(
			fault.OverBudget, "admission: it takes %.4g bytes at a time, this worker has %d (memory-limit %d)", bytes,
			m.most, m.limit,
		)
	}
	n := int64(bytes)
	if err := m.free.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { m.free.Release(n) }, nil
}
