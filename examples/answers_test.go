// The answers of README.md, each by a computation that shares nothing with the system: enumeration, a transfer matrix,
// counting polynomials in math/big, bucket elimination.

package examples

import (
	"fmt"
	"math"
	"math/big"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// lnTolerance bounds the rounding of a sum of a few thousand products; README.md has ten decimals.
const lnTolerance = 1e-10

func evidence(t *testing.T, name string, m *factorgraph.Model) factorgraph.Evidence {
	t.Helper()
	if name == "" {
		return factorgraph.Evidence{}
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := uai.ReadEvidence(f, m.Domains)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

func TestAnswers(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model, evidence string
		solve           func(*factorgraph.Model, factorgraph.Evidence) float64
	}{
		{"asia.uai", "", enumerate},
		{"asia.uai", "asia-dyspnoea.evid", enumerate},
		{"asia.uai", "asia-visit-dyspnoea.evid", enumerate},
		{"asia.uai", "asia-smoker-xray.evid", enumerate},
		{"asia.json", "", enumerate},
		{"alarm.uai", "", eliminate},
		{"alarm.uai", "alarm-low-pressure.evid", eliminate},
		{"alarm.uai", "alarm-no-breath.evid", eliminate},
		{"grid8x8.uai", "", func(*factorgraph.Model, factorgraph.Evidence) float64 { return drawGrid().transfer() }},
		{"grid8x8.uai", "", eliminate},
		{"exactly-k.json", "", func(*factorgraph.Model, factorgraph.Evidence) float64 { return exactlyLog(drawExactly()) }},
		{"curie-weiss.json", "", func(*factorgraph.Model, factorgraph.Evidence) float64 {
			return curieWeissSum(drawCurieWeiss())
		}},
		{"friends.json", "", friendsLog},
		{"friends.json", "friends-known.evid", friendsLog},
	} {
		m := load(t, c.model)
		got := c.solve(m, evidence(t, c.evidence, m))
		row := fmt.Sprintf("| `%s` | %s |", c.model, orDash(c.evidence))
		want, ok := answer(string(readme), row)
		if !ok {
			t.Errorf("README.md has no row %s; ln Z is %.10f", row, got)
		} else if math.Abs(got-want) > lnTolerance {
			t.Errorf("%s %s: ln Z is %.12f, README.md says %.10f", c.model, c.evidence, got, want)
		}
	}
}

// TestNamesAddNothing: asia.json is asia.uai, with names.
func TestNamesAddNothing(t *testing.T) {
	with, without := load(t, "asia.json"), load(t, "asia.uai")
	if len(with.Names) != 8 || len(with.States) != 8 {
		t.Fatalf("names %q, states %q", with.Names, with.States)
	}
	with.Names, with.States = nil, nil
	with.Lines, without.Lines = nil, nil
	if !reflect.DeepEqual(with, without) {
		t.Errorf("%+v and %+v", with, without)
	}
}

func orDash(evidence string) string {
	if evidence == "" {
		return "–"
	}
	return "`" + evidence + "`"
}

// answer finds the number after a row's first cells.
func answer(readme, row string) (v float64, ok bool) {
	_, rest, found := strings.Cut(readme, row)
	if !found {
		return 0, false
	}
	_, err := fmt.Sscan(rest, &v)
	return v, err == nil
}

// The marginals that are quoted for the network of Lauritzen and Spiegelhalter (1988), to their printed digits.
func TestAsiaMarginals(t *testing.T) {
	m := load(t, "asia.uai")
	for v, want := range map[int]float64{0: 0.01, 1: 0.0104, 2: 0.5, 3: 0.055, 4: 0.45, 5: 0.0648, 6: 0.1103, 7: 0.4360} {
		if p := math.Exp(enumerate(m, factorgraph.Observe(map[int]int{v: 1}))); math.Abs(p-want) > 5e-5 {
			t.Errorf("P(X_%d = yes) = %.6f, published %.4f", v, p, want)
		}
	}
}

// Every factor of the two Bayesian networks is a conditional table of its last variable, one per variable, so
// Z = 1; and ALARM has the 37 nodes, 46 arcs and 509 free parameters it is known for.
func TestBayesianNetworks(t *testing.T) {
	for _, c := range []struct {
		name                  string
		nodes, arcs, freedoms int
	}{{"asia.uai", 8, 8, 18}, {"alarm.uai", 37, 46, 509}} {
		m := load(t, c.name)
		child := map[int]bool{}
		arcs, freedoms := 0, 0
		for j, f := range m.Factors {
			last := f.Scope[len(f.Scope)-1]
			child[last] = true
			arcs += len(f.Scope) - 1
			data, d := f.Table.(*tensor.Dense).Data, m.Domains[last]
			freedoms += len(data) / d * (d - 1)
			for i := 0; i < len(data); i += d {
				sum := 0.0
				for _, p := range data[i : i+d] {
					sum += p
				}
				if math.Abs(sum-1) > 1e-15*float64(d) {
					t.Errorf("%s: factor %d, row %d sums to %v", c.name, j, i/d, sum)
				}
			}
		}
		if len(child) != c.nodes || len(m.Factors) != c.nodes || arcs != c.arcs || freedoms != c.freedoms || !m.Bayes {
			t.Errorf("%s: %d children of %d factors, %d arcs, %d free parameters",
				c.name, len(child), len(m.Factors), arcs, freedoms)
		}
	}
}

// enumerate returns ln Z of a model of tables over binary variables by visiting all assignments.
func enumerate(m *factorgraph.Model, e factorgraph.Evidence) float64 {
	z := 0.0
next:
	for x := range 1 << len(m.Domains) {
		for _, o := range e.Hard {
			if x>>o.Var&1 != o.Value {
				continue next
			}
		}
		p := 1.0
		for _, f := range m.Factors {
			i := 0
			for _, v := range f.Scope {
				i = i<<1 | x>>v&1
			}
			p *= f.Table.(*tensor.Dense).Data[i]
		}
		z += p
	}
	return math.Log(z)
}

// transfer sums the grid spin by spin: the state is the last row's width of spins, 2^columns numbers.
func (g grid) transfer() float64 {
	weight := []float64{1} // by the spins so far, at most the last `columns` of them
	total, n := 0.0, g.rows*g.columns
	spin := func(bit int) float64 { return float64(2*bit - 1) }
	for i := range n {
		known := min(i, g.columns)
		next := make([]float64, 1<<min(i+1, g.columns))
		for state, w := range weight {
			for bit := range 2 {
				energy := g.field[i] * spin(bit)
				if i%g.columns > 0 {
					energy += g.right[i-1] * spin(bit) * spin(state&1)
				}
				if i >= g.columns {
					energy += g.down[i-g.columns] * spin(bit) * spin(state>>(known-1)&1)
				}
				next[(state<<1|bit)&(len(next)-1)] += w * math.Exp(energy)
			}
		}
		largest := 0.0
		for _, w := range next {
			largest = max(largest, w)
		}
		for s := range next {
			next[s] /= largest
		}
		total += math.Log(largest)
		weight = next
	}
	sum := 0.0
	for _, w := range weight {
		sum += w
	}
	return total + math.Log(sum)
}

// countPolynomial returns Π_i (off_i + on_i z) in math/big.
func countPolynomial(off, on []float64) []*big.Float {
	p := []*big.Float{exact(1)}
	for i := range on {
		next := make([]*big.Float, len(p)+1)
		for c := range next {
			next[c] = exact(0)
			if c < len(p) {
				next[c].Add(next[c], exact(0).Mul(p[c], exact(off[i])))
			}
			if c > 0 {
				next[c].Add(next[c], exact(0).Mul(p[c-1], exact(on[i])))
			}
		}
		p = next
	}
	return p
}

func exact(x float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(x) }

// lnBig returns ln f of a positive number of any range.
func lnBig(f *big.Float) float64 {
	mant := new(big.Float)
	exp := f.MantExp(mant)
	m, _ := mant.Float64()
	return math.Log(m) + float64(exp)*math.Ln2
}

func exactlyLog(w []float64) float64 {
	off := make([]float64, len(w))
	for i := range off {
		off[i] = 1
	}
	return lnBig(countPolynomial(off, w)[exactlyCount])
}

// curieWeissSum returns ln Σ_c exp(βJ M²/2n) [z^c] Π_i (e^{−h_i} + e^{h_i} z).
func curieWeissSum(h []float64) float64 {
	off, on := make([]float64, len(h)), make([]float64, len(h))
	for i, v := range h {
		off[i], on[i] = math.Exp(-v), math.Exp(v)
	}
	logs := make([]float64, len(h)+1)
	top := math.Inf(-1)
	for c, p := range countPolynomial(off, on) {
		logs[c] = lnBig(p) + curieWeissLog(len(h), c)
		top = max(top, logs[c])
	}
	sum := 0.0
	for _, l := range logs {
		sum += math.Exp(l - top)
	}
	return top + math.Log(sum)
}
