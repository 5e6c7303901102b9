package workers

import (
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/problem"
)

// keepShared is for how long intermediate results are kept after a task: those of a million
// variables are a gigabyte.
const keepShared = 5 * time.Second

// shared keeps intermediate results for the tasks of one worker. It drops them when no task has
// ended or begun for keepShared.
type shared struct {
	problem.Shared
	mu    sync.Mutex
	timer *time.Timer
}

// hold returns the intermediate results for a task that begins; end is to be called when it has
// ended.
func (s *shared) hold() (of *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.timer == nil {
		s.timer = time.AfterFunc(keepShared, s.Drop)
	}

	s.timer.Stop()
	return &s.Shared, func() { s.timer.Reset(keepShared) }
}
