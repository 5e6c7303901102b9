package plan

// Messages of a network: when they are learned, remembered and used.

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// notes is a memo in a map.
type notes map[string]*btn.Plan

func (n notes) Do(
	ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if d := n[key]; d != nil {
		return d, true, nil
	}
	d, err := compute(ctx)
	if err == nil {
		n[key] = d
	}
	return d, false, err
}

// messages returns the keys of messages.
func (n notes) messages() (keys []string) {
	for key := range n {
		if strings.HasPrefix(key, "btn:v1:messages:"+proposal.AlgorithmVersion+":") {
			keys = append(keys, key)
		}
	}
	return keys
}

func isingGrid(t *testing.T, n int, o generate.Ising) *btn.Network {
	t.Helper()
	m, err := generate.Grid(n, n, o)
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

var regionSettings = query.Settings{Method: query.MethodRegions, Budget: 3e6}

func assignOne(t *testing.T, net *btn.Network, values map[int]int, memo proposal.Memo) btn.Assignment {
	t.Helper()
	assignments, err := Assign(t.Context(), net, []btn.Demand{{Evidence: factorgraph.Observe(values)}},
		regionSettings, memo)
	if err != nil {
		t.Fatal(err)
	}
	if a := assignments[0]; a.Error == nil {
		return a
	}
	t.Fatalf("%+v", assignments[0].Error)
	return btn.Assignment{}
}

// One fixed point: its messages are the answer without evidence, and what is passed under evidence ends where
// a cold start does.
func TestMessagesOfAModelWithOneFixedPoint(t *testing.T) {
	net := isingGrid(t, 8, generate.Ising{Delta: 0.5, Seed: 1})
	memo := notes{}
	first := assignOne(t, net, map[int]int{20: 1, 41: 0}, memo)
	keys := memo.messages()
	if len(keys) != 1 || len(memo[keys[0]].Messages) == 0 {
		t.Fatalf("remembered: %v", keys)
	}
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bp.Run(t.Context(), e, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	free := assignOne(t, net, nil, memo)
	if p := free.Propagation; p.Updates != 0 || !p.Converged || math.Abs(*p.LogZ-s.LnZ()) > 1e-12 || len(p.Phases) != 1 {
		t.Errorf("without evidence: %+v, ln Z %v, want %v", p, *p.LogZ, s.LnZ())
	}
	conditioned, err := net.Condition(factorgraph.Observe(map[int]int{20: 1, 41: 0}))
	if err != nil {
		t.Fatal(err)
	}
	given, err := lower.Build(context.Background(), conditioned)
	if err != nil {
		t.Fatal(err)
	}
	cold, err := bp.Run(t.Context(), given, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if p := first.Propagation; !p.Converged || math.Abs(*p.LogZ-cold.LnZ()) > 1e-10 {
		t.Errorf("under evidence: %+v, ln Z %v, want %v", p, *p.LogZ, cold.LnZ())
	}
	// What is remembered under the key and is not what was learned is learned again.
	memo[keys[0]] = &btn.Plan{Messages: []float64{1, 2, 3}}
	if again := assignOne(t, net, map[int]int{20: 1, 41: 0}, memo); *again.Propagation.LogZ != *first.Propagation.LogZ {
		t.Errorf("after a wrong entry: %v, want %v", *again.Propagation.LogZ, *first.Propagation.LogZ)
	}
}

// Several phases: nothing warm, which is remembered as well, and the states are those of cold starts.
func TestMessagesOfAModelWithPhases(t *testing.T) {
	net := isingGrid(t, 8, generate.Ising{Delta: 1.5, Attractive: true, Seed: 1})
	memo := notes{}
	values := map[int]int{20: 1}
	a := assignOne(t, net, values, memo)
	if keys := memo.messages(); len(keys) != 1 || memo[keys[0]].Messages != nil {
		t.Fatalf("remembered: %v", keys)
	}
	conditioned, err := net.Condition(factorgraph.Observe(values))
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(context.Background(), conditioned)
	if err != nil {
		t.Fatal(err)
	}
	states, err := bp.FixedPoints(t.Context(), e, 4, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := *a.Propagation.LogZ, states[0].LnZ(); got != want || a.Propagation.Updates != states[0].Updates {
		t.Errorf("ln Z %v after %d updates, cold %v after %d", got, a.Propagation.Updates, want, states[0].Updates)
	}
	if a := assignOne(t, net, values, memo); a.Cache != "hit" {
		t.Errorf("asked again: cache %q", a.Cache)
	}
}

// The most messages that are learned fit what a cache takes of one value.
func TestMostMessagesFitTheCache(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	g := &btn.Plan{Method: query.MethodRegions, Messages: make([]float64, policy.MostMessages)}
	for k := range g.Messages {
		g.Messages[k] = rng.Float64()
	}
	b, err := message.EncodePlan(g)
	if err != nil {
		t.Fatal(err)
	}
	d, err := message.DecodePlan(b)
	if err != nil || len(d.Messages) != policy.MostMessages ||
		d.Messages[policy.MostMessages-1] != g.Messages[policy.MostMessages-1] {
		t.Fatalf("read back: %v", err)
	}
	if len(b) > 4<<20 {
		t.Errorf("%d bytes", len(b))
	}
}
