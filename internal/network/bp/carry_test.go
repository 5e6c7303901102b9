package bp_test

// Warm starts under evidence.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// under returns the expressions of a model without evidence and with it.
func under(
	t *testing.T, m *factorgraph.Model, ev factorgraph.Evidence,
) (free, given *sumproduct.Expression) {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conditioned, err := net.Condition(ev)
	if err != nil {
		t.Fatal(err)
	}
	if free, err = lower.Build(context.Background(), net); err != nil {
		t.Fatal(err)
	}
	if given, err = lower.Build(context.Background(), conditioned); err != nil {
		t.Fatal(err)
	}
	return free, given
}

// TestCarry: every message under evidence is the model's, cut to the remaining values. Messages are
// found by their two ends: tables by their place among those over the same indices of more than one
// value.
func TestCarry(t *testing.T) {
	cut := 0
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 11))
		m := modeltest.Small(rng, modeltest.SmallOptions{})
		free, given := under(t, m, modeltest.Evidence(rng, m))
		messages := make([]float64, bp.Entries(free))
		for a := range messages {
			messages[a] = rng.ExpFloat64()
		}
		got, err := bp.Carry(free, given, messages)
		if err != nil {
			t.Fatal(err)
		}
		place := func(count map[string]int, scope []int) string {
			rest := slices.DeleteFunc(slices.Clone(scope), func(i int) bool { return given.Dims[i] == 1 })
			count[fmt.Sprint(rest)]++
			return fmt.Sprint(rest, count[fmt.Sprint(rest)])
		}
		of, seen := map[string][]float64{}, map[string]int{}
		at := 0
		for _, table := range free.Tables {
			key := place(seen, table.Scope)
			for _, i := range table.Scope {
				of[key+fmt.Sprint("to", i)] = messages[at : at+free.Dims[i]]
				at += free.Dims[i]
			}
		}
		seen, at = map[string]int{}, 0
		for _, table := range given.Tables {
			key := place(seen, table.Scope)
			for _, i := range table.Scope {
				from, total := of[key+fmt.Sprint("to", i)], 0.0
				var want []float64
				for x := range 64 {
					before, after := position(free, i, x), position(given, i, x)
					if after >= 0 && after < given.Dims[i] {
						want = append(want, from[before])
						total += from[before]
					}
				}
				for a := range want {
					want[a] /= total
				}
				if given.Dims[i] < free.Dims[i] {
					cut++
				}
				compare(t, fmt.Sprintf("seed %d, table %s, index %d", seed, key, i),
					got[at:at+given.Dims[i]], want, 1e-15)
				at += given.Dims[i]
			}
		}
		if at != len(got) {
			t.Errorf("seed %d: %d entries, want %d", seed, len(got), at)
		}
	}
	if cut == 0 {
		t.Error("no message was cut")
	}
}

// position returns the place of value x of index i, −1 for none.
func position(e *sumproduct.Expression, i, x int) int {
	if s := e.Support[i]; s != nil {
		return slices.Index(s, x)
	}
	if x >= e.Dims[i] {
		return -1
	}
	return x
}

func TestCarryRefusesOtherMessages(t *testing.T) {
	free, given := under(t, &factorgraph.Model{Domains: []int{2, 2}, Factors: nil}, factorgraph.Evidence{})
	if _, err := bp.Carry(free, given, []float64{1}); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("messages of another shape: %v", err)
	}
}

// TestWarmStartUnderEvidence: on a model larger than the reach of an observation, a start from the
// model's own messages comes to the same state as a cold one, in a third of the updates.
func TestWarmStartUnderEvidence(t *testing.T) {
	m, err := generate.Grid(70, 70, generate.Ising{Delta: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []map[int]int{{35 * 70: 1}, {0: 0, 2000: 1, 4899: 0}} {
		free, given := under(t, m, factorgraph.Observe(values))
		own := run(t, free, bp.Options{})
		warm, err := bp.Carry(free, given, own.Messages())
		if err != nil {
			t.Fatal(err)
		}
		cold, hot := run(t, given, bp.Options{}), run(t, given, bp.Options{Warm: warm})
		if !hot.Converged || hot.Change > 1e-12 || math.Abs(cold.LnZ()-hot.LnZ()) > 1e-9 {
			t.Errorf("%v: converged %v, change %v, ln Z %v, cold %v",
				values, hot.Converged, hot.Change, hot.LnZ(), cold.LnZ())
		}
		if 3*hot.Updates > cold.Updates {
			t.Errorf("%v: %d updates, cold %d", values, hot.Updates, cold.Updates)
		}
		for i := range given.Dims {
			compare(t, fmt.Sprintf("belief %d", i), hot.Belief(i), cold.Belief(i), 1e-9)
		}
	}
}

// TestColdStartFollowsAWarmOneThatFails: where the warm start does not converge, the answer is at
// least the cold one's.
func TestColdStartFollowsAWarmOneThatFails(t *testing.T) {
	e := ising(rand.New(rand.NewPCG(1, 8)), 12, 12, 0.5, false)
	// uniform messages are the fixed point
	e.Tables = slices.DeleteFunc(e.Tables, func(t sumproduct.Table) bool { return len(t.Scope) == 1 })
	cold := run(t, e, bp.Options{})
	warm := make([]float64, bp.Entries(e))
	for a := range warm {
		warm[a] = []float64{1, 1e-9}[a%2]
	}
	o := bp.Options{Warm: warm, Updates: cold.Updates}
	if s := run(t, e, o); s.Converged {
		t.Fatal("the warm start converges in as many updates: this tests nothing")
	}
	states, err := bp.FixedPoints(t.Context(), e, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	if s := states[0]; !s.Converged || s.LnZ() != cold.LnZ() {
		t.Errorf("converged %v, ln Z %v; cold %v", s.Converged, s.LnZ(), cold.LnZ())
	}
}
