package problem

// Made is the number of forms of the last problem that were made.
func Made(s *Shared) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.forms.mu.Lock()
	defer s.last.forms.mu.Unlock()
	return s.last.forms.made
}
