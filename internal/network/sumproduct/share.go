package sumproduct

// Work sharing: some goroutines work off a number of chunks.

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Threads returns the number of goroutines that an option of n stands for: n, or GOMAXPROCS if n is 0 or below.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// Share calls work once for every chunk in 0 … chunks−1. There are min(threads, chunks) workers, numbered from 0, each a goroutine that
// takes the next chunk that no worker has. The result of a chunk must not depend on its worker: then no result depends on threads. A single
// worker is the caller's goroutine, and takes the chunks in sequence. After an error no further chunk is begun. Share returns the error of
// the worker with the lowest number, or the context's.
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

	var next atomic.Int64 // the first chunk that no worker has
	var hasFailed atomic.Bool
	var group sync.WaitGroup
	errs := make([]error, threads)

	for w := range threads {
		group.Go(func() {
			for !hasFailed.Load() && ctx.Err() == nil {
				c := int(next.Add(1)) - 1
				if c >= chunks {
					return
				}
				if errs[w] = work(w, c); errs[w] != nil {
					hasFailed.Store(true)
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
