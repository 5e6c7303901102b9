package cases

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// model has three variables with names, and a pair of values that is impossible.
func model(t testing.TB) *factorgraph.Model {
	t.Helper()
	m := &factorgraph.Model{
		Domains: []int{2, 3, 2}, Names: []string{"smoke", "x,ray", "sick"},
		States: [][]string{{"no", "yes"}, {"clear", "spot \"A\"", "dark"}, {"no", "yes"}},
	}
	for _, f := range []struct {
		scope  []int
		shape  []int
		values []float64
	}{
		{[]int{0, 2}, []int{2, 2}, []float64{3, 1, 2, 4}},
		{[]int{1, 2}, []int{3, 2}, []float64{5, 0, 1, 2, 1, 7}},
	} {
		table, err := factorgraph.Table(f.shape, f.values)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: f.scope, Table: table})
	}
	return m
}

// direct is a pipeline that answers by infer.Run, later jobs often before earlier ones, and is full or away now and then.
type direct struct {
	m      *factorgraph.Model
	mu     sync.Mutex
	rng    *rand.Rand
	jobs   map[string]wire.Request
	under  int
	most   int
	prompt bool // never full, away or slow
	ends   bool // gone for all jobs but the first of a sweep
}

func newDirect(m *factorgraph.Model) *direct {
	return &direct{m: m, rng: rand.New(rand.NewPCG(1, 2)), jobs: map[string]wire.Request{}}
}

func (d *direct) Submit(_ context.Context, m wire.Request) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, twice := d.jobs[m.Job]; twice {
		return "", fault.New(fault.BadInput, "%w", client.ErrJobTaken)
	}
	switch n := d.rng.IntN(8); {
	case d.prompt:
	case n == 0:
		return "", fault.New(fault.Infrastructure, "%w", client.ErrFull)
	case n == 1:
		return "", fault.New(fault.Infrastructure, "no connection")
	}
	d.jobs[m.Job] = m
	if d.ends && !strings.HasSuffix(m.Job, "-z") && !strings.HasSuffix(m.Job, "-0") {
		return "", errors.New("the pipeline is gone")
	}
	d.under++
	d.most = max(d.most, d.under)
	return "", nil
}

func (d *direct) WaitTelling(ctx context.Context, job string, _ func(error)) (*wire.Answer, error) {
	d.mu.Lock()
	m := d.jobs[job]
	pause := time.Duration(d.rng.IntN(3)) * time.Millisecond
	d.mu.Unlock()
	if !d.prompt {
		time.Sleep(pause)
	}
	results, err := infer.Run(ctx, infer.Request{Job: job, Model: d.m, Queries: m.Queries, Settings: m.Settings})
	d.mu.Lock()
	d.under--
	d.mu.Unlock()
	return &wire.Answer{Job: job, Status: wire.StatusOK, Results: results}, err
}

func (*direct) Cancel(context.Context, string, string) error { return nil }

func sweep(t testing.TB, m *factorgraph.Model, targets ...int) *Sweep {
	t.Helper()
	labels, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	return &Sweep{Request: wire.Request{Job: "j"}, Domains: m.Domains, Labels: labels, Targets: targets}
}

func reader(t testing.TB, s *Sweep, text string, columns Columns) *Reader {
	t.Helper()
	in, err := NewReader(iotest.OneByteReader(strings.NewReader(text)), s.Labels, columns)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// table draws so many rows; some are wrong, some impossible.
func table(rows int) string {
	rng := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	b.WriteString("id,\"x,ray\",sick,smoke\r\n")
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	for i := range rows {
		fmt.Fprintf(&b, "\"n\n%d\",%s,%s,%s\r\n", i, pick("", "clear", "\"spot \"\"A\"\"\"", "dark", " dark "), pick("", "", "yes", "no"),
			pick("", "no", "yes", "maybe", "yes"))
	}
	return b.String()
}

// TestRowsEqualEnumeration: every row of some hundred has the posteriors of enumeration, or the
// error that belongs to it, in the order of the input, in any order of the answers.
func TestRowsEqualEnumeration(t *testing.T) {
	m := model(t)
	s := sweep(t, m, 2, 1)
	text := table(420)
	var out bytes.Buffer
	p := newDirect(m)
	done, err := s.Run(context.Background(), p, reader(t, s, "\ufeff"+text, Columns{IDs: []string{"id"}}), &out, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	in, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"row", "id", "P(sick=no)", "P(sick=yes)", "P(x,ray=clear)", `P(x,ray=spot "A")`, "P(x,ray=dark)",
		"ln_p_evidence", "exact", "error"}; !slices.Equal(got[0], want) {
		t.Errorf("header %q, want %q", got[0], want)
	}
	if len(got) != len(in) || done.Rows != int64(len(in)-1) {
		t.Fatalf("%d rows of %d, %+v", len(got), len(in), done)
	}
	if p.most > atOnce || p.most < 2 {
		t.Errorf("%d jobs at once", p.most)
	}
	of := map[string][2]int{"clear": {1, 0}, `spot "A"`: {1, 1}, "dark": {1, 2}, " dark ": {1, 2}}
	failed, impossible := 0, 0
	z0, _ := oracle.Z(m, factorgraph.Evidence{}).Float64()
	for i, row := range in[1:] {
		r := got[i+1]
		if r[0] != strconv.Itoa(i+1) || r[1] != row[0] {
			t.Fatalf("row %d is %q for %q", i+1, r, row)
		}
		observed := map[int]int{}
		if v, ok := of[row[1]]; ok {
			observed[1] = v[1]
		}
		if row[2] != "" {
			observed[2] = map[string]int{"yes": 1, "no": 0}[row[2]]
		}
		wrong := row[3] == "maybe"
		if row[3] != "" {
			observed[0] = map[string]int{"yes": 1, "no": 0}[row[3]]
		}
		reason := r[len(r)-1]
		if reason != "" {
			failed++
		}
		if wrong {
			if !strings.Contains(reason, `has no value "maybe"`) || strings.Join(r[2:9], "") != "" {
				t.Errorf("row %d with an unknown value: %q", i+1, r)
			}
			continue
		}
		z, _ := oracle.Z(m, factorgraph.Observe(observed)).Float64()
		if z == 0 {
			impossible++
			if reason != "impossible: x,ray=clear with sick=yes" || r[7] != "-inf" || r[2] != "" || r[8] != "true" {
				t.Errorf("impossible row %d: %q", i+1, r)
			}
			continue
		}
		if reason != "" || r[8] != "true" {
			t.Errorf("row %d: %q", i+1, r)
		}
		near(t, r[7], math.Log(z/z0))
		at := 2
		for _, v := range s.Targets {
			for x := range m.Domains[v] {
				want := 0.0
				if a, there := observed[v]; !there || a == x {
					both := map[int]int{v: x}
					for u, a := range observed {
						both[u] = a
					}
					zx, _ := oracle.Z(m, factorgraph.Observe(both)).Float64()
					want = zx / z
				}
				near(t, r[at], want)
				at++
			}
		}
	}
	if failed != int(done.Failed) || impossible < 5 || failed-impossible < 5 {
		t.Errorf("%d rows with an error, %d impossible, told %+v", failed, impossible, done)
	}
}

func near(t *testing.T, text string, want float64) {
	t.Helper()
	if got, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(got-want) > 1e-12 {
		t.Errorf("%q (%v), want %v", text, err, want)
	}
}

// TestGoesOnFromEveryByte: an output that was cut at any byte is resumed to the same bytes, and no row is asked twice.
func TestGoesOnFromEveryByte(t *testing.T) {
	m := model(t)
	s := sweep(t, m, 2)
	text := table(7)
	columns := Columns{IDs: []string{"id"}}
	path := filepath.Join(t.TempDir(), "out.csv")
	whole := func(cut int, want []byte) []byte {
		in := reader(t, s, text, columns)
		if want != nil {
			if err := os.WriteFile(path, want[:cut], 0o666); err != nil {
				t.Fatal(err)
			}
			content := fmt.Sprintf("{\"run\":%q}\n", s.Digest(in))
			if err := os.WriteFile(path+".run", []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		j, err := OpenJournal(path, s.Digest(in))
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		defer j.Close()
		p := newDirect(m)
		p.prompt = true
		done, err := s.Run(context.Background(), p, in, nil, j)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if done.Rows+done.Resumed != 7 {
			t.Errorf("cut at %d: %+v", cut, done)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path + ".run"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s.run is left: %v", path, err)
		}
		return b
	}
	want := whole(0, nil)
	for cut := range len(want) + 1 {
		if got := whole(cut, want); !bytes.Equal(got, want) {
			t.Fatalf("cut at %d:\n%s\nwant\n%s", cut, got, want)
		}
	}
}

// TestAnotherRunIsRefused: a file that is finished, of other targets or another input, written by somebody, or longer than the input.
func TestAnotherRunIsRefused(t *testing.T) {
	m := model(t)
	text := table(120)
	columns := Columns{IDs: []string{"id"}}
	path := filepath.Join(t.TempDir(), "out.csv")
	run := func(s *Sweep, text string, p *direct) error {
		in := reader(t, s, text, columns)
		j, err := OpenJournal(path, s.Digest(in))
		if err != nil {
			return err
		}
		defer j.Close()
		_, err = s.Run(context.Background(), p, in, nil, j)
		return err
	}
	ending := newDirect(m)
	ending.ends, ending.prompt = true, true
	if err := run(sweep(t, m, 2), text, ending); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Fatalf("a pipeline that goes away: %v", err)
	}
	half, err := os.ReadFile(path)
	if err != nil || bytes.Count(half, []byte("\"n\n")) != perJob {
		t.Fatalf("not one job was written: %v\n%s", err, half)
	}
	other := strings.Replace(text, "n\n3\"", "n\n4711\"", 1)
	settings := sweep(t, m, 2)
	settings.Request.Settings.Memory = 1 << 20
	for _, c := range []struct {
		s    *Sweep
		text string
		want string
	}{
		{sweep(t, m, 1), text, "other targets"},
		{settings, text, "other targets, columns or settings"},
		{sweep(t, m, 2), other, "the input is another one"},
		{sweep(t, m, 2), strings.Join(strings.SplitAfter(text, "\r\n")[:3], ""), "more rows than the input"},
	} {
		if err := run(c.s, c.text, newDirect(m)); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, half) {
			t.Fatalf("a refused run (%s) changed the file", c.want)
		}
	}
	s := sweep(t, m, 2)
	in := reader(t, s, text, columns)
	j, err := OpenJournal(path, s.Digest(in))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(path, s.Digest(in)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("the file of another process: %v", err)
	}
	j.Close()
	if err := run(s, text, newDirect(m)); err != nil {
		t.Fatal(err)
	}
	if err := run(s, text, newDirect(m)); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "not of an unfinished run") {
		t.Errorf("a finished file: %v", err)
	}
}

// TestColumnsThatAreNone: an error in the header names the column; an error in a row ends nothing.
func TestColumnsThatAreNone(t *testing.T) {
	s := sweep(t, model(t), 2)
	for _, c := range []struct {
		text    string
		columns Columns
		want    string
	}{
		{"", Columns{}, "there is no header"},
		{"smok,sick\n", Columns{}, `column 1: no variable "smok"`},
		{"smok,sick\n", Columns{}, "smoke"},
		{"smoke,0\n", Columns{}, `columns 1 and 2 are both variable "smoke"`},
		{"smoke,id\n", Columns{IDs: []string{"id", "name"}}, `no column called "name"`},
		{"smoke,id,id\n", Columns{IDs: []string{"id"}}, `two columns are called "id"`},
		{"smoke,id\n", Columns{IDs: []string{"id"}, Ignore: []string{"id"}}, "both carried over and left out"},
	} {
		_, err := NewReader(strings.NewReader(c.text), s.Labels, c.columns)
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	in := reader(t, s, "smoke,,sick,note\nyes,7,no,a\n\nno,8\n,9,y\"es,b\nyes,,yes,c\n1,,yes,d\nyes,\"", Columns{Ignore: []string{"note"}})
	var got []string
	for {
		c, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(c.Number, c.IDs, c.Evidence.Hard, c.Err))
	}
	want := []string{"1 [7] [{0 1} {2 0}] <nil>", "2 [8] [] line 4: 2 cells, the header has 4",
		"3 [] [] line 5: parse error on line 5, column 5: bare \" in non-quoted-field", "4 [] [{0 1} {2 1}] <nil>",
		"5 [] [] line 7: variable \"smoke\" has no value \"1\": there are \"no\" and \"yes\"", "6 [] [] line 8: "}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(strings.Replace(got[i], "parse error on line 5, column 5: ", "", 1),
			strings.Replace(want[i], "parse error on line 5, column 5: ", "", 1)) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	if !slices.Equal(in.IDs(), []string{""}) {
		t.Errorf("carried over: %q", in.IDs())
	}
}

// endless is a quote that is never closed.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	e.n += len(p)
	return len(p), nil
}

func TestRowWithoutEndIsAnError(t *testing.T) {
	s := sweep(t, model(t))
	e := &endless{}
	in, err := NewReader(io.MultiReader(strings.NewReader("smoke\nyes\n\""), e), s.Labels, Columns{})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := in.Next(); err != nil || c.Err != nil {
		t.Fatal(c, err)
	}
	if _, err := in.Next(); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "is a quote not closed") {
		t.Errorf("%v", err)
	}
	if e.n > 2*mostRow {
		t.Errorf("%d bytes were read", e.n)
	}
}

// TestJobsThatFail: an error of a row is written in it, any other ends the sweep.
func TestJobsThatFail(t *testing.T) {
	m := model(t)
	s := sweep(t, m, 2)
	for code, want := range map[fault.Code]string{fault.OverBudget: "", fault.Internal: "lost"} {
		var out bytes.Buffer
		p := &failing{direct: newDirect(m), code: code}
		_, err := s.Run(context.Background(), p, reader(t, s, "smoke\nyes\nno\n", Columns{}), &out, nil)
		if want != "" && (fault.CodeOf(err) != code || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", code, err)
		}
		if want == "" && (err != nil || strings.Count(out.String(), "over_budget: lost") != 2) {
			t.Errorf("%s: %v\n%s", code, err, out.String())
		}
	}
}

// failing answers all jobs but the first with an error.
type failing struct {
	*direct
	code fault.Code
}

func (f *failing) WaitTelling(ctx context.Context, job string, tell func(error)) (*wire.Answer, error) {
	a, err := f.direct.WaitTelling(ctx, job, tell)
	if strings.HasSuffix(job, "-z") {
		return a, err
	}
	return &wire.Answer{Job: job, Status: wire.StatusError, Error: &query.ErrorInfo{Code: f.code, Message: "lost"}}, nil
}
