package fit

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// direct answers jobs by infer.Run.
type direct struct {
	mu   sync.Mutex
	jobs map[string]wire.Request
}

func (d *direct) Submit(_ context.Context, m wire.Request) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.jobs == nil {
		d.jobs = map[string]wire.Request{}
	}
	d.jobs[m.Job] = m
	return "", nil
}

func (d *direct) WaitTelling(ctx context.Context, job string, _ func(error)) (*wire.Answer, error) {
	d.mu.Lock()
	m := d.jobs[job]
	d.mu.Unlock()
	model, err := m.Model.Decode()
	if err != nil {
		return nil, err
	}
	results, err := infer.Run(ctx, infer.Request{Job: job, Model: model, Queries: m.Queries, Settings: m.Settings})
	return &wire.Answer{Job: job, Status: wire.StatusOK, Results: results}, err
}

func (*direct) Cancel(context.Context, string, string) error { return nil }

func asia(t *testing.T) *factorgraph.Model {
	t.Helper()
	f, err := os.Open("../../../examples/asia.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := modeljson.Decode(f, modeljson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func data(t *testing.T, m *factorgraph.Model, text string) (*Data, error) {
	t.Helper()
	labels, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cases.NewReader(strings.NewReader(text), labels, cases.Columns{})
	if err != nil {
		t.Fatal(err)
	}
	return Read(t.Context(), in)
}

// sample draws so many rows of a network whose factors are tables of the last variable of their scope, and hides cells.
func sample(m *factorgraph.Model, rows int, missing float64, seed uint64) (whole [][]int, text string) {
	rng := rand.New(rand.NewPCG(seed, 9))
	var b strings.Builder
	b.WriteString(strings.Join(m.Names, ",") + "\n")
	for range rows {
		x := make([]int, len(m.Domains))
		done := make([]bool, len(x))
		for left := len(x); left > 0; {
			for _, f := range m.Factors {
				child := f.Scope[len(f.Scope)-1]
				ready := !done[child]
				at := 0
				for k, v := range f.Scope[:len(f.Scope)-1] {
					ready = ready && done[v]
					at = at*f.Table.Dims()[k] + x[v]
				}
				if !ready {
					continue
				}
				d := m.Domains[child]
				u := rng.Float64()
				for v := range d {
					x[child] = v
					if u -= f.Table.(*tensor.Dense).Data[at*d+v]; u < 0 {
						break
					}
				}
				done[child] = true
				left--
			}
		}
		whole = append(whole, x)
		cells := make([]string, len(x))
		for v := range x {
			if rng.Float64() >= missing {
				cells[v] = m.States[v][x[v]]
			}
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	return whole, b.String()
}

// entry is where an assignment is in factor f.
func entry(m *factorgraph.Model, f int, x []int) int {
	at := 0
	for _, v := range m.Factors[f].Scope {
		at = at*m.Domains[v] + x[v]
	}
	return at
}

// enumerated adds up, over all assignments of every case, expected counts by factor, and the likelihood.
func enumerated(m *factorgraph.Model, d *Data) (counts [][]float64, ln float64) {
	states := 1
	for _, n := range m.Domains {
		states *= n
	}
	assignments, p := make([][]int, states), make([]float64, states)
	for s := range states {
		x := make([]int, len(m.Domains))
		rest := s
		for v := len(x) - 1; v >= 0; v-- {
			x[v] = rest % m.Domains[v]
			rest /= m.Domains[v]
		}
		assignments[s], p[s] = x, 1
		for f := range m.Factors {
			p[s] *= m.Factors[f].Table.(*tensor.Dense).Data[entry(m, f, x)]
		}
	}
	for f := range m.Factors {
		counts = append(counts, make([]float64, len(m.Factors[f].Table.(*tensor.Dense).Data)))
	}
	for _, c := range d.distinct {
		total := 0.0
		var fit []int
	next:
		for s, x := range assignments {
			for _, o := range c.observed {
				if x[o.variable] != int(o.value) {
					continue next
				}
			}
			total += p[s]
			fit = append(fit, s)
		}
		for _, s := range fit {
			for f := range m.Factors {
				counts[f][entry(m, f, assignments[s])] += c.weight * p[s] / total
			}
		}
		ln += c.weight * math.Log(total)
	}
	return counts, ln
}

// TestStepEqualsEnumeration: one iteration, with a prior and without, from the tables and from drawn rows.
func TestStepEqualsEnumeration(t *testing.T) {
	m := asia(t)
	_, text := sample(m, 300, 0.4, 1)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []float64{0, 1.5} {
		var steps []Step
		got, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "s"}, m, d,
			Options{Iterations: 1, Pseudocount: a, OnStep: func(s Step) { steps = append(steps, s) }})
		if err != nil || len(steps) != 2 || r.Tables != 8 || !r.Exact {
			t.Fatalf("%v, %+v, %+v", err, steps, r)
		}
		counts, ln := enumerated(m, d)
		if math.Abs(steps[0].Ln-ln) > 1e-8 {
			t.Errorf("ln likelihood %v, enumeration %v", steps[0].Ln, ln)
		}
		_, after := enumerated(got, d)
		if math.Abs(steps[1].Ln-after) > 1e-8 {
			t.Errorf("after a step: ln likelihood %v, enumeration %v", steps[1].Ln, after)
		}
		for f := range m.Factors {
			was, now := m.Factors[f].Table.(*tensor.Dense).Data, got.Factors[f].Table.(*tensor.Dense).Data
			values := m.Domains[m.Factors[f].Scope[len(m.Factors[f].Scope)-1]]
			for from := 0; from < len(was); from += values {
				total := 0.0
				for k := from; k < from+values; k++ {
					if was[k] > 0 {
						total += counts[f][k] + a
					}
				}
				for k := from; k < from+values; k++ {
					want := was[k]
					if total > 0 && was[k] > 0 {
						want = (counts[f][k] + a) / total
					}
					if math.Abs(now[k]-want) > 1e-9 {
						t.Errorf("prior %v, factor %d, entry %d: %v, enumeration %v", a, f, k, now[k], want)
					}
				}
			}
		}
	}
}

// TestRecoversPlantedTables: from drawn rows, with a fifth of the cells missing, to within five
// standard deviations of the sampling error; the likelihood never falls, and ends above the
// likelihood of the planted tables.
func TestRecoversPlantedTables(t *testing.T) {
	m := asia(t)
	whole, text := sample(m, 4000, 0.2, 2)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	last := math.Inf(-1)
	got, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "p"}, m, d, Options{
		Iterations: 60, Tolerance: 1e-6, Seed: 3,
		OnStep: func(s Step) {
			if s.Ln < last-1e-7 {
				t.Errorf("iteration %d: %v after %v", s.Iteration, s.Ln, last)
			}
			last = s.Ln
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, planted := enumerated(m, d); !r.Converged || r.Ln < planted {
		t.Errorf("%+v, the planted tables have %v", r, planted)
	}
	checked := 0
	for f := range m.Factors {
		scope := m.Factors[f].Scope
		values := m.Domains[scope[len(scope)-1]]
		rows := map[int]float64{}
		for _, x := range whole {
			rows[entry(m, f, x)/values]++
		}
		want, have := m.Factors[f].Table.(*tensor.Dense).Data, got.Factors[f].Table.(*tensor.Dense).Data
		for k, p := range want {
			n := rows[k/values]
			if p == 0 && have[k] != 0 {
				t.Errorf("factor %d, entry %d: %v of 0", f, k, have[k])
			}
			if n < 200 {
				continue
			}
			checked++
			if off := 5*math.Sqrt(p*(1-p)/(0.5*n)) + 0.005; math.Abs(have[k]-p) > off {
				t.Errorf("factor %d, entry %d of %.0f cases: %v, planted %v", f, k, n, have[k], p)
			}
		}
	}
	if checked < 20 {
		t.Errorf("%d entries compared", checked)
	}
}

// TestWhatCannotBeFitted: rows and models, with the place.
func TestWhatCannotBeFitted(t *testing.T) {
	m := asia(t)
	header := strings.Join(m.Names, ",") + "\n"
	left, err := data(t, m, header+"no,,,,,,,\n,,maybe,,,,,\n")
	if err != nil || left.Rows != 1 || left.SkippedRows != 1 || !strings.Contains(left.RowErrors[0].Error(), "row 2: line 3") {
		t.Errorf("a value that is none: %+v, %v", left, err)
	}
	if _, err := data(t, m, header); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("no row: %v", err)
	}

	// lung or tub excludes either = no
	at := func(name string) int {
		for v, n := range m.Names {
			if n == name {
				return v
			}
		}
		t.Fatalf("no variable %s", name)
		return 0
	}
	cells := make([]string, len(m.Names))
	cells[at("lung")], cells[at("either")] = "yes", "no"
	d, err := data(t, m, header+strings.Repeat(",", len(cells)-1)+"\n"+strings.Join(cells, ",")+"\n")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Run(context.Background(), &direct{}, wire.Request{Job: "z"}, m, d, Options{Iterations: 3})
	if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "row 2 has probability 0") {
		t.Errorf("an impossible row: %v", err)
	}

	for want, data := range map[string][]float64{
		"over no variable":    {1, 2, 3, 4},
		"tables of their own": {0.5, 0.5, 0.5, 0.5},
	} {
		table, err := factorgraph.Table([]int{2, 2}, data)
		if err != nil {
			t.Fatal(err)
		}
		two := &factorgraph.Model{Domains: []int{2, 2}}
		for range 3 {
			two.Factors = append(two.Factors, factorgraph.Factor{Scope: []int{0, 1}, Table: table})
		}
		_, _, err = Run(context.Background(), &direct{}, wire.Request{Job: "n"}, two, d, Options{Iterations: 1})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
