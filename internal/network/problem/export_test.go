package problem

// FormsBegun returns the number of forms of the last problem that were made, or whose making began.
func FormsBegun(s *Shared) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.forms.mu.Lock()
	defer s.last.forms.mu.Unlock()
	return s.last.forms.startedBuilds
}
