package problem_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/internal/stage"
)

// TestGroundIsMadeOnce for tasks that ask for it at the same time. One whose context has ended does not wait.
func TestGroundIsMadeOnce(t *testing.T) {
	m, err := generate.Grid(40, 40, generate.Ising{Delta: 0.3, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	net, err := stage.Reparameterise(t.Context(), m, btn.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(net, problem.Options{})
	states := make([]*bp.State, 8)
	var group sync.WaitGroup
	for k := range states {
		group.Go(func() {
			g, err := p.Ground(t.Context(), btn.Slice{}, 0)
			if err != nil {
				t.Error(err)
				return
			}
			states[k] = g.State
		})
	}
	group.Wait()
	for k, s := range states {
		if s == nil || s != states[0] {
			t.Fatalf("the state of task %d is another", k)
		}
	}
	p = problem.New(net, problem.Options{})
	p.HoldGround()
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.Ground(ended, btn.Slice{}, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("in a context that has ended: %v", err)
	}
}
