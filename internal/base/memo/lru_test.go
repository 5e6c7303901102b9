package memo_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/base/memo"
)

// slow is an LRU as a list, last used first: its behaviour is read off its definition.
type slow struct {
	entries        int
	bytes, largest int64
	list           []slowEntry
}

type slowEntry struct {
	key, value int
	bytes      int64
}

func (s *slow) take(key int) (e slowEntry, ok bool) {
	at := slices.IndexFunc(s.list, func(e slowEntry) bool { return e.key == key })
	if at < 0 {
		return e, false
	}
	e = s.list[at]
	s.list = slices.Delete(s.list, at, at+1)
	return e, true
}

func (s *slow) put(e slowEntry) {
	if e.bytes <= s.largest {
		s.list = slices.Insert(s.list, 0, e)
	}
	s.trim()
}

func (s *slow) trim() {
	for len(s.list) > s.entries || s.held() > s.bytes {
		s.list = s.list[:len(s.list)-1]
	}
}

func (s *slow) held() (bytes int64) {
	for _, e := range s.list {
		bytes += e.bytes
	}
	return bytes
}

// TestAgainstAList: every method, in any sequence.
func TestAgainstAList(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	want := slow{entries: 7, bytes: 100, largest: 40}
	got := memo.LRU[int, int]{Entries: 7, Bytes: 100, Largest: 40}
	for n := range 20000 {
		key, value, bytes := rng.IntN(12), rng.IntN(1000), int64(rng.IntN(45))
		switch rng.IntN(5) {
		case 0:
			v, ok := got.Get(key)
			e, known := want.take(key)
			if known {
				want.put(e)
			}
			if ok != known || v != e.value {
				t.Fatalf("seed %d, step %d: Get(%d) = %d, %v, want %d, %v", seed, n, key, v, ok, e.value, known)
			}
		case 1:
			got.Put(key, value, bytes)
			want.take(key)
			want.put(slowEntry{key, value, bytes})
		case 2:
			v := got.Add(key, value, bytes)
			e, known := want.take(key)
			if !known {
				e = slowEntry{key, value, bytes}
			}
			want.put(e)
			if v != e.value {
				t.Fatalf("seed %d, step %d: Add(%d) = %d, want %d", seed, n, key, v, e.value)
			}
		case 3:
			got.Resize(key, bytes)
			for i := range want.list {
				if e := &want.list[i]; e.key == key {
					if e.bytes = bytes; bytes > want.largest {
						want.take(key)
					}
					break
				}
			}
			want.trim()
		case 4:
			got.Remove(key)
			want.take(key)
		}
		if entries, bytes := got.Size(); entries != len(want.list) || bytes != want.held() {
			t.Fatalf("seed %d, step %d: %d entries of %d bytes, want %v", seed, n, entries, bytes, want.list)
		}
	}
}

// TestBounds: without any nothing goes; with bytes alone one value may take all of them.
func TestBounds(t *testing.T) {
	var all memo.LRU[int, int]
	for k := range 1000 {
		all.Put(k, k, 1<<40)
	}
	if n, bytes := all.Size(); n != 1000 || bytes != 1000<<40 {
		t.Errorf("without bounds: %d entries, %d bytes", n, bytes)
	}
	none := memo.LRU[int, int]{Bytes: -1}
	none.Put(1, 1, 0)
	if n, _ := none.Size(); n != 0 {
		t.Errorf("where nothing is to be kept: %d entries", n)
	}
	few := memo.LRU[string, int]{Bytes: 10}
	few.Put("small", 1, 4)
	few.Put("all", 2, 10)
	few.Put("more", 3, 11)
	if _, ok := few.Get("small"); ok {
		t.Error("what does not fit any more is kept")
	}
	if v, ok := few.Get("all"); !ok || v != 2 {
		t.Errorf("what takes all bytes: %d, %v", v, ok)
	}
	few.Put("all", 4, 11)
	if _, ok := few.Get("all"); ok {
		t.Error("a value outlives the one that replaced it")
	}
}

// TestSeveralGoroutines is for the race detector.
func TestSeveralGoroutines(t *testing.T) {
	l := memo.LRU[int, int]{Entries: 5}
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for n := range 1000 {
				if v := l.Add(n%9, n%9, 1); v != n%9 {
					t.Errorf("key %d has value %d", n%9, v)
				}
				l.Get((n + w) % 9)
				l.Remove(n % 7)
			}
		})
	}
	group.Wait()
}
