package infer

import (
	"context"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Parts of regions hand on their common ground: in any sequence of queries, their values keep their bits.
func TestSharedGroundChangesNoBit(t *testing.T) {
	m, err := generate.Grid(8, 9, generate.Ising{Delta: 0.5, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{
		{}, {Evidence: factorgraph.Observe(map[int]int{3: 1, 40: 0})},
		{Evidence: factorgraph.Observe(map[int]int{3: 0, 40: 0})},
	}
	s := query.Settings{Method: query.MethodRegions, Budget: 1e9}
	ctx := context.Background()
	net, err := stage.Reparameterise(context.Background(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := stage.Learn(ctx, net, queries, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var units []btn.Unit
	for i := range assignments[0].Plan.PartCount() {
		for q, a := range assignments {
			if a.Error != nil {
				t.Fatal(a.Error)
			}
			if p, _ := a.Plan.Part(i); p != nil {
				units = append(units, btn.Unit{Query: q, Part: i}, btn.Unit{Query: q, Part: i})
			}
		}
	}
	if len(units) < 12 {
		t.Fatalf("%d units", len(units))
	}
	shared := &problem.Shared{}
	with, err := stage.Contract(ctx, net, assignments, stage.Demands(net, queries), units,
		stage.ContractOptions{Shared: shared})
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range units {
		alone, err := stage.Contract(ctx, net, assignments, stage.Demands(net, queries), []btn.Unit{u},
			stage.ContractOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if alone[0].Error != nil || !reflect.DeepEqual(alone[0], with[i]) {
			t.Errorf("%+v: %+v with, %+v without", u, with[i], alone[0])
		}
	}
	for k := 1; k < len(units); k += 2 { // asked for twice in a row, with the same values
		if !reflect.DeepEqual(with[k-1], with[k]) {
			t.Errorf("%+v: %+v, then %+v", units[k], with[k-1], with[k])
		}
	}
}
