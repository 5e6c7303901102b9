// Package families draws the models that estimates are judged on: 49 families, from grids to parity codes, each in several sizes and
// strengths, every model from a seed. Members are small enough to be contracted exactly within a second or so; the members of Large
// need estimates. Hard families bring their answers, by ways that share nothing with the system.
package families

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Member describes one model of a family before it is drawn.
type Member struct {
	Family   string
	Size     int // what the family's generator takes: rows, variables, or variables of a half
	Strength float64
	Seed     uint64
	draw     generator
	truth    truth
}

// String is a file name without its ending.
func (m Member) String() string {
	return fmt.Sprintf("%s-%d-%g-%d", m.Family, m.Size, m.Strength, m.Seed)
}

// Model draws it. Errors: none for the members that this package lists.
func (m Member) Model() (*factorgraph.Model, error) {
	model, err := m.draw(m.Size, m.Strength, m.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m, err)
	}
	return model, nil
}

// Truth is ln Z and the marginals of its model by a way that shares nothing with the system; ok is false for families that have none.
func (m Member) Truth(ctx context.Context, model *factorgraph.Model) (lnZ float64, marginals [][]float64, ok bool, err error) {
	if m.truth == nil {
		return 0, nil, false, nil
	}
	lnZ, marginals, err = m.truth(ctx, model)
	return lnZ, marginals, true, err
}

// Grown is the member of so many times the size, of the same strength and seed. Errors: fault.BadInput for less than once.
func (m Member) Grown(times int) (Member, error) {
	if times < 1 || m.Size > math.MaxInt32/times {
		return Member{}, fault.New(fault.BadInput, "families: %d times %s", times, m)
	}
	m.Size *= times
	return m, nil
}

type generator func(size int, strength float64, seed uint64) (*factorgraph.Model, error)

// family lists sizes and strengths in turn: member k has size k mod 3, and strength ⌊k/3⌋ mod 3.
type family struct {
	name      string
	about     string
	sizes     [3]int
	strengths [3]float64
	draw      generator
}

// Names are those of all families, in the sequence of tables.
func Names() []string {
	list := make([]string, len(all))
	for k, f := range all {
		list[k] = f.name
	}
	return list
}

// About says what a family's models are, and what size and strength mean; empty for an unknown name.
func About(name string) string {
	for _, f := range all {
		if f.name == name {
			return f.about
		}
	}
	return ""
}

// Members are the first n models of a family, seeds 0 to n−1. Errors: fault.BadInput for an unknown name.
func Members(name string, n int) ([]Member, error) {
	for _, f := range all {
		if f.name != name {
			continue
		}
		list := make([]Member, n)
		truth := truthOf(name)
		for k := range list {
			list[k] = Member{Family: f.name, Size: f.sizes[k%3], Strength: f.strengths[k/3%3], Seed: uint64(k), draw: f.draw, truth: truth}
		}
		return list, nil
	}
	return nil, fault.New(fault.BadInput, "families: no family %q", name)
}

// random is the stream of a seed, different for every kind of models.
func random(seed uint64, kind string) *rand.Rand {
	of := uint64(14695981039346656037) // FNV-1a
	for _, c := range []byte(kind) {
		of = (of ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, of))
}
