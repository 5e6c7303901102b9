package infer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// longNetwork is a Bayesian network of n variables of three values, each with two parents among the five before it, its numbers written
// with six digits: all its marginals are exact, and a question about the first variables depends on these alone.
func longNetwork(n int) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(uint64(n), 5))
	m := &factorgraph.Model{Bayes: true}
	for v := range n {
		m.Domains = append(m.Domains, 3)
		scope, shape, rows := []int{}, []int{}, 1
		for _, back := range rng.Perm(5)[:2] {
			if parent := v - 1 - back; parent >= 0 {
				scope, shape, rows = append(scope, parent), append(shape, 3), 3*rows
			}
		}
		data := make([]float64, 3*rows)
		for r := range rows {
			draw(rng, data[3*r:3*r+3], 6)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(scope, v), Table: &tensor.Dense{Shape: append(shape, 3), Data: data}})
	}
	return m
}

// BenchmarkRelevant measures questions to networks of 1,000 and 10,000 variables with five observations: one target, for which ten
// variables matter, and all marginals beside it. A question is asked of the model as it was read, of the network as a worker knows it,
// and again with what the worker remembers of it.
func BenchmarkRelevant(b *testing.B) {
	five := factorgraph.Observe(map[int]int{1: 0, 2: 1, 4: 2, 6: 0, 9: 1})
	for _, n := range []int{1000, 10_000} {
		m := longNetwork(n)
		for name, q := range map[string]query.Query{
			"one target": {Evidence: five, Targets: []int{7}}, "all marginals": {Evidence: five, Marginals: true},
		} {
			q.Marginals = true
			b.Run(fmt.Sprintf("%d variables/%s/read", n, name), func(b *testing.B) {
				timed(b, func() {
					results, err := infer.Run(b.Context(), infer.Request{Job: "j", Model: m, Queries: []query.Query{q}})
					if err != nil || !results[0].Exact {
						b.Fatal(err, results)
					}
				})
			})
			net, err := stage.Reparameterise(b.Context(), m, query.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%d variables/%s/known", n, name), func(b *testing.B) {
				timed(b, func() { askNetwork(b, net, q, &problem.Shared{}, &plan.NetworkMemory{}) })
			})
			shared := &problem.Shared{}
			known := &plan.NetworkMemory{Problems: shared}
			b.Run(fmt.Sprintf("%d variables/%s/again", n, name), func(b *testing.B) {
				timed(b, func() { askNetwork(b, net, q, shared, known) })
				part, _ := shared.Relevant(net, stage.Demands(net, []query.Query{q})[0])
				b.ReportMetric(float64(len(part.Variables)), "variables")
			})
		}
	}
}

// askNetwork runs the last three stages.
func askNetwork(b *testing.B, net *btn.Network, q query.Query, shared *problem.Shared, known *plan.NetworkMemory) {
	known.Problems = shared
	assignments, err := stage.Learn(b.Context(), net, []query.Query{q}, query.Settings{}, nil, known)
	if err != nil {
		b.Fatal(err)
	}
	chunks, _ := stage.Chunks(net, assignments)
	var values []btn.UnitValue
	for _, units := range chunks {
		demands := stage.Demands(net, []query.Query{q})
		part, err := stage.Contract(b.Context(), net, assignments, demands, units, stage.ContractOptions{Shared: shared})
		if err != nil {
			b.Fatal(err)
		}
		values = append(values, part...)
	}
	if r := stage.Aggregate("j", assignments, values)[0]; r.Status != query.StatusOK || !r.Exact {
		b.Fatal(r)
	}
}
