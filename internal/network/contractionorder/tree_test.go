package contractionorder_test

// A literal contraction of the reference models along found plans,
// against their published solutions.

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// TestPlansReproduceTheReferences contracts models along plans, whole and sliced, entry by entry.
func TestPlansReproduceTheReferences(t *testing.T) {
	for _, name := range []string{"Promedus_11", "Pedigree_11"} {
		e, err := lower.Build(context.Background(), reference.Network(t, "uai/"+name))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := reference.Log10Z(t, "uai/"+name)
		h := e.Hypergraph()
		whole := search(t, h, contractionorder.Options{Seed: 1})
		less := int64(inputBytes(h) + (whole.Cost.PeakBytes-inputBytes(h))/8)
		for _, p := range []contractionorder.Plan{whole,
			search(t, h, contractionorder.Options{Seed: 1, Memory: less})} {
			sum := contract(t, e, p)
			got := math.Log10(sum) + e.Scale.Log10Abs()
			t.Logf("%s: log10 Z = %.6f, reference %.6f; %+v", name, got, want, p.Cost)
			if math.Abs(got-want) > 1e-4 {
				t.Errorf("%s in %v slices: log10 Z = %v, reference %v",
					name, p.Cost.Slices, got, want)
			}
		}
	}
}

// table has its scope's last index fastest; its value is data · 2^exp.
type table struct {
	scope []int
	data  []float64
	exp   int
}

// contract sums the slices of an expression whose
// value is in the range of float64 but for its scale.
func contract(t *testing.T, e *sumproduct.Expression, p contractionorder.Plan) float64 {
	t.Helper()
	h := e.Hypergraph()
	scopes, err := contractionorder.Scopes(h, p.Tree, p.Slices)
	if err != nil {
		t.Fatal(err)
	}
	fixed := map[int]int{}
	for _, v := range p.Slices {
		fixed[v] = 0
	}
	total := 0.0
	for {
		tables := make([]table, len(scopes))
		for i, s := range e.Tables {
			tables[i] = multiply(e.Dims, fixed, []table{{scope: s.Scope, data: s.Data}}, scopes[i])
		}
		for k, m := range p.Tree.Merges {
			i := p.Tree.Leaves + k
			tables[i] = multiply(e.Dims, fixed, []table{tables[m[0]], tables[m[1]]}, scopes[i])
			tables[m[0]], tables[m[1]] = table{}, table{}
		}
		last := tables[len(tables)-1]
		total += math.Ldexp(last.data[0], last.exp)
		at := 0
		for ; at < len(p.Slices); at++ {
			v := p.Slices[at]
			if fixed[v]++; fixed[v] < e.Dims[v] {
				break
			}
			fixed[v] = 0
		}
		if at == len(p.Slices) {
			return total
		}
	}
}

// multiply returns Σ Π in over the indices outside out, indices in fixed held at their values.
func multiply(dims []int, fixed map[int]int, in []table, out []int) table {
	var over []int
	seen := map[int]bool{}
	add := func(list []int) {
		for _, v := range list {
			if _, held := fixed[v]; !held && !seen[v] {
				seen[v] = true
				over = append(over, v)
			}
		}
	}
	add(out)
	result := table{scope: out}
	size := 1
	for _, v := range out {
		size *= dims[v]
	}
	result.data = make([]float64, size)
	for _, f := range in {
		add(f.scope)
		result.exp += f.exp
	}
	strides := func(scope []int) (by map[int]int, offset int) {
		by = map[int]int{}
		s := 1
		for k := len(scope) - 1; k >= 0; k-- {
			by[scope[k]] = s
			offset += s * fixed[scope[k]]
			s *= dims[scope[k]]
		}
		return by, offset
	}
	all := append([]table{result}, in...)
	step := make([][]int, len(all))
	at := make([]int, len(all))
	for i, f := range all {
		by, offset := strides(f.scope)
		at[i] = offset
		for _, v := range over {
			step[i] = append(step[i], by[v])
		}
	}
	x := make([]int, len(over))
	for {
		product := 1.0
		for i, f := range in {
			product *= f.data[at[i+1]]
		}
		result.data[at[0]] += product
		k := len(x) - 1
		for ; k >= 0; k-- {
			x[k]++
			for i := range at {
				at[i] += step[i][k]
			}
			if x[k] < dims[over[k]] {
				break
			}
			for i := range at {
				at[i] -= step[i][k] * dims[over[k]]
			}
			x[k] = 0
		}
		if k < 0 {
			break
		}
	}
	top := 0.0
	for _, d := range result.data {
		top = max(top, math.Abs(d))
	}
	if top > 0 {
		_, exp := math.Frexp(top)
		for i := range result.data {
			result.data[i] = math.Ldexp(result.data[i], -exp)
		}
		result.exp += exp
	}
	return result
}
