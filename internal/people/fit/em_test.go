package fit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// network draws a Bayesian network of variables with 2 or 3 states and up to 2 parents each, the table of each the last of its scope.
func network(rng *rand.Rand, variables int) *factorgraph.Model {
	m := &factorgraph.Model{}
	for v := range variables {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
		m.Names = append(m.Names, fmt.Sprintf("x%d", v))
		m.States = append(m.States, []string{"a", "b", "c"}[:m.Domains[v]])
		scope := rng.Perm(v)[:min(v, rng.IntN(3))]
		shape, size := []int{}, 1
		for _, u := range append(scope, v) {
			shape, size = append(shape, m.Domains[u]), size*m.Domains[u]
		}
		data := make([]float64, size)
		for from := 0; from < size; from += m.Domains[v] {
			total := 0.0
			for x := range m.Domains[v] {
				if data[from+x] = rng.ExpFloat64(); x > 0 && rng.Float64() < 0.1 {
					data[from+x] = 0
				}
				total += data[from+x]
			}
			for x := range m.Domains[v] {
				data[from+x] /= total
			}
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(scope, v), Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	return m
}

// hide empties the columns of some variables.
func hide(text string, hidden ...int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines[1:] {
		cells := strings.Split(lines[i+1], ",")
		for _, v := range hidden {
			cells[v] = ""
		}
		lines[i+1] = strings.Join(cells, ",")
	}
	return strings.Join(lines, "\n") + "\n"
}

// climbed is EM by enumeration, for so many iterations.
func climbed(m *factorgraph.Model, d *Data, pseudocount float64, iterations int) *factorgraph.Model {
	for range iterations {
		counts, _ := enumerated(m, d)
		next := *m
		next.Factors = nil
		for f, factor := range m.Factors {
			was := factor.Table.(*tensor.Dense)
			now := make([]float64, len(was.Data))
			values := was.Shape[len(was.Shape)-1]
			for from := 0; from < len(now); from += values {
				total := 0.0
				for k := from; k < from+values; k++ {
					if was.Data[k] > 0 {
						now[k] = counts[f][k] + pseudocount
						total += now[k]
					}
				}
				for k := from; k < from+values; k++ {
					if total > 0 {
						now[k] /= total
					} else {
						now[k] = was.Data[k]
					}
				}
			}
			next.Factors = append(next.Factors, factorgraph.Factor{Scope: factor.Scope, Table: &tensor.Dense{Shape: was.Shape, Data: now}})
		}
		m = &next
	}
	return m
}

// TestRandomFits: the likelihood of random networks and cases never falls, and the tables are those of EM by enumeration. FITS is their
// number.
func TestRandomFits(t *testing.T) {
	fits, _ := strconv.Atoi(os.Getenv("FITS"))
	if fits == 0 {
		fits = 40
	}
	for seed := range uint64(fits) {
		rng := rand.New(rand.NewPCG(seed, 81))
		m := network(rng, 2+rng.IntN(5))
		_, text := sample(m, 5+rng.IntN(150), []float64{0, 0.2, 0.6}[seed%3], seed)
		if seed%2 == 0 {
			text = hide(text, rng.IntN(len(m.Domains)))
		}
		d, err := data(t, m, text)
		if err != nil {
			t.Fatal(err)
		}
		last := math.Inf(-1)
		pseudocount := []float64{0, 0.3}[seed/2%2]
		iterations := 1 + rng.IntN(8)
		isPerturbed := false
		got, _, err := Run(context.Background(), &direct{}, wire.Request{Job: "r"}, m, d, Options{
			Iterations: iterations, Pseudocount: pseudocount, Tolerance: -1,
			OnNote: func(string) { isPerturbed, last = true, math.Inf(-1) },
			OnStep: func(s Step) {
				if s.Objective < last-1e-9*(1+math.Abs(last)) {
					t.Errorf("seed %d, iteration %d: %v after %v", seed, s.Iteration, s.Objective, last)
				}
				last = s.Objective
			},
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if isPerturbed {
			continue
		}
		want := climbed(m, d, pseudocount, iterations)
		for f := range want.Factors {
			a, b := got.Factors[f].Table.(*tensor.Dense).Data, want.Factors[f].Table.(*tensor.Dense).Data
			for k := range b {
				if math.Abs(a[k]-b[k]) > 1e-9 {
					t.Errorf("seed %d, factor %d, entry %d: %v, enumeration %v", seed, f, k, a[k], b[k])
				}
			}
		}
	}
}

// hidden is a class of two states with three children, and rows of the children that are drawn from planted tables.
func hidden(t *testing.T) (uniform, planted *factorgraph.Model, d *Data) {
	t.Helper()
	table := func(shape []int, data ...float64) tensor.Tensor {
		return &tensor.Dense{Shape: shape, Data: data}
	}
	model := func(class float64, rows ...float64) *factorgraph.Model {
		m := &factorgraph.Model{Factors: []factorgraph.Factor{{Scope: []int{0}, Table: table([]int{2}, class, 1-class)}}}
		m.Domains, m.Names, m.States = []int{2}, []string{"class"}, [][]string{{"a", "b"}}
		for k := 0; k < len(rows); k += 2 {
			m.Domains, m.Names = append(m.Domains, 2), append(m.Names, fmt.Sprintf("x%d", k/2))
			m.States = append(m.States, []string{"yes", "no"})
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0, 1 + k/2},
				Table: table([]int{2, 2}, rows[k], 1-rows[k], rows[k+1], 1-rows[k+1])})
		}
		return m
	}
	planted = model(0.3, 0.8, 0.1, 0.7, 0.15, 0.6, 0.05)
	_, text := sample(planted, 3000, 0, 5)
	d, err := data(t, planted, hide(text, 0))
	if err != nil {
		t.Fatal(err)
	}
	return model(0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5), planted, d
}

// TestSymmetricTablesAreLeft: EM from tables in which the states of a hidden variable are alike is perturbed, says so, and ends as likely
// as EM from the planted tables; so does EM that leaves nearly symmetric ones too slowly. A variable that some case observes is not
// perturbed.
func TestSymmetricTablesAreLeft(t *testing.T) {
	uniform, planted, d := hidden(t)
	run := func(m *factorgraph.Model, d *Data, o Options) (Report, []string) {
		t.Helper()
		var said []string
		o.OnNote = func(text string) { said = append(said, text) }
		o.Iterations, o.Tolerance = 500, 1e-7
		_, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "h"}, m, d, o)
		if err != nil {
			t.Fatal(err)
		}
		return r, said
	}
	want, said := run(planted, d, Options{})
	if len(said) > 0 {
		t.Errorf("from the planted tables: %q", said)
	}
	got, said := run(uniform, d, Options{})
	if len(said) != 1 || !strings.Contains(said[0], `"class"`) || !strings.Contains(said[0], "--seed") {
		t.Errorf("it says %q", said)
	}
	if math.Abs(got.Ln-want.Ln) > 0.05 {
		t.Errorf("ln likelihood %v from symmetric tables, %v from the planted ones", got.Ln, want.Ln)
	}
	again, _ := run(uniform, d, Options{})
	if again.Ln != got.Ln {
		t.Errorf("ln likelihood %v, again %v", got.Ln, again.Ln)
	}

	nearly := *uniform
	nearly.Factors = append([]factorgraph.Factor{}, uniform.Factors...)
	for f := 1; f < 4; f++ {
		nearly.Factors[f].Table = &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.50001, 0.49999, 0.49999, 0.50001}}
	}
	slow, said := run(&nearly, d, Options{})
	if math.Abs(slow.Ln-want.Ln) > 0.05 || len(said) != 1 || !strings.Contains(said[0], "after iteration") {
		t.Errorf("from nearly symmetric tables: ln likelihood %v, want %v; %q", slow.Ln, want.Ln, said)
	}

	// a certain class: the other state gets no case, and there is nothing to tell apart
	certain := *uniform
	certain.Factors = append([]factorgraph.Factor{}, uniform.Factors...)
	certain.Factors[0].Table = &tensor.Dense{Shape: []int{2}, Data: []float64{1, 0}}
	if _, said := run(&certain, d, Options{}); len(said) > 0 {
		t.Errorf("a state of probability 0: %q", said)
	}

	_, text := sample(planted, 50, 0, 6)
	seen, err := data(t, planted, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, said := run(uniform, seen, Options{}); len(said) > 0 {
		t.Errorf("an observed variable: %q", said)
	}
}

// TestStarts: the most likely end of several starts is kept, each start is as it is alone, and the first is as without.
func TestStarts(t *testing.T) {
	_, planted, d := hidden(t)
	run := func(o Options) (*factorgraph.Model, Report) {
		t.Helper()
		o.Iterations, o.Tolerance = 12, 1e-9
		m, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "s"}, planted, d, o)
		if err != nil {
			t.Fatal(err)
		}
		return m, r
	}
	m, all := run(Options{Seed: 4, Starts: 4})
	best := math.Inf(-1)
	for k, s := range all.Starts {
		alone, r := run(Options{Seed: 4 + uint64(k)})
		if s.Ln != r.Ln || s.Seed != 4+uint64(k) || s.Iteration != r.Iteration {
			t.Errorf("start %d: %+v, alone %+v", k, s, r)
		}
		if r.Ln > best {
			best = r.Ln
			if all.Ln == best && !reflect.DeepEqual(m, alone) {
				t.Errorf("the tables are not those of start %d", k)
			}
		}
	}
	if len(all.Starts) != 4 || all.Ln != best {
		t.Errorf("%d starts, the best has %v, kept is %v", len(all.Starts), best, all.Ln)
	}
}

// TestResumedFitsHaveTheSameBits: a fit that is interrupted after every iteration and goes on from the file ends as one that is not;
// states of other tables are refused.
func TestResumedFitsHaveTheSameBits(t *testing.T) {
	uniform, _, d := hidden(t)
	options := Options{Iterations: 40, Tolerance: 1e-6, Starts: 2}
	want, report, err := Run(context.Background(), &direct{}, wire.Request{Job: "w"}, uniform, d, options)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fit.run")
	for runs := 0; ; runs++ {
		ctx, interrupt := context.WithCancel(context.Background())
		o := options
		if o.Resume, err = LoadState(path, "digest"); err != nil {
			t.Fatal(err)
		}
		o.Save = func(s *State) error {
			var b bytes.Buffer
			if err := WriteState(&b, "digest", s); err != nil {
				return err
			}
			interrupt()
			return os.WriteFile(path, b.Bytes(), 0o600)
		}
		got, r, err := Run(ctx, &direct{}, wire.Request{Job: "g"}, uniform, d, o)
		interrupt()
		if errors.Is(err, context.Canceled) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(r, report) || runs < 10 {
			t.Errorf("%+v after %d runs, %+v in one", r, runs, report)
		}
		break
	}

	if _, err := LoadState(path, "another"); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "another model") {
		t.Errorf("the state of another run: %v", err)
	}
	s, err := LoadState(path, "digest")
	if err != nil {
		t.Fatal(err)
	}
	s.Best.Tables = s.Best.Tables[:2]
	o := options
	o.Resume = s
	if _, _, err := Run(t.Context(), &direct{}, wire.Request{Job: "o"}, uniform, d, o); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("a state of other tables: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"run": "digest", "state": `), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadState(path, "digest"); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("half a file: %v", err)
	}
	if s, err := LoadState(path+".none", "digest"); s != nil || err != nil {
		t.Errorf("no file: %v, %v", s, err)
	}
}

// TestReadingEndsWithItsContext: cases are read no further once nobody wants them.
func TestReadingEndsWithItsContext(t *testing.T) {
	m := asia(t)
	labels, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cases.NewReader(strings.NewReader(m.Names[0]+"\n"+strings.Repeat("no\n", 10)), labels, cases.Columns{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if d, err := Read(ctx, in); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestAJobAnswersWithOneSum: an iteration is a few jobs of one query each, whose answers do not grow with the cases.
func TestAJobAnswersWithOneSum(t *testing.T) {
	m := asia(t)
	_, text := sample(m, 3000, 0.3, 8)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	p := &direct{}
	var counted float64
	if _, _, err := Run(context.Background(), p, wire.Request{Job: "j"}, m, d,
		Options{Iterations: 1, OnProgress: func(_ int, weight float64) { counted = max(counted, weight) }}); err != nil {
		t.Fatal(err)
	}
	if len(p.jobs) != 2*targetJobs || counted != 3000 {
		t.Errorf("%d jobs of two iterations, %v rows counted", len(p.jobs), counted)
	}
	for id, job := range p.jobs {
		if len(job.Queries) != 1 || len(job.Queries[0].Cases.Rows) > d.Distinct()/targetJobs+1 {
			t.Errorf("%s has %d queries", id, len(job.Queries))
		}
	}
}

// TestErrorsNameTheRow of the file, not the case of a job.
func TestErrorsNameTheRow(t *testing.T) {
	p := &jobPart{cases: []weightedCase{{row: 7}, {row: 1234}}}
	if got := p.nameRows("contract: case 1: no order fits"); got != "contract: row 1234: no order fits" {
		t.Error(got)
	}
	m := asia(t)
	header := strings.Join(m.Names, ",") + "\n"
	var b strings.Builder
	b.WriteString(header)
	_, text := sample(m, 500, 0.5, 3)
	b.WriteString(strings.TrimPrefix(text, header))
	cells := make([]string, len(m.Names))
	for v, name := range m.Names {
		cells[v] = map[string]string{"lung": "yes", "either": "no"}[name]
	}
	b.WriteString(strings.Join(cells, ",") + "\n")
	d, err := data(t, m, b.String())
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Run(context.Background(), &direct{}, wire.Request{Job: "e"}, m, d, Options{Iterations: 1})
	if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "row 501 has probability 0") {
		t.Errorf("%v", err)
	}
}

// TestStatesAreJSON: a state is read back to the last bit.
func TestStatesAreJSON(t *testing.T) {
	last := -1.0 / 3
	s := State{Start: 1, Iteration: 2, Tables: [][]float64{{0.1, 0.9}, {1e-300}}, Last: &last, Perturbed: true,
		Before: &Outcome{Start: Start{Step: Step{Ln: -2.0 / 3}, Seed: 1 << 63, Converged: true}, Tables: [][]float64{{1}}}}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back State
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, s) {
		t.Errorf("%+v, %v", back, err)
	}
}
