package workers

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/job"
)

// TestNoTimerOutlivesItsCount: after any sequence of effects, stop waits for no timer of a count that is over.
func TestNoTimerOutlivesItsCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	for range 200 {
		c := newCollector(&sums{})
		jobs := []*countedJob{}
		for range 12 {
			key := jobChunks{job: string(rune('a' + rng.IntN(2))), n: 9}
			if c.jobs[key] == nil {
				c.jobs[key] = &countedJob{key: key, count: job.New[*hop.Message](9)}
				jobs = append(jobs, c.jobs[key])
			}
			e := job.Effects[*hop.Message]{Forget: rng.IntN(3) == 0}
			if !e.Forget {
				e.Timer = job.IdlePause
			}
			c.mu.Lock()
			c.carryOut(jobs[rng.IntN(len(jobs))], e)
			c.mu.Unlock()
		}
		stopped := make(chan struct{})
		go func() {
			c.stop()
			close(stopped)
		}()
		select {
		case <-stopped:
		case <-time.After(job.IdlePause / 2):
			t.Fatal("a timer of a job that is not counted any more is waited for")
		}
	}
}
