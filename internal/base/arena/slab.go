package arena

// Slabs: many short lists in few allocations.

// Slab hands out short lists of one type as pieces of long ones. A piece lives as long as any other of its slab does: a
// Slab is for lists that are made together and dropped together. The zero value is ready; it is for one goroutine.
type Slab[T any] struct {
	unused []T // of the current slab
	size   int // entries of the current slab
}

const (
	firstSlab = 16      // entries of the first slab: a small model pays for little that it does not use
	mostSlab  = 1 << 14 // entries of the largest; lists of more than a quarter of it are allocated by themselves
)

// Make returns a list of n zero entries, whose capacity is n. It cuts the list from the current slab, or from a new one of twice the size.
func (s *Slab[T]) Make(n int) []T {
	if n == 0 {
		return []T{}
	}
	if n > len(s.unused) {
		if n > mostSlab/4 { // a list of its own: the rest of a slab would be wasted
			return make([]T, n)
		}
		s.size = min(max(2*s.size, firstSlab, 4*n), mostSlab) // room for four such lists at least
		s.unused = make([]T, s.size)
	}
	list := s.unused[:n:n]
	s.unused = s.unused[n:]
	return list
}

// Copy returns a copy of list, made by Make.
func (s *Slab[T]) Copy(list []T) []T {
	duplicate := s.Make(len(list))
	copy(duplicate, list)
	return duplicate
}
