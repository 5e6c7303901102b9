package workers

import (
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/network/problem"
)

// keepShared is the time for which intermediate results are kept after a task: for a million
// variables they are a gigabyte.
const keepShared = 5 * time.Second

// shared keeps intermediate results for the plans and tasks of one process. It drops them when neither
// has been in work for keepShared.
type shared struct {
	problem.Shared
	mu     sync.Mutex
	inWork int
	timer  *time.Timer // that drops them; it runs while no task is in work
}

// hold returns the intermediate results for a plan or task that begins; end is to be called when it has
// ended.
func (s *shared) hold() (of *problem.Shared, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork++
	if s.timer != nil {
		s.timer.Stop()
	}
	return &s.Shared, s.end
}

// end notes that a task has ended.
func (s *shared) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.inWork--
	if s.inWork == 0 {
		s.timer = time.AfterFunc(keepShared, s.Drop)
	}
}
