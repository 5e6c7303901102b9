package faults

// The conditions when all jobs are answered: nothing waits, and nothing has grown.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/nats-io/nats.go/jetstream"
)

// drainWithin is how long streams may take to be empty once all jobs are answered: a delivery to a worker that died then, and
// a look of the sweeper after it.
const drainWithin = 30 * time.Second

// drained waits until the work queues are empty and no consumer has anything, and lists the rest.
func (s *stack) drained(ctx context.Context, within time.Duration) []string {
	for end := time.Now().Add(within); ; pause(ctx, 100*time.Millisecond) {
		attempt, cancel := context.WithTimeout(ctx, attemptFor)
		left := s.left(attempt)
		cancel()
		if len(left) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return left
		}
	}
}

// left lists the waiting messages.
func (s *stack) left(ctx context.Context) (left []string) {
	say := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	for _, name := range []string{
		bus.StreamModel, bus.StreamNetwork, bus.StreamTask, bus.StreamPartial, bus.StreamControl,
	} {
		stream, err := s.js.Stream(ctx, name)
		if err != nil {
			say("%s: %v", name, err)
			continue
		}
		switch n := stream.CachedInfo().State.Msgs; name {
		case bus.StreamNetwork, bus.StreamTask, bus.StreamControl:
			if n > 0 {
				say("%s: %d messages", name, n)
			}
		}
		all := stream.ListConsumers(ctx)
		for c := range all.Info() {
			// The sweeper looks at every model, some seconds after it was stored.
			if c.Name != "sweep" && (c.NumPending > 0 || c.NumAckPending > 0) {
				say("%s, %s: %d to be delivered, %d to be acknowledged", name, c.Name, c.NumPending, c.NumAckPending)
			}
		}
		if err := all.Err(); err != nil && !errors.Is(err, jetstream.ErrEndOfData) {
			say("%s: %v", name, err)
		}
	}
	return left
}

// size holds the resources of a process.
type size struct {
	pid               int
	goroutines, files float64
	resident          float64 // bytes
}

// Bounds of a process's growth while it lived, idle before and after: its goroutines start with the work, and its heap keeps 64 MiB
// per stage that it never writes to.
const (
	moreGoroutines = 40
	moreFiles      = 8
	moreResident   = 160 << 20
)

// sizes asks all workers.
func (s *stack) sizes(ctx context.Context) (map[*worker]size, error) {
	all := map[*worker]size{}
	for _, w := range s.workers {
		one, err := w.size(ctx)
		if err != nil {
			return nil, fmt.Errorf("faults: metrics of %s: %w", w, err)
		}
		all[w] = one
	}
	return all, nil
}

// idle is sizes once no worker opens files any more: reparam-worker opens a connection for each lane a moment after it is there.
func (s *stack) idle(ctx context.Context) (all map[*worker]size, err error) {
	open := -1.0
	for end := time.Now().Add(startWithin); time.Now().Before(end); pause(ctx, 200*time.Millisecond) {
		if all, err = s.sizes(ctx); err != nil {
			return nil, err
		}
		sum := 0.0
		for _, one := range all {
			sum += one.files
		}
		if sum == open {
			break
		}
		open = sum
	}
	return all, ctx.Err()
}

// size reads a worker's metrics; a process that begins just now is waited for.
func (w *worker) size(ctx context.Context) (one size, err error) {
	for end := time.Now().Add(startWithin); time.Now().Before(end) && ctx.Err() == nil; pause(ctx, 20*time.Millisecond) {
		one = size{pid: w.pid()}
		var r *http.Response
		if r, err = http.Get("http://" + w.http + "/metrics"); err != nil {
			continue
		}
		for lines := bufio.NewScanner(r.Body); lines.Scan(); {
			name, text, _ := strings.Cut(lines.Text(), " ")
			value, _ := strconv.ParseFloat(text, 64)
			switch name {
			case "go_goroutines":
				one.goroutines = value
			case "process_open_fds":
				one.files = value
			case "process_resident_memory_bytes":
				one.resident = value
			}
		}
		r.Body.Close()
		if one.goroutines > 0 {
			return one, nil
		}
	}
	return one, err
}

// grown says which processes that lived have grown.
func grown(before, after map[*worker]size) (list []string) {
	for w, a := range after {
		b, known := before[w]
		if !known || b.pid != a.pid {
			continue
		}
		if a.goroutines > b.goroutines+moreGoroutines || a.files > b.files+moreFiles || a.resident > b.resident+moreResident {
			list = append(list, fmt.Sprintf("%s: goroutines %.0f, then %.0f; files %.0f, then %.0f; resident %.0f MiB, then %.0f MiB",
				w, b.goroutines, a.goroutines, b.files, a.files, b.resident/(1<<20), a.resident/(1<<20)))
		}
	}
	return list
}
