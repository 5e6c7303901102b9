package cached_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/cached"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/plan"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var _ plan.Memo = cached.Memo{}

func TestMemoRemembersDecompositions(t *testing.T) {
	server := miniredis.RunT(t)
	open := func() cached.Memo {
		c, err := cache.Open("redis://"+server.Addr(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return cached.Memo{Cache: c}
	}
	want := &btn.Decomposition{
		Method: btn.MethodExact, Exact: true, Components: []btn.Component{{Class: btn.ClassBase, Order: []int{2, 0, 1}}},
		Alpha: []scaled.Number{scaled.One}, ConditionGram: 1,
	}
	computed := 0
	compute := func(context.Context) (*btn.Decomposition, error) { computed++; return want, nil }
	first := open()
	for i, m := range []cached.Memo{first, first, open()} { // computed, from the process, from Redis
		got, hit, err := m.Do(t.Context(), "key", compute)
		if err != nil || hit != (i > 0) || !reflect.DeepEqual(got.Components, want.Components) || !reflect.DeepEqual(got.Alpha, want.Alpha) {
			t.Errorf("call %d: %+v, hit %v, %v", i, got, hit, err)
		}
	}
	if computed != 1 {
		t.Errorf("computed %d times", computed)
	}
	// What is kept faithfully and is no decomposition is computed anew.
	m := open()
	m.Cache.Put(t.Context(), "odd", []byte("not a decomposition"))
	if got, hit, err := m.Do(t.Context(), "odd", compute); err != nil || hit || got != want {
		t.Errorf("odd entry: %v, hit %v, %v", got, hit, err)
	}
	// Where another worker has stored one meanwhile, that is the decomposition.
	other := *want
	other.Components = []btn.Component{{Class: btn.ClassBase, Order: []int{0, 1, 2}}}
	got, hit, err := m.Do(t.Context(), "raced", func(ctx context.Context) (*btn.Decomposition, error) {
		b, err := message.EncodeDecomposition(&other)
		if err != nil {
			return nil, err
		}
		m.Cache.Put(ctx, "raced", b)
		return want, nil
	})
	if err != nil || hit || !reflect.DeepEqual(got.Components, other.Components) {
		t.Errorf("behind another worker: %+v, hit %v, %v", got, hit, err)
	}
	failure := errors.New("no decomposition")
	if _, _, err := m.Do(t.Context(), "fails", func(context.Context) (*btn.Decomposition, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Errorf("the computation's error: %v", err)
	}
	server.Close()
	if got, hit, err := m.Do(t.Context(), "down", compute); err != nil || hit || got != want {
		t.Errorf("Redis down: %v, hit %v, %v", got, hit, err)
	}
}
