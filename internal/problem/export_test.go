package problem

// Simplified is how many forms of the last problem's network were made.
func Simplified(s *Shared) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.mu.Lock()
	defer s.last.mu.Unlock()
	return s.last.simplified
}

// HoldGround is another task that makes the ground, without end.
func (p *Problem) HoldGround() { p.grounding <- struct{}{} }
