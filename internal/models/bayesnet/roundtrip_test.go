package bayesnet

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// codecs are the formats that keep variables, states, factors and scopes as they are.
var codecs = []struct {
	name  string
	read  func(io.Reader, uai.Limits) (*factorgraph.Model, error)
	write func(io.Writer, *factorgraph.Model) error
}{
	{"bif", ReadBIF, WriteBIF},
	{"xmlbif", ReadXMLBIF, WriteXMLBIF},
	{"net", ReadNET, WriteNET},
	{"dsc", ReadDSC, WriteDSC},
}

// odd are names that formats have to take care of.
var odd = []string{"a", "two words", `qu"ote`, `back\slash`, `end\`, "//", "/*", "a//b", "a/*b", "a/",
	"<5", ">=7.5", "12+", "Asy/Patch", "a,b", "(x)", "{", "ø",
	"x_1", "node", "x;y", "100%", "%", "=", "a=b", "&amp;", "<!--", "1", "-", "_", "x|y", "[0,1)", "table", "default", "☃", "A", "]]>"}

// drawn is a random Bayesian network; variables, factors and scopes are in any order.
func drawn(r *rand.Rand) *factorgraph.Model {
	n := 1 + r.IntN(7)
	m := &factorgraph.Model{Bayes: true}
	names := r.Perm(len(odd))
	for v := range n {
		d := 1 + r.IntN(4)
		m.Domains = append(m.Domains, d)
		m.Names = append(m.Names, odd[names[v]])
		var states []string
		for _, x := range r.Perm(len(odd))[:d] {
			states = append(states, odd[x])
		}
		m.States = append(m.States, states)
	}
	order := r.Perm(n)
	for offset, v := range order {
		var scope []int
		for _, p := range r.Perm(offset) {
			if len(scope) < 3 && r.IntN(2) == 0 {
				scope = append(scope, order[p])
			}
		}
		scope = append(scope, v)
		t := &tensor.Dense{}
		for _, u := range scope {
			t.Shape = append(t.Shape, m.Domains[u])
		}
		t.Data = make([]float64, decimal.Entries(t.Shape))
		for i := range t.Data {
			if t.Data[i] = r.Float64() * math.Pow(10, float64(-r.IntN(320))); r.IntN(4) == 0 {
				t.Data[i] = float64(r.IntN(2))
			}
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	r.Shuffle(n, func(i, j int) { m.Factors[i], m.Factors[j] = m.Factors[j], m.Factors[i] })
	return m
}

// TestRoundTrip: names, states, order and every bit of every number survive each format.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	for range 300 {
		m := drawn(r)
		for _, c := range codecs {
			var b bytes.Buffer
			if err := c.write(&b, m); err != nil {
				t.Fatalf("%s: %v: %+v", c.name, err, m)
			}
			back, err := c.read(strings.NewReader(b.String()), uai.Limits{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", c.name, err, b.String())
			}
			if back.Lines, back.RowLines = nil, nil; !reflect.DeepEqual(m, back) {
				t.Fatalf("%s: %+v became %+v\n%s", c.name, m, back, b.String())
			}
		}
	}
}

// TestXDSLRoundTrip: parents come before their children, and all else stays.
func TestXDSLRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 2))
	for range 300 {
		m := drawn(r)
		var b bytes.Buffer
		if err := WriteXDSL(&b, m); err != nil {
			t.Fatalf("%v: %+v", err, m)
		}
		text := b.String()
		back, err := ReadXDSL(&b, uai.Limits{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		of := map[string]int{} // variables of m by name
		for v, name := range m.Names {
			of[name] = v
		}
		for v, name := range back.Names {
			if !reflect.DeepEqual(back.States[v], m.States[of[name]]) {
				t.Fatalf("%s: states %q, want %q", name, back.States[v], m.States[of[name]])
			}
		}
		tables := map[int]factorgraph.Factor{}
		for _, f := range m.Factors {
			tables[f.Scope[len(f.Scope)-1]] = f
		}
		for j, f := range back.Factors {
			scope := make([]int, len(f.Scope))
			for k, v := range f.Scope {
				if scope[k] = of[back.Names[v]]; v > j {
					t.Fatalf("a parent comes after its child: %v", back.Factors)
				}
			}
			if want := tables[scope[len(scope)-1]]; !reflect.DeepEqual(scope, want.Scope) || !reflect.DeepEqual(f.Table, want.Table) {
				t.Fatalf("%v %v, want %v\n%s", scope, f.Table, want, text)
			}
		}
		// once more nothing moves
		var again bytes.Buffer
		if err := WriteXDSL(&again, back); err != nil || again.String() != text && reflect.DeepEqual(back.Names, m.Names) {
			t.Fatalf("%v\n%s\nbecame\n%s", err, text, again.String())
		}
	}
}

// TestNamesAreMade: nodes and states without a name get one, and the numbers stay.
func TestNamesAreMade(t *testing.T) {
	m := drawn(rand.New(rand.NewPCG(1, 2)))
	for v := range m.Domains {
		m.Names[v] = ""
	}
	m.Names, m.States = append([]string{"x_1"}, m.Names[1:]...), nil
	for _, c := range codecs {
		var b bytes.Buffer
		if err := c.write(&b, m); len(m.Domains) > 1 && (err == nil || !strings.Contains(err.Error(), `two variables have the name "x_1"`)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	m.Names = nil
	for _, c := range codecs {
		var b bytes.Buffer
		if err := c.write(&b, m); err != nil {
			t.Fatal(err)
		}
		back, err := c.read(&b, uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if back.Names[0] != "x_0" || back.States[0][m.Domains[0]-1] != string(rune('0'+m.Domains[0]-1)) {
			t.Errorf("%s: %v %v", c.name, back.Names, back.States)
		}
		if !reflect.DeepEqual(back.Factors, m.Factors) {
			t.Errorf("%s: other factors", c.name)
		}
	}
}

// TestOnlyBayesianNetworksAreWritten says why a model is none.
func TestOnlyBayesianNetworksAreWritten(t *testing.T) {
	half := func(shape ...int) *tensor.Dense {
		d := &tensor.Dense{Shape: shape, Data: make([]float64, decimal.Entries(shape))}
		for i := range d.Data {
			d.Data[i] = 1 / float64(shape[len(shape)-1])
		}
		return d
	}
	factor := func(t tensor.Tensor, scope ...int) factorgraph.Factor {
		return factorgraph.Factor{Scope: scope, Table: t}
	}
	wide := &tensor.CP{Weights: []float64{1}}
	var scope, domains []int
	var roots []factorgraph.Factor
	for v := range 21 {
		wide.Shape, wide.Vectors = append(wide.Shape, 2), append(wide.Vectors, []float64{0.5, 0.5})
		scope, domains = append(scope, v), append(domains, 2)
		if v < 20 {
			roots = append(roots, factor(half(2), v))
		}
	}
	for _, c := range []struct {
		m    *factorgraph.Model
		code fault.Code
		want string
	}{
		{&factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{factor(half(2), 0), factor(half(2, 2), 1, 0)}},
			fault.Unsupported, "variable 0 is the last one of factors 0 and 1, and has one table"},
		{&factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{factor(half(2), 0)}},
			fault.Unsupported, "variable 1 is the last one of no factor, and has no table"},
		{&factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{factor(half(2), 0), {Table: &tensor.Dense{Data: []float64{1}}}}},
			fault.Unsupported, "factor 1 has no variables"},
		{&factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{factor(half(2, 2), 0, 1), factor(half(2, 2), 1, 0)}},
			fault.Unsupported, "is its own ancestor"},
		{&factorgraph.Model{Domains: []int{2}, Factors: []factorgraph.Factor{factor(&tensor.Dense{Shape: []int{2}, Data: []float64{1, 2}}, 0)}},
			fault.Unsupported, "factor 0: row 0 does not sum to 1"},
		{&factorgraph.Model{Bayes: true, Domains: []int{2}, Factors: []factorgraph.Factor{
			factor(&tensor.Dense{Shape: []int{2}, Data: []float64{2, -1}}, 0)}}, fault.BadInput,
			"factor 0: entry 1 (x_0 = 1) is -1, and a probability is at least 0"},
		{&factorgraph.Model{Bayes: true, Domains: domains, Factors: append(roots, factor(wide, scope...))},
			fault.Unsupported, `node "x_20": the format holds tables only`},
	} {
		for _, f := range codecs {
			err := f.write(io.Discard, c.m)
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v (%s), want %s", f.name, err, fault.CodeOf(err), c.want)
			}
		}
	}
}
