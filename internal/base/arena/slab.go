package arena

// Slabs: many short lists in few allocations.

// Slab hands out short lists of one type as pieces of long ones. A piece lives as long as any other of its slab does: a
// Slab is for lists that are made together and dropped together. The zero value is ready; it is for one goroutine.
type Slab[T any] struct {
	rest []T
	size int // of the next slab
}

const (
	firstSlab = 16      // entries of the first slab: a small model pays for little that it does not use
	mostSlab  = 1 << 14 // entries of the largest; lists of more than a quarter of it are their own
)

// Make returns n zero entries, with no room after them.
func (s *Slab[T]) Make(n int) []T {
	if n == 0 {
		return []T{}
	}
	if n > len(s.rest) {
		if n > mostSlab/4 {
			return make([]T, n)
		}
		s.size = min(max(2*s.size, firstSlab, 4*n), mostSlab)
		s.rest = make([]T, s.size)
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

// Copy returns a copy of list.
func (s *Slab[T]) Copy(list []T) []T {
	out := s.Make(len(list))
	copy(out, list)
	return out
}
