package regions

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// attractive returns a strongly attractive 3-regular graph of 16 spins with its network and the states that belief propagation ends in.
func attractive(t *testing.T, seed uint64) (*factorgraph.Model, *btn.Network, []*bp.State) {
	t.Helper()
	m, err := generate.RandomRegular(16, 3, generate.Ising{Delta: 3, Attractive: true, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	net, e := lowered(t, m)
	states, err := bp.Propagate(t.Context(), e, bp.PropagateOptions{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m, net, states
}

// TestSumOverPhases: on strongly attractive graphs regions are right but for the phases they do not stand on; with all phases ln Z and
// the marginals come near enumeration.
func TestSumOverPhases(t *testing.T) {
	summed := 0
	for seed := range uint64(8) {
		m, net, states := attractive(t, seed)
		phases := bp.Phases(states, phaseOverlap)
		if len(phases) != 2 {
			continue
		}
		summed++
		lnZ, marginals := enumerated(m)
		var messages []float64
		for _, s := range phases {
			messages = append(messages, s.Messages()...)
		}
		one, oneMarginals := corrected(t, net, messages[:len(messages)/2])
		both, bothMarginals := corrected(t, net, messages)
		if far, before := math.Abs(both-lnZ), math.Abs(one-lnZ); far > before/3 || far > 0.15 {
			t.Errorf("seed %d: ln Z is off by %.3g with both phases, by %.3g with one", seed, far, before)
		}
		second := 1 / (1 + math.Exp(phases[0].LnZ()-phases[1].LnZ())) // its weight
		_, e := lowered(t, m)
		for v, row := range bothMarginals {
			for x, p := range row {
				if want := (1-second)*oneMarginals[v][x] + second*phases[1].Belief(e.Variables[v])[x]; math.Abs(p-want) > 1e-9 {
					t.Errorf("seed %d: variable %d has value %d with %v, %v by both phases", seed, v, x, p, want)
				}
			}
		}
		if far, before := apart(bothMarginals, marginals), apart(oneMarginals, marginals); far > before/3 {
			t.Errorf("seed %d: marginals are off by %.3g with both phases, by %.3g with one", seed, far, before)
		}
	}
	if summed < 3 {
		t.Errorf("%d graphs have two phases", summed)
	}
}

// TestMessagesOfAnotherNetwork: twice as many numbers that are no two fixed points are not taken for phases.
func TestMessagesOfAnotherNetwork(t *testing.T) {
	m, net, states := attractive(t, 1)
	_, e := lowered(t, m)
	own := states[0].Messages()
	other := slices.Repeat([]float64{0.5}, len(own))
	for name, messages := range map[string][]float64{
		"no fixed point": slices.Concat(own, other), "half of one": slices.Concat(own, other[:len(own)/2]),
	} {
		if _, err := restore(e, messages); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
		p := problem.New(net, problem.Options{})
		p.Messages = messages
		g, err := ProblemGround(t.Context(), p, 0)
		if err != nil || g.Phases != nil || g.State == nil {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// corrected returns ln Z and the marginals of small balls in the gauge of messages. Both ways to contract agree.
func corrected(t *testing.T, net *btn.Network, messages []float64) (lnZ float64, marginals [][]float64) {
	t.Helper()
	p := problem.New(net, problem.Options{})
	p.Messages = messages
	q := &Regions{Kind: region.Balls, Size: 2, To: WholeShare}
	v, err := q.Contract(t.Context(), p, btn.Want{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := q.Contract(t.Context(), p, btn.Want{Marginals: true})
	if err != nil {
		t.Fatal(err)
	}
	if v.Region.LnBethe != m.Region.LnBethe || v.Region.Regions < 2 {
		t.Fatalf("%+v without marginals, %+v with them", v.Region, m.Region)
	}
	at := 0
	for _, d := range contraction.Domains(net) {
		row := m.Marginals.Mant[at:][:d]
		at += d
		sum := 0.0
		for _, x := range row {
			sum += x
		}
		total, want := math.Log(sum)+float64(m.Marginals.Exp)*math.Ln2, m.Region.LnBethe+m.Region.LnSum
		if math.Abs(total-want) > 1e-9*(1+math.Abs(want)) {
			t.Errorf("a variable's values weigh e^%v together, not e^%v", total, want)
		}
		own := make([]float64, d)
		for a, x := range row {
			own[a] = x / sum
		}
		marginals = append(marginals, own)
	}
	return v.Region.LnBethe + v.Region.LnSum, marginals
}

// enumerated returns ln Z and the marginals of a model of spins.
func enumerated(m *factorgraph.Model) (lnZ float64, marginals [][]float64) {
	n := len(m.Domains)
	marginals = make([][]float64, n)
	for v := range marginals {
		marginals[v] = make([]float64, 2)
	}
	tables := make([][]float64, len(m.Factors))
	for k, f := range m.Factors {
		tables[k] = f.Table.(*tensor.Dense).Data
	}
	total := 0.0
	for x := range 1 << n {
		weight := 1.0
		for k, f := range m.Factors {
			at := 0
			for _, v := range f.Scope {
				at = at<<1 | x>>v&1
			}
			weight *= tables[k][at]
		}
		total += weight
		for v := range marginals {
			marginals[v][x>>v&1] += weight
		}
	}
	for _, row := range marginals {
		row[0], row[1] = row[0]/total, row[1]/total
	}
	return math.Log(total), marginals
}

// apart returns the largest distance of two lists of marginals.
func apart(a, b [][]float64) (far float64) {
	for v := range a {
		for x := range a[v] {
			far = max(far, math.Abs(a[v][x]-b[v][x]))
		}
	}
	return far
}
