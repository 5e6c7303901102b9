package arena

import (
	"testing"
)

func TestSlabListsDoNotOverlap(t *testing.T) {
	var s Slab[int]
	var lists [][]int
	for n := range 300 {
		l := s.Make(n * n % 97)
		if cap(l) != len(l) {
			t.Fatalf("list of %d has room for %d", len(l), cap(l))
		}
		for i := range l {
			if l[i] != 0 {
				t.Fatal("not zero")
			}
			l[i] = n
		}
		lists = append(lists, l)
	}
	lists = append(lists, s.Make(mostSlab), s.Copy([]int{300, 300}))
	for n, l := range lists {
		for _, x := range l {
			if x != n && n != 300 && n != 301 {
				t.Fatalf("list %d has an entry of list %d", n, x)
			}
		}
	}
	if got := lists[301]; got[0] != 300 || got[1] != 300 {
		t.Errorf("copy %v", got)
	}
	if new(Slab[int]).Make(0) == nil {
		t.Error("an empty list is nil")
	}
}

func TestSlabAllocatesSeldom(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		var s Slab[float64]
		for range 1 << 14 {
			s.Make(4)
		}
	}); n > 20 {
		t.Errorf("%v allocations for %d lists", n, 1<<14)
	}
}
