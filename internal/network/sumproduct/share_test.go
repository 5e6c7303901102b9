package sumproduct_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// TestShareDoesEveryChunkOnce: with any number of threads; with one, in sequence.
func TestShareDoesEveryChunkOnce(t *testing.T) {
	for _, chunks := range []int{0, 1, 2, 100} {
		for _, threads := range []int{-1, 0, 1, 2, 7, 200} {
			var mu sync.Mutex
			var done []int
			err := sumproduct.RunChunks(context.Background(), threads, chunks,
				func(worker, chunk int) error {
					mu.Lock()
					defer mu.Unlock()
					if worker < 0 || worker >= max(1, min(threads, chunks)) {
						t.Errorf("worker %d of %d threads", worker, threads)
					}
					done = append(done, chunk)
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
			if threads > 1 {
				slices.Sort(done)
			}
			for k, c := range done {
				if c != k {
					t.Fatalf("%d chunks, %d threads: %v", chunks, threads, done)
				}
			}
			if len(done) != chunks {
				t.Errorf("%d chunks, %d threads: %d done", chunks, threads, len(done))
			}
		}
	}
}

// TestShareStops: after an error nobody begins a chunk that was not begun,
// and after the end of the context neither.
func TestShareStops(t *testing.T) {
	wrong := errors.New("wrong")
	for _, threads := range []int{1, 4} {
		var mu sync.Mutex
		begun := 0
		err := sumproduct.RunChunks(context.Background(), threads, 1000, func(_, chunk int) error {
			mu.Lock()
			defer mu.Unlock()
			if begun++; begun == 10 {
				return wrong
			}
			return nil
		})
		if !errors.Is(err, wrong) || begun > 10+threads {
			t.Errorf("%d threads: %v after %d chunks", threads, err, begun)
		}
		ctx, cancel := context.WithCancel(context.Background())
		begun = 0
		err = sumproduct.RunChunks(ctx, threads, 1000, func(_, _ int) error {
			mu.Lock()
			defer mu.Unlock()
			if begun++; begun == 10 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || begun > 10+threads {
			t.Errorf("%d threads, cancelled: %v after %d chunks", threads, err, begun)
		}
	}
}
