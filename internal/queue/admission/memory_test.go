package admission

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Held bytes never exceed the total; a request that never fits fails with both numbers; small
// messages, and all messages where there is no limit, do not wait.
func TestMemory(t *testing.T) {
	m := NewMemory(4 << 30)
	most := int64(4<<30 - otherMemory)
	if m.total != most || NewMemory(400<<20).total != 300<<20 || NewMemory(0) != nil {
		t.Fatalf("%d bytes", m.total)
	}
	var held, highest atomic.Int64
	var all sync.WaitGroup
	for k := range 50 {
		n := int64(k+1) * most / 50
		all.Go(func() {
			free, err := m.Hold(t.Context(), float64(n))
			if err != nil {
				t.Error(err)
				return
			}
			now := held.Add(n)
			for old := highest.Load(); now > old && !highest.CompareAndSwap(old, now); old = highest.Load() {
			}
			time.Sleep(time.Millisecond)
			held.Add(-n)
			free()
		})
	}
	all.Wait()
	if highest.Load() > most {
		t.Errorf("%d of %d bytes were held", highest.Load(), most)
	}

	if _, err := m.Hold(t.Context(), float64(most)*1.01); fault.CodeOf(err) != fault.OverBudget ||
		!strings.Contains(err.Error(), "3.931e+09 bytes") || !strings.Contains(err.Error(), "(memory-limit 4294967296)") {
		t.Errorf("%v", err)
	}
	free, err := m.Hold(t.Context(), float64(most))
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Hold(ctx, 1<<30); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, of := range []*Memory{m, nil} {
		if free, err := of.Hold(t.Context(), 1000); err != nil {
			t.Error(err)
		} else {
			free()
		}
	}
}
