package cached_test

import (
	"context"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/internal/logic/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestCircuitsAreListed: a circuit is stored under its key, and listed with its size.
func TestCircuitsAreListed(t *testing.T) {
	server := miniredis.RunT(t)
	c, err := cache.Open("redis://"+server.Addr(), cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := circuit.NewBuilder([]int{2, 3}, 0)
	made, err := b.Finish(t.Context(), b.Product(b.Free(0, nil), b.Free(1, nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := circuit.NewCompiled(made, true)
	circuits := &cached.Parts{Cache: c}
	entry := problem.Entry{Kind: "circuit", Key: "model:circuit", Most: 1 << 20}
	of, err := circuits.Do(t.Context(), entry, func(context.Context) (problem.Memorable, error) { return want, nil })
	if err != nil || of != want {
		t.Fatalf("%+v, %v", of, err)
	}
	entries, err := c.Entries(t.Context(), cache.Prefix)
	if err != nil || len(entries) != 1 || entries[0].Kind != "circuit" || !strings.HasSuffix(entries[0].Key, ":model:circuit") {
		t.Fatalf("%+v, %v", entries, err)
	}
	_, value, _, err := c.Show(t.Context(), entries[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	holds, err := cached.Describe(t.Context(), entries[0].Key, value)
	if err != nil || holds.Circuit == nil || *holds.Circuit != (cached.Circuit{
		Edges: made.Edges(), Bytes: holds.Circuit.Bytes, Variables: 2, Functional: true,
	}) || made.Edges() != 7 || holds.Circuit.Bytes <= 0 {
		t.Errorf("%+v, %v", holds, err)
	}
	if _, err := cached.Describe(t.Context(), entries[0].Key, value[1:]); err == nil {
		t.Error("a broken circuit is described")
	}
}

// An owner finds the plans and values of its own alone, and nobody else finds them, in the process and in Redis.
func TestOwnersFindTheirOwn(t *testing.T) {
	server := miniredis.RunT(t)
	b := circuit.NewBuilder([]int{2}, 0)
	made, err := b.Finish(t.Context(), b.Free(0, nil))
	if err != nil {
		t.Fatal(err)
	}
	value, want := circuit.NewCompiled(made, true), &btn.Plan{Method: query.MethodExact}
	owners := []string{"", cache.Owner("acme"), cache.Owner("globex")}
	for process := range 2 {
		c, err := cache.Open("redis://"+server.Addr(), cache.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		plans, values := &cached.Memo{Cache: c}, &cached.Parts{Cache: c}
		for _, owner := range owners {
			computed := 0
			decode := func(ctx context.Context, b []byte) (problem.Memorable, error) { return circuit.DecodeCompiled(ctx, b) }
			entry := problem.Entry{Kind: "circuit", Key: "key", Most: 1 << 20, Decode: decode}
			for range 2 {
				plan := func(context.Context) (*btn.Plan, error) { computed++; return want, nil }
				if _, _, err := plans.Of(owner).Do(t.Context(), cache.Prefix+"decomposition:key", plan); err != nil {
					t.Fatal(err)
				}
				compute := func(context.Context) (problem.Memorable, error) { computed++; return value, nil }
				if _, err := values.Of(owner).Do(t.Context(), entry, compute); err != nil {
					t.Fatal(err)
				}
			}
			if once := 2 * (1 - process); computed != once { // the second process finds what the first has stored
				t.Errorf("process %d: owner %q computed %d times, want %d", process, owner, computed, once)
			}
		}
	}
	if keys := server.Keys(); len(keys) != 2*len(owners) {
		t.Errorf("entries %v", keys)
	}
}
