// Package families lists the models that estimates are judged on: the families of internal/testing/modeltest, each in several sizes and
// strengths, every model from a seed. Members are small enough to be contracted exactly within a second or so; the members of Large need
// estimates.
package families

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Member describes one model of a family before it is drawn.
type Member struct {
	Family   string
	Size     int // rows, variables, or variables of a half, by the family
	Strength float64
	Seed     uint64
}

// String is a file name without its ending.
func (m Member) String() string {
	return fmt.Sprintf("%s-%d-%g-%d", m.Family, m.Size, m.Strength, m.Seed)
}

// Model draws it. Errors: none for the members that this package lists.
func (m Member) Model() (*factorgraph.Model, error) {
	model, err := modeltest.Draw(m.Family, m.Size, m.Strength, m.Seed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m, err)
	}
	return model, nil
}

// truths are the answers of families that have another way than sweeps over the states of a frontier.
var truths = map[string]truth{
	"permanent": assigned, "latin-squares": square, "xor-hard": linear,
	"planar-glass": planar, "planar-strip": planar, "dimers-square": dominoes,
	"field-strip": transfer, "rbm-narrow": hiddenLayer, "parities": dependencies,
}

// Truth is ln Z and the marginals, nil without them, of a hard or solvable family's model by a way that shares nothing with the
// system; ok is false for other families.
func (m Member) Truth(ctx context.Context, model *factorgraph.Model) (lnZ float64, marginals [][]float64, ok bool, err error) {
	way, ok := truths[m.Family]
	switch {
	case ok:
	case m.Family == "rank-two":
		way = func(ctx context.Context, model *factorgraph.Model) (float64, [][]float64, error) {
			return integral(ctx, m, model)
		}
	case slices.ContainsFunc(modeltest.Hard(), func(f modeltest.Family) bool { return f.Name == m.Family }):
		way = sweep
	default:
		return 0, nil, false, nil
	}
	lnZ, marginals, err = way(ctx, model)
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

// Names lists all families in the sequence of tables.
func Names() (list []string) {
	for _, f := range modeltest.Families() {
		list = append(list, f.Name)
	}
	return list
}

// Members are the first n models of a family, seeds 0 to n−1: member k has size k mod 3, and strength ⌊k/3⌋ mod 3. Errors: fault.BadInput
// for an unknown name.
func Members(name string, n int) ([]Member, error) {
	for _, f := range modeltest.Families() {
		if f.Name != name {
			continue
		}
		list := make([]Member, n)
		for k := range list {
			list[k] = Member{f.Name, f.Sizes[k%3], f.Strengths[k/3%3], uint64(k)}
		}
		return list, nil
	}
	return nil, fault.New(fault.BadInput, "families: no family %q", name)
}

// large are the members of acceptance, one size and strength each.
var large = []Member{
	{Family: "complete", Size: 40, Strength: 1},
	{Family: "glass-3d-periodic", Size: 6, Strength: 1},
	{Family: "glass-3d-periodic", Size: 8, Strength: 1},
	{Family: "regular-3", Size: 300, Strength: 1},
	{Family: "rbm", Size: 40, Strength: 0.3},
	{Family: "sherrington-kirkpatrick", Size: 100, Strength: 1},
	{Family: "grid-attractive", Size: 40, Strength: 1},
}

// optima are members that no elimination answers.
var optima = []Member{
	{Family: "denoise", Size: 100, Strength: 0.7},
	{Family: "radio", Size: 200, Strength: 6},
	{Family: "warehouses", Size: 60, Strength: 3},
	{Family: "ldpc", Size: 1000, Strength: 0.04},
	{Family: "qmr", Size: 150, Strength: 0.1},
}

// solvable are members that no elimination reaches, of known ln Z.
var solvable = []Member{
	{Family: "planar-glass", Size: 60, Strength: 0.5},
	{Family: "planar-glass", Size: 60, Strength: 1},
	{Family: "planar-glass", Size: 60, Strength: 2},
	{Family: "planar-strip", Size: 1000, Strength: 1},
	{Family: "field-strip", Size: 100, Strength: 1},
	{Family: "dimers-square", Size: 40, Strength: 1},
	{Family: "parities", Size: 300, Strength: 1},
	{Family: "parities", Size: 300, Strength: 4},
	{Family: "rbm-narrow", Size: 26, Strength: 0.2},
	{Family: "rbm-narrow", Size: 26, Strength: 0.6},
	{Family: "rank-two", Size: 400, Strength: 1},
	{Family: "rank-two", Size: 400, Strength: 4},
}

// Solvable are n models, seeds 0 to n−1, of each of these, whose Truth is known although no elimination reaches them: grids without fields
// of 60×60 and 40×1000, with fields of 24×100, dimers on 40×40, 291 parities of 300 bits, Boltzmann machines of 150 + 26 units, complete
// graphs of 400 whose couplings have rank two.
func Solvable(n int) []Member { return seeded(solvable, n) }

// Large are n models, seeds 0 to n−1, of each of these: complete graphs of 40, periodic ±J grids 6³ and 8³, 3-regular graphs of 300,
// restricted Boltzmann machines of 40 + 40, Sherrington–Kirkpatrick of 100, attractive grids 40×40.
func Large(n int) []Member { return seeded(large, n) }

// Optima are n models, seeds 0 to n−1, of each of these, whose most probable assignment is asked for: images of 100×100, 200 radio links,
// 60 shops of 30 warehouses, codes of 1,000 bits, 150 diseases and as many findings.
func Optima(n int) []Member { return seeded(optima, n) }

func seeded(members []Member, n int) (list []Member) {
	for _, m := range members {
		for m.Seed = range uint64(n) {
			list = append(list, m)
		}
	}
	return list
}

// Huge are large models: on a busy machine, a budget of seconds gives belief propagation's value and bounds, and little more.
var Huge = []Member{
	{Family: "regular-3", Size: 10_000, Strength: 1},
	{Family: "regular-3", Size: 100_000, Strength: 1},
	{Family: "glass-3d-periodic", Size: 20, Strength: 1},
}
