package pace_test

import (
	"context"
	"errors"
	"testing"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// counted is a context that ends at its n-th look.
type counted struct {
	context.Context
	looks, end int
}

func (c *counted) Err() error {
	if c.looks++; c.looks >= c.end {
		return context.Canceled
	}
	return nil
}

func TestLooksAreRareAndTheEndIsKept(t *testing.T) {
	ctx := &counted{Context: context.Background(), end: 3}
	p := pace.New(ctx)
	if p.Over(0) || ctx.looks != 1 {
		t.Fatalf("the first call looked %d times", ctx.looks)
	}
	calls := 0
	for !p.Over(1) {
		calls++
	}
	if ctx.looks != 3 || calls != 2*1<<14-1 {
		t.Errorf("%d looks in %d calls", ctx.looks, calls)
	}
	if !p.Over(0) || ctx.looks != 3 || !errors.Is(p.Err(), context.Canceled) {
		t.Errorf("after the end: %d looks, %v", ctx.looks, p.Err())
	}
	if p = nil; p.Over(1<<40) || p.Err() != nil {
		t.Error("no pace has no end")
	}
}
