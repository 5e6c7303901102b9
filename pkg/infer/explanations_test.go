package infer_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// explained are the reference models whose most probable explanations are held against a second way.
var explained = []string{
	"bn/alarm", "bn/insurance", "bn/hailfinder", "bn/munin1", "uai/Grids_11", "uai/Pedigree_11",
	"uai/linkage_11", "uai/Segmentation_11", "uai/ObjectDetection_11",
}

// referenceModel reads a model of the reference folder, and the evidence beside it where there is one.
func referenceModel(t testing.TB, name string) (*factorgraph.Model, factorgraph.Evidence) {
	t.Helper()
	if strings.HasPrefix(name, "uai/") {
		return reference.Model(t, name)
	}
	return reference.Read(t, name+".bif.gz"), factorgraph.Evidence{}
}

// logTable has ln of the weights of some variables, the last fastest.
type logTable struct {
	scope []int
	at    []float64
}

// logTables writes a model's dense factors as logarithms, under evidence, without observed variables.
func logTables(t testing.TB, m *factorgraph.Model, e factorgraph.Evidence) (dims []int, tables []logTable) {
	t.Helper()
	dims = slices.Clone(m.Domains)
	observed := map[int]int{}
	for _, h := range e.Hard {
		dims[h.Var], observed[h.Var] = 1, h.Value
	}
	for _, f := range m.Factors {
		d, ok := f.Table.(*tensor.Dense)
		if !ok {
			t.Fatalf("a factor of kind %T", f.Table)
		}
		var out logTable
		for _, v := range f.Scope {
			if dims[v] > 1 {
				out.scope = append(out.scope, v)
			}
		}
		for k, w := range d.Data {
			fits := true
			for n, rest := len(f.Scope)-1, k; n >= 0; n-- {
				v := f.Scope[n]
				if x, ok := observed[v]; ok && x != rest%m.Domains[v] {
					fits = false
				}
				rest /= m.Domains[v]
			}
			if fits {
				out.at = append(out.at, math.Log(w))
			}
		}
		tables = append(tables, out)
	}
	return dims, tables
}

// largestTerm is the largest sum of the tables' entries: pairs are merged along a tree, and indices of no other table are
// maximised over, entry by entry.
func largestTerm(dims []int, tables []logTable, tree contractionorder.Tree) float64 {
	uses := make([]int, len(dims))
	for _, t := range tables {
		for _, v := range t.scope {
			uses[v]++
		}
	}
	for _, m := range tree.Merges {
		a, b := tables[m[0]], tables[m[1]]
		var drop, keep []int
		for _, v := range slices.Concat(a.scope, b.scope) {
			both := slices.Contains(a.scope, v) && slices.Contains(b.scope, v)
			if slices.Contains(drop, v) || slices.Contains(keep, v) {
				continue
			}
			if both {
				uses[v]--
			}
			if uses[v] == 1 {
				drop = append(drop, v)
			} else {
				keep = append(keep, v)
			}
		}
		all := slices.Concat(keep, drop)
		out := logTable{scope: keep}
		inner, size := 1, 1
		for _, v := range drop {
			inner *= dims[v]
		}
		for _, v := range all {
			size *= dims[v]
		}
		step := func(t logTable) []int {
			s, by := make([]int, len(all)), 1
			for n := len(t.scope) - 1; n >= 0; n-- {
				s[slices.Index(all, t.scope[n])] = by
				by *= dims[t.scope[n]]
			}
			return s
		}
		sa, sb := step(a), step(b)
		x := make([]int, len(all))
		i, j, best := 0, 0, math.Inf(-1)
		for k := range size {
			best = math.Max(best, a.at[i]+b.at[j])
			if (k+1)%inner == 0 {
				out.at = append(out.at, best)
				best = math.Inf(-1)
			}
			for n := len(all) - 1; n >= 0; n-- {
				x[n]++
				i, j = i+sa[n], j+sb[n]
				if x[n] < dims[all[n]] {
					break
				}
				i, j, x[n] = i-x[n]*sa[n], j-x[n]*sb[n], 0
			}
		}
		tables[m[0]], tables[m[1]] = logTable{}, logTable{}
		tables = append(tables, out)
	}
	return tables[len(tables)-1].at[0]
}

// TestExplanationsOfReferenceModels: the weight of the assignment found is the largest that a contraction of the factors'
// logarithms along another tree finds, and equals the product of its factors.
func TestExplanationsOfReferenceModels(t *testing.T) {
	for _, name := range explained {
		t.Run(name, func(t *testing.T) {
			if !nightly.On() && name == "uai/linkage_11" {
				t.Skip("half a minute on a busy machine: make nightly")
			}
			m, e := referenceModel(t, name)
			results, err := infer.Run(context.Background(), infer.Request{
				Job: "t", Model: m, Queries: []query.Query{{Evidence: e, MPE: true}},
			})

			if err != nil || results[0].MPE == nil {
				t.Fatalf("%v, %+v", err, results[0].Error)
			}
			found := results[0].MPE

			weight := 0.0
			for _, f := range m.Factors {
				at := 0
				for _, v := range f.Scope {
					at = at*m.Domains[v] + found.Assignment[v]
				}
				weight += math.Log(f.Table.(*tensor.Dense).Data[at])
			}
			for _, h := range e.Hard {
				if found.Assignment[h.Var] != h.Value {
					t.Errorf("variable %d is at %d, observed at %d", h.Var, found.Assignment[h.Var], h.Value)
				}
			}

			dims, tables := logTables(t, m, e)
			h := contractionorder.Hypergraph{Dims: dims}
			for _, table := range tables {
				h.Edges = append(h.Edges, table.scope)
			}
			plan, err := contractionorder.Search(context.Background(), h, contractionorder.Options{Seed: 77})
			if err != nil || len(plan.Slices) > 0 {
				t.Fatalf("%v, slices %v", err, plan.Slices)
			}
			largest := largestTerm(dims, tables, plan.Tree)
			if off := 1e-9 * (1 + math.Abs(largest)); math.Abs(found.LnWeight-largest) > off || math.Abs(weight-largest) > off {
				t.Errorf("ln weight %.12g, by the factors %.12g; the largest is %.12g", found.LnWeight, weight, largest)
			}
			t.Logf("ln weight %.6f, unique %v", found.LnWeight, found.Unique)
		})
	}
}
