package problem_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestGroundIsMadeOnce for tasks that ask for it at the same time. One whose context has ended does not wait.
func TestGroundIsMadeOnce(t *testing.T) {
	m, err := generate.Grid(40, 40, generate.Ising{Delta: 0.3, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	net, err := stage.Reparameterise(t.Context(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	shared := &problem.Shared{}
	p, err := shared.Problem(net, factorgraph.Evidence{}, nil, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	states := make([]*bp.State, 8)
	var group sync.WaitGroup
	for k := range states {
		group.Go(func() {
			g, err := regions.ProblemGround(t.Context(), p, 0)
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
	if made := problem.FormsBegun(shared); made != 1 {
		t.Errorf("it was made %d times", made)
	}
}

// TestFormsWait: a task waits for another's form, unless its context ends; after an error the next makes it.
func TestFormsWait(t *testing.T) {
	type slot struct{}
	p := problem.New(nil, problem.Options{})
	begun, end, failed := make(chan struct{}), make(chan struct{}), errors.New("failed")
	first := make(chan error, 1)
	go func() {
		_, err := problem.Form(t.Context(), p, slot{}, 1, func() (int, error) {
			close(begun)
			<-end
			return 0, failed
		})
		first <- err
	}()
	<-begun
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	make2 := func() (int, error) { return 2, nil }
	if _, err := problem.Form(ended, p, slot{}, 1, make2); !errors.Is(err, context.Canceled) {
		t.Errorf("in a context that has ended: %v", err)
	}
	close(end)
	if x, err := problem.Form(t.Context(), p, slot{}, 1, make2); x != 2 || err != nil {
		t.Errorf("after an error: %d, %v", x, err)
	}
	if err := <-first; !errors.Is(err, failed) {
		t.Errorf("the first: %v", err)
	}
	other := func() (int, error) { return 3, nil }
	if x, _ := problem.Form(t.Context(), p, slot{}, 1, other); x != 2 {
		t.Errorf("a form is made again: %d", x)
	}
	if x, _ := problem.Form(t.Context(), p, slot{}, 2, other); x != 3 {
		t.Errorf("another variant is %d", x)
	}
}
