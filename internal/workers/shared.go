package workers

import (
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/problem"
)

// keepShared is how long a worker without tasks keeps what the last one made: a gigabyte for a million variables.
const keepShared = 5 * time.Second

// shared is what the tasks of one worker hand on to each other. It forgets when there have been none for a while.
type shared struct {
	problem.Shared
	mu    sync.Mutex
	timer *time.Timer
}

// hold returns what there is for a task, until its end.
func (s *shared) hold() (of *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(keepShared, s.Drop)
	}
	s.timer.Stop()
	return &s.Shared, func() { s.timer.Reset(keepShared) }
}
