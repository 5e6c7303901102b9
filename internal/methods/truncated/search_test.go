package truncated_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/fault"
)

// grid prepares a square grid of spins.
func grid(t *testing.T, side int) *truncated.Prepared {
	t.Helper()
	m, err := generate.Grid(side, side, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := truncated.Prepare(t.Context(), net, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSearchesThatAreCutShort: whenever the time for searches ends, there are no plans or such that fit the memory, and only plans of
// all searches are whole.
func TestSearchesThatAreCutShort(t *testing.T) {
	p := grid(t, 10)
	o := truncated.SearchOptions{Bond: 8, Memory: 1 << 16, Seed: 1, Moves: 1 << 26}
	want, whole, err := p.Search(t.Context(), o)
	if err != nil || !whole {
		t.Fatal(whole, err)
	}
	cut := 0
	for left := 100 * time.Microsecond; ; left *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		plans, whole, err := p.Search(ctx, o)
		cancel()
		if err != nil {
			if plans != nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("%v: %v, %v", left, plans, err)
			}
			continue
		}
		if whole {
			if !reflect.DeepEqual(plans, want) {
				t.Error("searches that were not cut short have other plans")
			}
			break
		}
		cut++
		for k := range plans {
			if c, err := p.Price(t.Context(), &plans[k], o.Bond, false); err != nil || c.Bytes > float64(o.Memory) {
				t.Errorf("%v: %+v, %v", left, c, err)
			}
		}
	}
	if cut == 0 {
		t.Error("no search was cut short with a plan")
	}
}

// counted is a context that counts the looks at it.
type counted struct {
	context.Context
	looks int
}

func (c *counted) Err() error {
	c.looks++
	return c.Context.Err()
}

// TestTheLeastBudgetIsNoSearchWithoutEnd: a search of one move, in which no tree fits, is not one of the default.
func TestTheLeastBudgetIsNoSearchWithoutEnd(t *testing.T) {
	p := grid(t, 4)
	ctx := &counted{Context: t.Context()}
	_, _, err := p.Search(ctx, truncated.SearchOptions{Bond: 4, Memory: 1, Moves: 1})
	if fault.CodeOf(err) != fault.OverBudget || ctx.looks > 10_000 {
		t.Errorf("%v after %d looks at the context", err, ctx.looks)
	}
}
