package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// groups is where control groups of memory are made.
const groups = "/sys/fs/cgroup/memory"

// starve gives a worker less memory than it holds until the kernel has killed it.
func starve(ctx context.Context, b *batch) error {
	w, over := b.victim()
	defer over()
	folder := filepath.Join(groups, fmt.Sprintf("basetensor-faults-%d-%d", os.Getpid(), w.pid()))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("%w: %w", errNoGroups, err)
	}
	pid, before := w.pid(), len(w.ends())
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
		os.Remove(folder)
		return fmt.Errorf("%w: %w", errNoGroups, err)
	}
	// Pages that the process had before are charged to its old group, so that the bound applies to its allocations from now on.
	s := b.begin("%s", w)
	// A bound below the charged memory is refused where none of it can be given back: then the charged memory is the bound.
	bound := filepath.Join(folder, "memory.limit_in_bytes")
	err := os.WriteFile(bound, []byte("65536"), 0o644)
	for end := time.Now().Add(time.Second); err != nil && time.Now().Before(end); {
		var charged []byte
		if charged, err = os.ReadFile(filepath.Join(folder, "memory.usage_in_bytes")); err == nil {
			err = os.WriteFile(bound, charged, 0o644)
		}
	}
	if err != nil && len(w.ends()) == before {
		return fmt.Errorf("%w: %w", errNoGroups, err)
	}
	for end := time.Now().Add(armedFor); len(w.ends()) == before && time.Now().Before(end) && ctx.Err() == nil; {
		held := w.nats.holds(false)
		pause(ctx, 5*time.Millisecond)
		if len(w.ends()) > before {
			s.at = time.Now()
			for id := range held {
				held[id] = s.at
			}
			b.l.holds(s, held)
		}
	}
	for end := time.Now().Add(time.Second); os.Remove(folder) != nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if len(w.ends()) == before {
		s.void = true // it needed nothing
		os.WriteFile(filepath.Join(groups, "cgroup.procs"), fmt.Append(nil, pid), 0o644)
		os.Remove(folder)
	}
	return nil
}
