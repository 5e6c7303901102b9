package workers

import "testing"

// Intermediate results are dropped only after the last of several tasks.
func TestSharedWhileATaskWorks(t *testing.T) {
	var s shared
	_, endLong := s.hold()
	_, endShort := s.hold()
	endShort()
	if s.timer != nil {
		t.Error("to be dropped while a task works")
	}

	endLong()
	if s.timer == nil || !s.timer.Stop() {
		t.Error("not to be dropped after the last task")
	}

	_, end := s.hold()
	if s.timer.Stop() {
		t.Error("to be dropped while the next task works")
	}
	end()
	if !s.timer.Stop() {
		t.Error("not to be dropped after the next task")
	}
}
