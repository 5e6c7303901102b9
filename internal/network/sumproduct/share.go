package sumproduct

// Work sharing: some goroutines work off a number of chunks.

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Threads returns the number of goroutines that an option n asks for: n, or GOMAXPROCS if n is 0 or below.
func Threads(n int) int {
	if n > 0 {
		return n
	}
	return runtime.GOMAXPROCS(0)
}

// RunChunks calls work(worker, chunk) once for every chunk from 0 to chunks−1, by several workers at the same time. There are min(threads,
// chunks) workers, numbered from 0, each a goroutine that takes the next chunk that no worker has. The result of a chunk must not depend on
// its worker: then no result depends on threads. A single worker is the caller's goroutine, and takes the chunks in sequence. After an
// error no further chunk is begun. RunChunks returns the error of the worker with the lowest number, or the context's.
func RunChunks(ctx context.Context, threads, chunks int, work func(worker, chunk int) error) error {
	workers := min(threads, chunks)
	if workers <= 1 {
		for chunk := range chunks {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := work(0, chunk); err != nil {
				return err
			}
		}
		return ctx.Err()
	}

	var nextChunk atomic.Int64 // the first chunk that no worker has
	var hasFailed atomic.Bool
	var group sync.WaitGroup
	errs := make([]error, workers)

	for worker := range workers {
		group.Go(func() {
			for !hasFailed.Load() && ctx.Err() == nil {
				chunk := int(nextChunk.Add(1)) - 1
				if chunk >= chunks {
					return
				}
				if errs[worker] = work(worker, chunk); errs[worker] != nil {
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
