package generate_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
)

func TestOptionsAreBounded(t *testing.T) {
	grid := func(r, c int, delta float64) error {
		_, err := generate.Grid(r, c, generate.Ising{Delta: delta})
		return err
	}
	complete := func(n int) error { _, err := generate.Complete(n, generate.Ising{}); return err }
	regular := func(n, d int) error { _, err := generate.RandomRegular(n, d, generate.Ising{}); return err }
	random := func(o generate.RandomOptions) error { _, err := generate.Random(o); return err }
	bipartite := func(a, b int, o generate.Ising) error { _, err := generate.Bipartite(a, b, o); return err }
	for want, err := range map[string]error{
		"a bipartite graph of 0 + 3":       bipartite(0, 3, generate.Ising{}),
		"a bipartite graph of 4000 + 4000": bipartite(4000, 4000, generate.Ising{}),
		"domain 1, attractive false":       bipartite(2, 2, generate.Ising{Domain: 1}),
		"domain 3, attractive true": bipartite(2, 2,
			generate.Ising{Domain: 3, Attractive: true}),
		"tables of 409670400 entries": bipartite(100, 1000, generate.Ising{Domain: 64}),
		"arity 4, 1 to 3":             random(generate.RandomOptions{Variables: 3, Arity: 4}),
		"largest domain 3, 4 to": random(generate.RandomOptions{MinDomain: 4,
			MaxDomain: 3}),
		"strength NaN":                           random(generate.RandomOptions{Strength: math.NaN()}),
		"1000001 factors of up to 1.25e+08 entr": random(generate.RandomOptions{Variables: 1000000, Degree: 3}),
		"a grid of 0 × 3":                        grid(0, 3, 1),
		"Δ = -1":                                 grid(2, 3, -1),
		"Δ = NaN":                                grid(2, 3, math.NaN()),
		"a complete graph of 0":                  complete(0),
		"no simple graph of 5 variables of degree 3": regular(5, 3),
		"no simple graph of 4 variables of degree 4": regular(4, 4),
	} {
		if !errors.Is(err, generate.ErrOptions) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}
