package circuits

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestOneCube: the search of a query for Z alone is made for the plan and not again, and Z is the sum over all assignments.
func TestOneCube(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 42))
	const n = 12
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for range 30 {
		data := slices.Repeat([]float64{1}, 8)
		data[rng.IntN(8)] = 0
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:3], Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: data}})
	}
	z := 0.0
	for x := range 1 << n {
		term := 1.0
		for _, f := range m.Factors {
			at := 0
			for _, v := range f.Scope {
				at = 2*at + x>>v&1
			}
			term *= f.Table.(*tensor.Dense).Data[at]
		}
		z += term
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}

	j := &proposal.Job{
		Ctx: t.Context(), Net: net, Conditioned: net, Problems: &problem.Shared{}, Options: problem.Options{Memory: 1 << 31},
		Settings: query.Settings{Method: query.MethodExact, Memory: 1 << 31},
	}
	const work = policy.WholeWork / 4
	if found, err := oneCube(j, work); found != nil || err != nil {
		t.Errorf("others may follow: %v, %v", found, err)
	}
	j.Once = true
	found, err := oneCube(j, work)
	if err != nil {
		t.Fatal(err)
	}
	parts := found.Plan.Estimates[0].Parts
	cube := parts[0].(*Cube)
	if len(parts) != 1 || cube.Fits(net) != nil || found.Cost.Flops != policy.CircuitFlops*work {
		t.Errorf("%+v, cost %+v", found.Plan, found.Cost)
	}

	known, err := problem.Form(t.Context(), j.Problem(), countSlot{}, cubeKey(net, cube, 1<<31), func() (scaled.Number, error) {
		return scaled.Number{}, errors.New("not known")
	})
	if err != nil {
		t.Errorf("the search is to be made again: %v", err)
	}
	value, err := cube.Contract(t.Context(), j.Problem(), btn.Want{})
	if err != nil {
		t.Fatal(err)
	}
	if got := value.Z.Float64(); z == 0 || math.Abs(got-z) > 1e-12*z || known.Mul(net.Scale) != value.Z {
		t.Errorf("Z is %v, all assignments sum to %v", got, z)
	}
}
