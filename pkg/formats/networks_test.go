package formats_test

// Public networks, where BTN_DATA names a folder that has them: every one is read, its marginals equal an elimination in this
// file, and a model has the same bits in every format.

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// small are the networks whose marginals are computed without BTN_NETWORKS=all, too: in a few seconds.
var small = []string{"sachs", "child", "alarm", "insurance", "win95pts", "water", "dog"}

// eliminated are the larger ones whose marginals the elimination below finds in reasonable time as well.
var eliminated = append([]string{"hailfinder", "hepar2"}, small...)

func networks(t *testing.T) []string {
	t.Helper()
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	entries, err := os.ReadDir(filepath.Join(data, "bn"))
	if err != nil {
		t.Skip(err)
	}
	var files []string
	for _, e := range entries {
		if formats.Of(e.Name()) != "" {
			files = append(files, filepath.Join(data, "bn", e.Name()))
		}
	}
	if len(files) == 0 {
		t.Fatal("no networks in the folder")
	}
	return files
}

func load(t *testing.T, path string) *factorgraph.Model {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := formats.Read(f, "", path, uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return m
}

// through writes a model in a format and reads it back.
func through(t *testing.T, as formats.Format, m *factorgraph.Model) *factorgraph.Model {
	t.Helper()
	var b bytes.Buffer
	if err := formats.Write(&b, as, m); err != nil {
		t.Fatalf("%s: %v", as, err)
	}
	back, err := formats.Read(&b, "", "", uai.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", as, err)
	}
	return back
}

func TestNetworks(t *testing.T) {
	for _, path := range networks(t) {
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		t.Run(filepath.Base(path), func(t *testing.T) {
			m := load(t, path)
			if !m.Bayes || len(m.Names) != len(m.Domains) || len(m.States) != len(m.Domains) || len(m.Factors) != len(m.Domains) {
				t.Fatalf("%d names, %d lists of states, %d factors of %d variables", len(m.Names), len(m.States), len(m.Factors), len(m.Domains))
			}
			computed := os.Getenv("BTN_NETWORKS") == "all" || slices.Contains(small, name) && (name != "water" || nightly.On())
			evidence := observed(m, rand.New(rand.NewPCG(uint64(len(m.Domains)), 13)))
			var first [][][]float64
			if computed {
				first = marginals(t, m, evidence)
			}
			if computed && slices.Contains(eliminated, name) {
				compare(t, m, evidence, first)
			}
			back := m
			for _, as := range []formats.Format{formats.XMLBIF, formats.BIF, formats.NET, formats.DSC, formats.JSON, formats.UAI} {
				back = through(t, as, back) // one after the other: a feature that one loses is missing in the next
				if as != formats.UAI && (!reflect.DeepEqual(back.Names, m.Names) || !reflect.DeepEqual(back.States, m.States)) {
					t.Fatalf("%s: other names", as)
				}
				if !reflect.DeepEqual(back.Domains, m.Domains) || !reflect.DeepEqual(back.Factors, m.Factors) {
					t.Fatalf("%s: other numbers", as)
				}
				if computed && !reflect.DeepEqual(marginals(t, back, evidence), first) {
					t.Errorf("%s: other bits of the marginals", as)
				}
			}
		})
	}
}

// TestOneNetworkInTwoFiles: alarm as another program wrote it has the same numbers.
func TestOneNetworkInTwoFiles(t *testing.T) {
	folder := filepath.Dir(networks(t)[0])
	a, b := load(t, filepath.Join(folder, "alarm.bif.gz")), load(t, filepath.Join(folder, "alarm.net"))
	if !reflect.DeepEqual(a.Names, b.Names) || !reflect.DeepEqual(a.States, b.States) {
		t.Fatal("other names")
	}
	for j, f := range a.Factors {
		for i, v := range f.Table.(*tensor.Dense).Data {
			if w := b.Factors[j].Table.(*tensor.Dense).Data[i]; !slices.Equal(f.Scope, b.Factors[j].Scope) || math.Abs(v-w) > 1e-6 {
				t.Errorf("factor %d, entry %d: %v and %v", j, i, v, w)
			}
		}
	}
}

// observed draws five states of all variables and observes some of each, so that none of the evidence is impossible.
func observed(m *factorgraph.Model, r *rand.Rand) []factorgraph.Evidence {
	of := make([]int, len(m.Domains)) // the table of a variable
	for j, f := range m.Factors {
		of[f.Scope[len(f.Scope)-1]] = j
	}
	list := make([]factorgraph.Evidence, 5)
	for e := range list {
		x := slices.Repeat([]int{-1}, len(m.Domains))
		var draw func(v int)
		draw = func(v int) {
			if x[v] >= 0 {
				return
			}
			f := m.Factors[of[v]]
			row := 0
			for _, p := range f.Scope[:len(f.Scope)-1] {
				draw(p)
				row = row*m.Domains[p] + x[p]
			}
			p := f.Table.(*tensor.Dense).Data[row*m.Domains[v] : (row+1)*m.Domains[v]]
			left := r.Float64() * 0.999
			for x[v] = 0; p[x[v]] <= left && x[v] < len(p)-1; x[v]++ {
				left -= p[x[v]]
			}
			for p[x[v]] == 0 {
				x[v] = slices.Index(p, slices.Max(p))
			}
		}
		for v := range x {
			if draw(v); r.IntN(6) == 0 {
				list[e].Hard = append(list[e].Hard, factorgraph.Observation{Var: v, Value: x[v]})
			}
		}
	}
	return list
}

// marginals returns the marginals of all variables under each evidence, exactly.
func marginals(t *testing.T, m *factorgraph.Model, evidence []factorgraph.Evidence) (list [][][]float64) {
	t.Helper()
	r := infer.Request{Job: "networks", Model: m}
	r.Settings.Method = query.MethodExact
	for _, e := range evidence {
		r.Queries = append(r.Queries, query.Query{Evidence: e, Marginals: true})
	}
	results, err := infer.Run(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for q, result := range results {
		if result.Status != query.StatusOK || !result.Exact || result.Zero {
			t.Fatalf("query %d: %s, exact %v, zero %v: %+v", q, result.Status, result.Exact, result.Zero, result.Error)
		}
		list = append(list, query.Probabilities(result.Marginals))
	}
	return list
}

// compare holds marginals against the elimination's.
func compare(t *testing.T, m *factorgraph.Model, evidence []factorgraph.Evidence, got [][][]float64) {
	t.Helper()
	for e := range evidence {
		tables := conditioned(m, evidence[e])
		for v := range m.Domains {
			want := alone(m.Domains, tables, v)
			for x, p := range want {
				if math.Abs(p-got[e][v][x]) > 1e-9 {
					t.Fatalf("evidence %d: P(%s = %s) is %v, want %v", e, m.Names[v], m.States[v][x], got[e][v][x], p)
				}
			}
		}
	}
}

// table is a function of some variables, the last one fastest.
type table struct {
	vars []int
	data []float64
}

// conditioned are the tables of a model, their rows divided by their sums, zero where they contradict the evidence.
func conditioned(m *factorgraph.Model, e factorgraph.Evidence) []table {
	var list []table
	for _, f := range m.Factors {
		data := slices.Clone(f.Table.(*tensor.Dense).Data)
		for row := range slices.Chunk(data, m.Domains[f.Scope[len(f.Scope)-1]]) {
			sum := 0.0
			for _, p := range row {
				sum += p
			}
			for x := range row {
				row[x] /= sum
			}
		}
		list = append(list, table{f.Scope, data})
	}
	for _, o := range e.Hard {
		one := make([]float64, m.Domains[o.Var])
		one[o.Value] = 1
		for k, t := range list { // tables with the variable are cut to its value
			at := slices.Index(t.vars, o.Var)
			if at < 0 {
				continue
			}
			inner := 1
			for _, v := range t.vars[at+1:] {
				inner *= m.Domains[v]
			}
			cut := table{vars: slices.Delete(slices.Clone(t.vars), at, at+1)}
			for from := o.Value * inner; from < len(t.data); from += m.Domains[o.Var] * inner {
				cut.data = append(cut.data, t.data[from:from+inner]...)
			}
			list[k] = cut
		}
		list = append(list, table{[]int{o.Var}, one})
	}
	return list
}

// alone is P(v | evidence): the other variables are summed out one by one, next the one that makes the smallest table.
func alone(domains []int, tables []table, v int) []float64 {
	tables = slices.Clone(tables)
	left := map[int]bool{}
	for u := range domains {
		left[u] = u != v
	}
	delete(left, v)
	for len(left) > 0 {
		best, bestSize := -1, math.Inf(1)
		for u := range domains {
			if !left[u] {
				continue
			}
			if size := cells(domains, union(tables, u)); size < bestSize {
				best, bestSize = u, size
			}
		}
		delete(left, best)
		var with, without []table
		for _, t := range tables {
			if slices.Contains(t.vars, best) {
				with = append(with, t)
			} else {
				without = append(without, t)
			}
		}
		tables = append(without, summed(domains, with, best))
	}
	p := summed(domains, append(tables, table{[]int{v}, slices.Repeat([]float64{1}, domains[v])}), -1).data
	total := 0.0
	for _, x := range p {
		total += x
	}
	for x := range p {
		p[x] /= total
	}
	return p
}

// union are the variables of the tables that have u, in rising order; u = −1: of all.
func union(tables []table, u int) (vars []int) {
	for _, t := range tables {
		if u < 0 || slices.Contains(t.vars, u) {
			vars = append(vars, t.vars...)
		}
	}
	slices.Sort(vars)
	return slices.Compact(vars)
}

func cells(domains, vars []int) float64 {
	size := 1.0
	for _, v := range vars {
		size *= float64(domains[v])
	}
	return size
}

// summed is the product of tables without one of their variables.
func summed(domains []int, tables []table, out int) table {
	vars := union(tables, -1)
	keep := slices.DeleteFunc(slices.Clone(vars), func(v int) bool { return v == out })
	tables = append(slices.Clone(tables), table{vars: keep, data: make([]float64, int(cells(domains, keep)))})
	result := tables[len(tables)-1]
	at, value := make([]int, len(tables)), make([]int, len(vars))
	strides := make([][]int, len(vars)) // of a variable in every table
	for k, v := range vars {
		for _, t := range tables {
			stride := 0
			if pos := slices.Index(t.vars, v); pos >= 0 {
				stride = int(cells(domains, t.vars[pos+1:]))
			}
			strides[k] = append(strides[k], stride)
		}
	}
	for range int(cells(domains, vars)) {
		p := 1.0
		for k, t := range tables[:len(tables)-1] {
			p *= t.data[at[k]]
		}
		result.data[at[len(at)-1]] += p
		for k := len(vars) - 1; k >= 0; k-- {
			value[k]++
			for i := range at {
				at[i] += strides[k][i]
			}
			if value[k] < domains[vars[k]] {
				break
			}
			value[k] = 0
			for i := range at {
				at[i] -= strides[k][i] * domains[vars[k]]
			}
		}
	}
	return result
}
