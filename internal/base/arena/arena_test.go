package arena

import (
	"testing"
)

func TestBuffersComeBack(t *testing.T) {
	a := Arena{Limit: 1 << 20}
	for _, n := range []int{1, 5, smallBuffer, smallBuffer + 1, 1 << 17} {
		b := a.Get(n)
		if len(b) != n {
			t.Fatalf("%d entries, want %d", len(b), n)
		}
		b[n-1] = 7
		a.Put(b)
		if again := a.Get(n); &again[0] != &b[0] {
			t.Errorf("%d entries: another buffer", n)
		} else {
			a.Put(again)
		}
	}
	if a.Live != 0 || a.Peak != 1<<17 {
		t.Errorf("live %d, peak %d", a.Live, a.Peak)
	}
}

func TestKeptBuffersGiveWayToTheLimit(t *testing.T) {
	a := Arena{Limit: 3 << 16}
	first, second := a.Get(1<<16), a.Get(1<<16)
	a.Put(first)
	a.Put(second)
	if big := a.Get(1 << 17); len(big) != 1<<17 || a.Held > a.Limit {
		t.Errorf("%d entries, %d held of %d", len(big), a.Held, a.Limit)
	}
	if a.Live != 1<<17 {
		t.Errorf("live %d", a.Live)
	}
}
