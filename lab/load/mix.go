package load

// The models of a mix and their variants.

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Model is one of a mix.
type Model struct {
	Name   string
	Graph  *factorgraph.Model
	Weight float64 // share of the jobs
}

// AlarmSized returns a random Bayesian network of the size of ALARM: 37 variables of 2 to 4 values,
// at most 4 parents each and 46 arcs, within a window of 6 variables so that its treewidth is small
// too.
func AlarmSized(seed uint64) *factorgraph.Model {
	const variables, arcs, window, most = 37, 46, 6, 4
	r := rand.New(rand.NewPCG(seed, 0x616c61726d))
	m := &factorgraph.Model{Bayes: true}
	for range variables {
		m.Domains = append(m.Domains, 2+r.IntN(3))
	}

	parents := make([][]int, variables)
	for placed := 0; placed < arcs; {
		child := 1 + r.IntN(variables-1)
		parent := max(0, child-window) + r.IntN(min(child, window))
		if len(parents[child]) < most && !slices.Contains(parents[child], parent) {
			parents[child] = append(parents[child], parent)
			placed++
		}
	}

	for v, scope := range parents {
		slices.Sort(scope)
		scope = append(scope, v)
		t := &tensor.Dense{}
		size := 1
		for _, u := range scope {
			t.Shape = append(t.Shape, m.Domains[u])
			size *= m.Domains[u]
		}
		t.Data = make([]float64, size)
		for i := range t.Data {
			t.Data[i] = 0.05 + r.ExpFloat64()
		}
		normaliseRows(t.Data, m.Domains[v])
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}

	return m
}

// normaliseRows makes every run of d entries sum to 1.
func normaliseRows(data []float64, d int) {
	for row := range slices.Chunk(data, d) {
		sum := 0.0
		for _, p := range row {
			sum += p
		}
		for i := range row {
			row[i] /= sum
		}
	}
}

// variant returns another model of the same structure: every positive entry of a dense table by up
// to a tenth more or less, rows of conditional probability tables still summing to 1. Variant 0 is
// the model itself.
func variant(m *factorgraph.Model, number int, seed uint64) *factorgraph.Model {
	if number == 0 {
		return m
	}
	r := rand.New(rand.NewPCG(seed, uint64(number)))
	c := *m
	c.Factors = slices.Clone(m.Factors)
	for j, f := range c.Factors {
		t, ok := f.Table.(*tensor.Dense)
		if !ok {
			continue
		}
		data := slices.Clone(t.Data)
		for i := range data {
			data[i] *= 0.9 + 0.2*r.Float64()
		}
		if m.Bayes && len(t.Shape) > 0 {
			normaliseRows(data, t.Shape[len(t.Shape)-1])
		}
		c.Factors[j].Table = &tensor.Dense{Shape: t.Shape, Data: data}
	}

	return &c
}

// known is a variant that is ready to be asked.
type known struct {
	graph *factorgraph.Model
	body  *wire.Model
	draw  *sampler

	digest string // of the registered model; empty if it is not
}

// library makes variants when they are first asked for and keeps them.
type library struct {
	config Config
	have   map[[2]int]*known
}

func (l *library) get(model, number int) (*known, error) {
	key := [2]int{model, number}
	if k := l.have[key]; k != nil {
		return k, nil
	}
	graph := variant(l.config.Models[model].Graph, number, l.config.Seed)
	body, err := wire.NewModel(graph)
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, fmt.Errorf("load: model %s: %w", l.config.Models[model].Name, err))
	}
	k := &known{graph: graph, body: body, draw: newSampler(graph)}
	l.have[key] = k
	return k, nil
}
