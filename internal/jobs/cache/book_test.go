package cache

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/admission"
)

// Bookings in Redis equal the ones computed here, and two caches on one Redis share them.
func TestBookings(t *testing.T) {
	server := mini(t)
	var caches [2]*Cache
	for i := range caches {
		c, err := Open("redis://"+server.Addr(), Options{Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		caches[i] = c
	}
	r := rand.New(rand.NewPCG(3, 4))
	now, spent, refused := time.UnixMicro(1_700_000_000_000_000), time.Time{}, 0
	for k := range 200 {
		now = now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)
		b := admission.Booking{
			Now: now, Duration: time.Duration(r.IntN(3000)) * time.Millisecond, Burst: 2 * time.Second, MaxWait: 10 * time.Second,
		}
		want, after := b.Book(spent)
		spent = after
		got, ok := caches[k%2].Book(t.Context(), "a", b)
		if !ok || !got.Equal(want) {
			t.Fatalf("booking %d begins %v from now, want %v", k, got.Sub(now), want.Sub(now))
		}
		if want.Sub(now) > b.MaxWait {
			refused++
		}
	}
	if refused == 0 || refused > 150 {
		t.Errorf("%d of 200 were refused", refused)
	}
	b := admission.Booking{Now: now, Duration: time.Second}
	if begin, ok := caches[0].Book(t.Context(), "b", b); !ok || begin != now {
		t.Errorf("another tenant begins at %v", begin)
	}
	server.Close()
	if _, ok := caches[0].Book(t.Context(), "a", b); ok {
		t.Error("booked without a Redis")
	}
}
