package preprocess_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// alikeTable draws a matrix whose rows and columns are equal within a few classes.
func alikeTable(rng *rand.Rand, rows, columns, classes int, d drawing) []float64 {
	core := randomTable(rng, []int{classes, classes}, d)
	of := func(n int) []int {
		list := make([]int, n)
		for k := range list {
			list[k] = rng.IntN(classes)
		}
		return list
	}
	r, c := of(rows), of(columns)
	var data []float64
	for x := range rows {
		for y := range columns {
			data = append(data, core[r[x]*classes+c[y]])
		}
	}
	return data
}

// TestClassesOfValues: Z and marginals stay where matrices are written over classes of values,
// among other tables, with zeros and with entries of both signs.
func TestClassesOfValues(t *testing.T) {
	const seed = 31
	rng := rand.New(rand.NewPCG(seed, 1))
	coarse := 0
	for round := range 400 {
		d := drawing{indices: 5, tables: 3, arity: 3, dim: 6, zeros: 0.2 * float64(round%3),
			negative: round%4 == 3, planted: true}
		e := draw(rng, d)
		for range 5 {
			p := rng.Perm(len(e.Dims))
			data := alikeTable(rng, e.Dims[p[0]], e.Dims[p[1]], 2+rng.IntN(2), d)
			e.Tables = append(e.Tables, sumproduct.Table{Scope: p[:2], Data: data})
		}
		for _, marginals := range []bool{false, true} {
			o := preprocess.Always(preprocess.Options{Classes: true, Marginals: marginals})
			r := check(t, fmt.Sprintf("seed %d, round %d, marginals %v", seed, round, marginals), e, o)
			coarse += r.Report.Coarse
		}
	}
	if coarse < 400 {
		t.Errorf("%d tables were written over classes, in 800 expressions", coarse)
	}
}

// TestClassesMakeTreesCheaper: seven indices of twelve values, each pair in a matrix of
// three classes of rows, are contracted with a twentieth of the operations.
func TestClassesMakeTreesCheaper(t *testing.T) {
	const seed, n, dim, classes = 32, 7, 12, 3
	rng := rand.New(rand.NewPCG(seed, 1))
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range n {
		e.Dims = append(e.Dims, dim)
		for j := range i {
			data := alikeTable(rng, dim, dim, classes, drawing{})
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
		}
	}
	flops := map[bool]float64{}
	for _, on := range []bool{false, true} {
		r, err := preprocess.Run(context.Background(), e, preprocess.Options{Classes: on})
		if err != nil {
			t.Fatal(err)
		}
		if all := n * (n - 1) / 2; on && r.Report.Coarse != all {
			t.Errorf("%d of %d tables are over classes", r.Report.Coarse, all)
		}
		plan, err := contractionorder.Search(context.Background(), r.Expression.Hypergraph(),
			contractionorder.Options{Seed: 1, Moves: 1 << 24})
		if err != nil {
			t.Fatal(err)
		}
		flops[on] = plan.Cost.Flops
	}
	t.Logf("%.3g flops, %.3g without classes", flops[true], flops[false])
	if flops[true] > flops[false]/20 {
		t.Errorf("%.3g flops, %.3g without classes", flops[true], flops[false])
	}
}
