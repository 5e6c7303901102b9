package cached_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var _ proposal.Memo = &cached.Memo{}

// The plans that a process remembers take about the bounds of the two memories, 64 MiB each, however small they are.
func TestSmallPlansAreBounded(t *testing.T) {
	c, err := cache.Open("", cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &cached.Memo{Cache: c}
	heap := func() int64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	for n := range 110_000 {
		plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
			Rule: btn.Linear, Slices: 1, Alpha: []scaled.Number{{Mant: 1.5, Exp: 7}},
			Parts:   []btn.Part{&exact.Elimination{Order: make([]int, 37), Flops: 8}},
			Quality: &btn.Quality{Exact: true, ConditionGram: 1},
		}}}
		if _, _, err := m.Do(t.Context(), fmt.Sprintf("%085d", n), func(context.Context) (*btn.Plan, error) { return plan, nil }); err != nil {
			t.Fatal(err)
		}
	}
	grown := (heap() - before) >> 20
	t.Logf("%d MiB", grown)
	if grown > 120 {
		t.Errorf("the plans of 110,000 jobs take %d MiB", grown)
	}
	runtime.KeepAlive(m)
}

func TestMemoRemembersPlans(t *testing.T) {
	server := miniredis.RunT(t)
	open := func() *cached.Memo {
		c, err := cache.Open("redis://"+server.Addr(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return &cached.Memo{Cache: c}
	}
	along := func(order ...int) *btn.Plan {
		return &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
			Rule:    btn.Linear,
			Slices:  1,
			Alpha:   []scaled.Number{{Mant: 1.5, Exp: 7}},
			Parts:   []btn.Part{&exact.Elimination{Order: order, Flops: 8}},
			Quality: &btn.Quality{Exact: true, ConditionGram: 1},
		}}}
	}
	want := along(2, 0, 1)
	computed := 0
	compute := func(context.Context) (*btn.Plan, error) { computed++; return want, nil }
	first := open()
	// computed, from the process, from Redis
	for i, m := range []*cached.Memo{first, first, open()} {
		got, hit, err := m.Do(t.Context(), "key", compute)
		if err != nil || hit != (i > 0) || !reflect.DeepEqual(got, want) {
			t.Errorf("call %d: %+v, hit %v, %v", i, got, hit, err)
		}
	}
	if computed != 1 {
		t.Errorf("computed %d times", computed)
	}
	// A plan is read once, and again when the bytes under its key change.
	reader := open()
	plans := [3]*btn.Plan{}
	for i := range plans {
		if i == 2 {
			b, err := message.EncodePlan(along(1, 0, 2))
			if err != nil {
				t.Fatal(err)
			}
			reader.Cache.Forget(t.Context(), "key")
			reader.Cache.Put(t.Context(), "key", b)
		}
		var err error
		if plans[i], _, err = reader.Do(t.Context(), "key", compute); err != nil {
			t.Fatal(err)
		}
	}
	if plans[0] != plans[1] || !reflect.DeepEqual(plans[2], along(1, 0, 2)) {
		t.Errorf("read %p, %p, then %+v", plans[0], plans[1], plans[2])
	}
	// An intact entry that is no plan is computed again.
	m := open()
	m.Cache.Put(t.Context(), "odd", []byte("not a plan"))
	if got, hit, err := m.Do(t.Context(), "odd", compute); err != nil || hit || got != want {
		t.Errorf("odd entry: %v, hit %v, %v", got, hit, err)
	}
	// Where another worker has stored one meanwhile, that is the plan.
	other := along(0, 1, 2)
	got, hit, err := m.Do(t.Context(), "raced", func(ctx context.Context) (*btn.Plan, error) {
		b, err := message.EncodePlan(other)
		if err != nil {
			return nil, err
		}
		m.Cache.Put(ctx, "raced", b)
		return want, nil
	})
	if err != nil || hit || !reflect.DeepEqual(got, other) {
		t.Errorf("behind another worker: %+v, hit %v, %v", got, hit, err)
	}
	failure := errors.New("no plan")
	if _, _, err := m.Do(
		t.Context(), "fails", func(context.Context) (*btn.Plan, error) { return nil, failure },
	); !errors.Is(err, failure) {
		t.Errorf("the computation's error: %v", err)
	}
	server.Close()
	if got, hit, err := m.Do(t.Context(), "down", compute); err != nil || hit || got != want {
		t.Errorf("Redis down: %v, hit %v, %v", got, hit, err)
	}
}

// An owner finds the plans of its own alone, and nobody else finds them, in the process and in Redis.
func TestOwnersFindTheirOwn(t *testing.T) {
	server := miniredis.RunT(t)
	owners := []string{"", cache.Owner("acme"), cache.Owner("globex")}
	for process := range 2 {
		c, err := cache.Open("redis://"+server.Addr(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		plans := &cached.Memo{Cache: c}
		for _, owner := range owners {
			computed := 0
			for range 2 {
				plan := func(context.Context) (*btn.Plan, error) { computed++; return &btn.Plan{Method: query.MethodExact}, nil }
				if _, _, err := plans.Of(owner).Do(t.Context(), cache.Prefix+"decomposition:key", plan); err != nil {
					t.Fatal(err)
				}
			}
			if once := 1 - process; computed != once { // the second process finds what the first has stored
				t.Errorf("process %d: owner %q computed %d times, want %d", process, owner, computed, once)
			}
		}
	}
	if keys := server.Keys(); len(keys) != len(owners) {
		t.Errorf("entries %v", keys)
	}
}
