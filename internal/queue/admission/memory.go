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
	// otherMemory is the memory of a process beside the messages in work: the runtime, caches, buffers. It is a quarter of
	// the limit if that is less.
	otherMemory = 384 << 20
	// The collector leaves 1/headroomDivisor of the limit free, for stacks and the program itself.
	headroomDivisor = 16
	// minCounted is the size below which messages are not counted and never wait.
	minCounted = 1 << 20
)

// cgroup is the file in which Linux states the memory limit of a container.
const cgroup = "/sys/fs/cgroup/memory.max"

// LimitProcess bounds the memory of this process and returns the bound, 0 if there is none. The bound is flag if that
// is not 0, else GOMEMLIMIT, else the limit of the cgroup. The garbage collector runs more often near its own limit, which
// is 1/headroomDivisor below a bound from flag or cgroup, for stacks and the program itself.
func LimitProcess(flag int64) int64 {
	present := debug.SetMemoryLimit(-1) // only returns the limit, which is that of GOMEMLIMIT
	switch {
	case flag == 0 && present != math.MaxInt64:
		return present
	case flag == 0:
		text, err := os.ReadFile(cgroup)
		if err != nil {
			return 0
		}
		if flag, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return 0 // the text is "max": there is no limit
		}
	}
	debug.SetMemoryLimit(min(present, flag-flag/headroomDivisor))
	return flag
}

// Memory is what all messages share that a process works on. A nil one is not bounded.
type Memory struct {
	limit int64               // of the process
	total int64               // of the messages in work
	free  *semaphore.Weighted // total, minus what Hold has given out
}

// NewMemory returns the memory for the messages of a process that is bounded by limit, or nil if limit is 0.
func NewMemory(limit int64) *Memory {
	if limit <= 0 {
		return nil
	}
	total := limit - min(otherMemory, limit/4)
	return &Memory{limit, total, semaphore.NewWeighted(total)}
}

// Hold waits until so many bytes are free, in the sequence of calls, and takes them. The function that it returns gives
// them back. Fewer than minCounted bytes are not counted and never wait. The error is that of ctx if it ends, or has the
// code over_budget if the bytes exceed the total.
func (m *Memory) Hold(ctx context.Context, bytes float64) (free func(), err error) {
	if m == nil || bytes < minCounted {
		return func() {}, nil
	}
	if bytes > float64(m.total) {
		return nil, fault.New(
			fault.OverBudget, "admission: it takes %.4g bytes at a time, this worker has %d (memory-limit %d)", bytes,
			m.total, m.limit,
		)
	}
	n := int64(bytes)
	if err := m.free.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { m.free.Release(n) }, nil
}
