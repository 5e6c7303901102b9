package stage

import (
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestChunksCoverEveryUnitOnceInOrder(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, scope := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{2, 1, 1, 2}}})
	}
	net, err := Reparameterise(t.Context(), m, btn.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	dec := &btn.Decomposition{Components: make([]btn.Component, 5)}
	for i := range dec.Components {
		dec.Components[i] = btn.Component{Class: btn.ClassRankOne, R: make([][]float64, len(net.Dims))}
	}
	heavy := &btn.Cost{Flops: 5 * policy.ChunkFlops} // of all five components
	job := &btn.Job{
		Decompositions: []*btn.Decomposition{dec},
		Assignments:    []btn.Assignment{{}, {Decomposition: -1, Error: &btn.ErrorInfo{}}, {Plan: heavy}},
	}
	chunks, _ := Chunks(net, job)
	var units []btn.Unit
	for _, c := range chunks {
		units = append(units, c...)
	}
	if len(units) != 10 || units[0] != (btn.Unit{}) || units[9] != (btn.Unit{Query: 2, Component: 4}) {
		t.Fatalf("units %v", units)
	}
	if len(chunks) != 6 { // the five light units of query 0, then five heavy ones alone
		t.Errorf("%d chunks: %v", len(chunks), chunks)
	}
	if got, _ := Chunks(net, &btn.Job{}); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("a job without units has %v", got)
	}
}
