package sumproduct

// Work sharing: a number of chunks, worked off by some goroutines.

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Threads is the number of goroutines that an option of n stands for: GOMAXPROCS for 0 and below.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Share calls work for every chunk in 0 … chunks−1 once, each worker, 0 … min(threads, chunks)−1,
// from a goroutine of its own and taking the next chunk that nobody has. A chunk's result must not
// depend on its worker: then no result depends on threads. With one worker all runs in the caller's
// goroutine, in sequence. It returns the first error by worker, after which no chunk is begun, or
// the context's.
func Share(ctx context.Context, threads, chunks int, work func(worker, chunk int) error) error {
	threads = min(threads, chunks)
	if threads <= 1 {
		for c := range chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := work(0, c); err != nil {
				return err
			}
		}
		return ctx.Err()
	}

	var next atomic.Int64
	var failed atomic.Bool
	var group sync.WaitGroup
	errs := make([]error, threads)

	for w := range threads {
		group.Go(func() {
			for !failed.Load() && ctx.Err() == nil {
				c := int(next.Add(1)) - 1
				if c >= chunks {
					return
				}
				if errs[w] = work(w, c); errs[w] != nil {
					failed.Store(true)
				}
			}
		})
	}

	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
