package workers

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestNoTimerOutlivesItsCount: after any sequence of events in a job's count, stop waits for no
// timer. A job whose timer was set between a look that found something new and one that found
// nothing kept it for half a minute after it had been dropped, and the process with it.
func TestNoTimerOutlivesItsCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for range 200 {
		c := newTallies(&sums{})
		known := []*tally{}
		for range 12 {
			if len(known) == 0 || rng.IntN(4) == 0 {
				key := chunks{job: string(rune('a' + rng.IntN(2))), n: 9}
				if c.jobs[key] == nil {
					c.jobs[key] = &tally{key: key, seen: map[int]bool{}, pause: lastPause}
					known = append(known, c.jobs[key])
				}
			}
			if len(known) == 0 {
				continue
			}
			j := known[rng.IntN(len(known))]
			switch rng.IntN(4) {
			case 0:
				c.wait(j, false)
			case 1:
				c.wait(j, true)
			case 2:
				c.forget(j)
			case 3:
				c.mu.Lock()
				c.arm(j, idlePause)
				c.mu.Unlock()
			}
		}
		stopped := make(chan struct{})
		go func() {
			c.stop()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-time.After(idlePause / 2):
			t.Fatal("a timer of a job that is not counted any more is waited for")
		}
	}
}
