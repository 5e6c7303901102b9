package counts_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mustGenerate returns a generated model.
func mustGenerate(m *factorgraph.Model, err error) *factorgraph.Model {
	if err != nil {
		panic(err)
	}
	return m
}

// BenchmarkMarginals: ln Z and all marginals in count space.
func BenchmarkMarginals(b *testing.B) {
	for _, c := range []struct {
		name  string
		model *factorgraph.Model
	}{
		{"potts q=3 n=200", mustGenerate(generate.Potts{Size: 200, Values: 3, Groups: 1, Coupling: 1}.Model())},
		{"potts q=4 n=40", mustGenerate(generate.Potts{Size: 40, Values: 4, Groups: 1, Coupling: 1}.Model())},
		{"potts q=3 n=200 random fields", mustGenerate(generate.Potts{Size: 200, Values: 3, Groups: 1, Coupling: 1, Field: 0.3}.Model())},
		{"two Curie-Weiss of 300", mustGenerate(generate.Potts{Size: 300, Values: 2, Groups: 2, Shared: 100, Coupling: 1, Field: 0.3}.Model())},
		{"tree of 1000 leaves", mustGenerate(generate.Leaves(1000, 0))},
		{"friends n=10000", mustGenerate(generate.DefaultFriends(10_000).Model())},
	} {
		net, err := reparam.Build(context.Background(), c.model, reparam.Options{})
		if err != nil {
			b.Fatal(err)
		}
		part := &counts.Counts{}
		for k, core := range net.Cores {
			if counts.AsSymmetricTerms(core.T) != nil {
				part.Cores, part.Terms = append(part.Cores, k), append(part.Terms, 0)
			}
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				f, err := counts.NewForm(context.Background(), net, part, counts.Options{Memory: 4 << 30})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.Value(context.Background(), true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
