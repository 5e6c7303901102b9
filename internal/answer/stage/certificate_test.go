package stage

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// answerLearned runs a network through the stages after the first, by learned components.
func answerLearned(t *testing.T, net *btn.Network, s query.Settings) query.Result {
	t.Helper()
	queries := []query.Query{{}}
	s.Method, s.Objective = query.MethodSymmetryCP, query.ObjectiveFrobenius
	assignments, err := Learn(t.Context(), net, queries, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var units []btn.Unit
	if p := assignments[0].Plan; p != nil {
		for part := range p.PartCount() {
			units = append(units, btn.Unit{Part: part})
		}
	}
	values, err := Contract(t.Context(), net, assignments, Demands(net, queries), units, ContractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return Aggregate("", assignments, values)[0]
}

// holds compares a result with the truth: its certificate, its value if it is exact, and its warning if nothing is known.
func holds(t *testing.T, name string, z *big.Float, r query.Result) {
	t.Helper()
	if r.Error != nil || z.Sign() <= 0 {
		return
	}
	lnZ := oracle.Ln(z)
	slack := 1e-9 * max(1, math.Abs(lnZ))
	if c := r.Certificate; c != nil && (c.LnUpper < lnZ-slack || c.LnLower != nil && *c.LnLower > lnZ+slack) {
		t.Errorf("%s: ln Z = %v is not within %v: %v to %v", name, lnZ, *r.LogZ, c.LnLower, c.LnUpper)
	}
	switch {
	case r.Exact && (r.Zero || math.Abs(*r.LogZ-lnZ) > slack):
		t.Errorf("%s: exact, but ln Z = %v: %+v", name, lnZ, r)
	case !r.Exact && !strings.Contains(strings.Join(r.Warnings, "\n"), "unknown quality"):
		t.Errorf("%s: nothing is known, and it does not say so: %v", name, r.Warnings)
	}
}

// TestCertificatesHoldUnderMaps compares with enumeration in large numbers, under maps of condition numbers up to about 10^7,
// with numbers at the ends of float64 and terms that nearly cancel.
func TestCertificatesHoldUnderMaps(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	for trial := range nightly.Rounds(200, 400) {
		m := modeltest.Small(r, modeltest.SmallOptions{Variables: 3, Factors: 3, Negative: trial%2 == 1})
		extreme(r, m, trial%5)
		o := reparam.Options{Maps: query.MapOrthogonal, Cores: query.CoresAreFactors}
		if trial%3 == 0 {
			o.Cores = query.CoresAreVariables
		}
		if trial%4 != 0 {
			o.Maps, o.Given = query.MapGiven, skewed(r, m, math.Pow(10, 7*r.Float64()))
		}
		net, err := reparam.Build(t.Context(), m, o)
		if err != nil {
			continue // a number beyond float64 in a form that keeps no exponent
		}
		s := query.Settings{Components: 1 + trial%3, Seed: uint64(trial)}
		holds(t, fmt.Sprintf("%d: %s, %s", trial, o.Maps, o.Cores), oracle.Z(m, factorgraph.Evidence{}), answerLearned(t, net, s))
	}
}

// extreme moves some numbers of tables to the ends of float64.
func extreme(r *rand.Rand, m *factorgraph.Model, kind int) {
	for _, f := range m.Factors {
		var list []float64
		switch table := f.Table.(type) {
		case *tensor.Dense:
			list = table.Data
		case *tensor.CP:
			for _, v := range table.Vectors {
				list = append(list, v...) // a copy: its vectors are left as they are
			}
		}
		for i := range list {
			switch {
			case kind == 1:
				list[i] = math.Ldexp(list[i], -1070)
			case kind == 2:
				list[i] = math.Ldexp(list[i], 1020)
			case kind == 3 && r.IntN(2) == 0:
				list[i] = math.Ldexp(list[i], -r.IntN(80))
			}
		}
	}
}

// skewed are random maps of about this condition number.
func skewed(r *rand.Rand, m *factorgraph.Model, condition float64) func(factor int) []reparam.GivenMap {
	return func(factor int) []reparam.GivenMap {
		var list []reparam.GivenMap
		for _, v := range m.Factors[factor].Scope {
			d := m.Domains[v]
			a := make([]float64, d*d)
			common := r.NormFloat64()
			for i := range a {
				a[i] = common + r.NormFloat64()*(1/condition+float64(i%d%2)) // even columns are nearly equal
			}
			list = append(list, reparam.GivenMap{A: a})
		}
		return list
	}
}

// TestCertificatesHoldWhereTermsCancel: two terms of a core that is too large to be written out nearly cancel.
func TestCertificatesHoldWhereTermsCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 2))
	for trial := range 30 {
		m, z := cancelling(r, 17)
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
			net, err := reparam.Build(t.Context(), m, reparam.Options{Maps: maps})
			if err != nil {
				t.Fatal(err)
			}
			s := query.Settings{Components: 1 + trial%2}
			holds(t, fmt.Sprintf("%d: %s", trial, maps), z, answerLearned(t, net, s))
		}
	}
}

// cancelling is Σ_x (⊗a − ⊗a′)(x) Π w(x), a′ near a, with its Z in large numbers.
func cancelling(r *rand.Rand, n int) (*factorgraph.Model, *big.Float) {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
	m := &factorgraph.Model{Domains: make([]int, n)}
	core := &tensor.CP{Shape: m.Domains, Weights: []float64{1, -1}}
	off := math.Pow(10, -6-4*r.Float64())
	scope, terms := make([]int, n), []*big.Float{number(1), number(-1)}
	for v := range n {
		m.Domains[v], scope[v] = 2, v
		a, b := r.Float64(), r.Float64()
		vectors, w := []float64{a, b, a * (1 + off*r.Float64()), b * (1 - off*r.Float64())}, []float64{r.Float64(), r.Float64()}
		core.Vectors = append(core.Vectors, vectors)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: w}})
		for k, term := range terms {
			first := number(0).Mul(number(vectors[2*k]), number(w[0]))
			term.Mul(term, first.Add(first, number(0).Mul(number(vectors[2*k+1]), number(w[1]))))
		}
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: core})
	return m, terms[0].Add(terms[0], terms[1])
}

// TestLearnedComponentsOfSmallGraphs: complete graphs of six spins, weak to strong, in the gauge of belief propagation and others.
func TestLearnedComponentsOfSmallGraphs(t *testing.T) {
	for seed := range uint64(nightly.Rounds(3, 6)) {
		for _, delta := range []float64{0.5, 2, 5} {
			m, err := generate.Complete(6, generate.Ising{Delta: delta, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			z := oracle.Z(m, factorgraph.Evidence{})
			for _, components := range []int{1, 3} {
				s := query.Settings{Components: components}
				net, err := bp.GaugedNetwork(t.Context(), m, query.CoresAreFactors, bp.Options{})
				if err != nil {
					t.Fatal(err)
				}
				holds(t, fmt.Sprintf("bp, %v, %d, %d", delta, seed, components), z, answerLearned(t, net, s))
				if net, err = reparam.Build(t.Context(), m, reparam.Options{Maps: query.MapOrthogonal}); err != nil {
					t.Fatal(err)
				}
				holds(t, fmt.Sprintf("orthogonal, %v, %d, %d", delta, seed, components), z, answerLearned(t, net, s))
			}
		}
	}
}
