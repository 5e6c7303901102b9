package pull

import (
	"testing"

	"github.com/basetensor/basetensor/internal/bus"
)

// TestWhatHasFewDeliveriesLeftBeginsFirst: messages wait in the sequence in which they came, but
// for those delivered more often.
func TestWhatHasFewDeliveriesLeftBeginsFirst(t *testing.T) {
	l := &lane{consumer: "c"}
	p := &puller{lanes: []*lane{l}, of: map[string]*lane{"c": l}}
	for k, attempt := range []int{1, 1, 3, 2, 1, 3} {
		p.keep(&bus.Delivered{Consumer: "c", Attempt: attempt, Sequence: uint64(k)})
	}
	for k, want := range []uint64{2, 5, 3, 0, 1, 4} {
		if got := l.waiting[k].Sequence; got != want {
			t.Errorf("place %d: message %d, want %d", k, got, want)
		}
	}
}
