package bayesnet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// entry is one entry of a tensor by its definition.
func entry(t tensor.Tensor, x []int) float64 {
	switch t := t.(type) {
	case *tensor.Dense:
		offset := 0
		for k, v := range x {
			offset = offset*t.Shape[k] + v
		}
		return t.Data[offset]
	case *tensor.CP:
		sum := 0.0
		for r, w := range t.Weights {
			for k, v := range x {
				w *= t.Vectors[k][r*t.Shape[k]+v]
			}
			sum += w
		}
		return sum
	}
	panic("another form")
}

// every calls do for every index.
func every(shape []int, do func(x []int)) {
	x := make([]int, len(shape))
	for range decimal.Entries(shape) {
		do(x)
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] < shape[k] {
				break
			}
			x[k] = 0
		}
	}
}

// drawnMax is a noisy-max with its text, and P(y | x) by the definition: all effects are drawn, and the strongest is seen.
func drawnMax(r *rand.Rand) (text string, shape []int, p func(x []int) float64) {
	n, d := r.IntN(4), 2+r.IntN(3)
	var parents, numbers, strengths []string
	var b strings.Builder
	b.WriteString("<smile><nodes>")
	var links [][][]float64 // per parent, per state, per effect
	distribution := func() []float64 {
		list, sum := make([]float64, d), 0.0
		for y := range list {
			if list[y] = float64(r.IntN(8)); y == d-1 {
				list[y]++
			}
			sum += list[y]
		}
		for y := range list {
			list[y] /= sum
			numbers = append(numbers, fmt.Sprint(list[y]))
		}
		return list
	}
	for k := range n {
		dim := 1 + r.IntN(3)
		shape = append(shape, dim)
		parents = append(parents, fmt.Sprintf("p%d", k))
		fmt.Fprintf(&b, "<cpt id=\"p%d\">", k)
		for x := range dim {
			fmt.Fprintf(&b, "<state id=\"s%d\"/>", x)
		}
		fmt.Fprintf(&b, "<probabilities>%s</probabilities></cpt>", strings.Repeat("0 ", dim-1)+"1")
		of := make([][]float64, dim)
		for _, x := range r.Perm(dim) { // columns in the order of strengths
			strengths = append(strengths, fmt.Sprint(x))
			of[x] = distribution()
		}
		links = append(links, of)
	}
	leak := distribution()
	shape = append(shape, d)
	b.WriteString("<noisymax id=\"y\">")
	for y := range d {
		fmt.Fprintf(&b, "<state id=\"s%d\"/>", y)
	}
	if n > 0 {
		fmt.Fprintf(&b, "<parents>%s</parents><strengths>%s</strengths>", strings.Join(parents, " "), strings.Join(strengths, " "))
	}
	fmt.Fprintf(&b, "<parameters>%s</parameters></noisymax></nodes></smile>", strings.Join(numbers, " "))
	return b.String(), shape, func(x []int) float64 {
		sum := 0.0
		every(slices.Repeat([]int{d}, n+1), func(effects []int) {
			if slices.Min(effects) != x[n] { // the earliest state is the strongest
				return
			}
			p := leak[effects[n]]
			for k := range n {
				p *= links[k][x[k]][effects[k]]
			}
			sum += p
		})
		return sum
	}
}

func TestNoisyMaxIsTheStrongestOfIndependentEffects(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		text, shape, p := drawnMax(r)
		m, err := ReadXDSL(strings.NewReader(text), uai.Limits{})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		f := m.Factors[len(m.Factors)-1]
		if cp, ok := f.Table.(*tensor.CP); len(shape) > 1 && (!ok || len(cp.Weights) > shape[len(shape)-1]) {
			t.Fatalf("%+v", f.Table)
		}
		every(shape, func(x []int) {
			if got, want := entry(f.Table, x), p(x); math.Abs(got-want) > 1e-14 || got < 0 {
				t.Fatalf("%v: %v, want %v\n%s", x, got, want, text)
			}
		})
	}
}

// TestDeterministicNodes: a sum of boxes is the function that its table was.
func TestDeterministicNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	boxes := 0
	for range 400 {
		n, d := r.IntN(9), 1+r.IntN(3)
		var shape []int
		for range n {
			shape = append(shape, 1+r.IntN(3))
		}
		kind := r.IntN(4)
		f := func(x []int) int {
			switch kind {
			case 0:
				return min(d-1, slices.Max(append(x, 0)))
			case 1:
				return min(d-1, slices.Min(append(x, 9)))
			case 2:
				sum := 0
				for _, v := range x {
					sum += v
				}
				return sum % d
			}
			return r.IntN(d)
		}
		var values []int
		every(shape, func(x []int) { values = append(values, f(slices.Clone(x))) })
		shape = append(shape, d)
		table := functionTable(shape, values)
		if cp, ok := table.(*tensor.CP); ok {
			boxes++
			numbers := len(cp.Weights)
			for _, v := range cp.Vectors {
				numbers += len(v)
			}
			if numbers >= len(values)*d {
				t.Fatalf("%d numbers for a table of %d", numbers, len(values)*d)
			}
		}
		if err := tensor.Validate(table); err != nil {
			t.Fatal(err)
		}
		offset := 0
		every(shape, func(x []int) {
			want := indicator(x[len(x)-1] == values[offset/d])
			if offset++; entry(table, x) != want {
				t.Fatalf("%v %v: entry %v, want %v", shape, values, x, want)
			}
		})
	}
	if boxes < 50 {
		t.Errorf("%d of 400 are sums of boxes", boxes)
	}
	// a disjunction of twelve has thirteen boxes
	values := slices.Repeat([]int{1}, 1<<12)
	values[0] = 0
	if cp := functionTable(slices.Repeat([]int{2}, 13), values).(*tensor.CP); len(cp.Weights) != 13 {
		t.Errorf("%d boxes", len(cp.Weights))
	}
}

const weather = `<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- <nodes> -->
<smile version="1.0" id="Network1" numsamples="1000">
	<nodes>
		<cpt id="Rain"><state id="No" /><state id="Yes" /><probabilities>0.8 0.2</probabilities></cpt>
		<deterministic id="Wet"><state id="Dry" /><state id="Wet" />
			<parents>Rain Hose</parents><resultingstates>Dry Wet Wet Wet</resultingstates></deterministic>
		<cpt id="Hose" diagtype="observation"><state id="Off" /><state id="On" /><parents>Rain</parents>
			<probabilities>0.6 0.4 0.99 0.01</probabilities><property id="a">b</property></cpt>
	</nodes>
	<extensions><genie version="1.0"><node id="Rain"><name>Will it rain?</name></node></genie></extensions>
</smile>`

func TestReadXDSL(t *testing.T) {
	m, err := ReadXDSL(strings.NewReader(weather), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Rain", "Wet", "Hose"}; !reflect.DeepEqual(m.Names, want) {
		t.Errorf("names %v, want %v", m.Names, want)
	}
	if want := [][]string{{"No", "Yes"}, {"Dry", "Wet"}, {"Off", "On"}}; !reflect.DeepEqual(m.States, want) {
		t.Errorf("states %v, want %v", m.States, want)
	}
	for j, want := range []struct {
		scope []int
		data  []float64
	}{{[]int{0}, []float64{0.8, 0.2}}, {[]int{0, 2, 1}, []float64{1, 0, 0, 1, 0, 1, 0, 1}}, {[]int{0, 2}, []float64{0.6, 0.4, 0.99, 0.01}}} {
		if f := m.Factors[j]; !reflect.DeepEqual(f.Scope, want.scope) || !reflect.DeepEqual(f.Table.(*tensor.Dense).Data, want.data) {
			t.Errorf("factor %d: %v, want %v", j, f, want)
		}
	}
}

func TestXDSLErrors(t *testing.T) {
	const a = `<cpt id="a"><state id="x"/><state id="y"/><probabilities>0.5 0.5</probabilities></cpt>`
	const two = `<state id="x"/><state id="y"/>`
	for _, c := range [][2]string{
		{`<bif/>`, `xdsl: line 1, column 1: syntax error: the element "bif" where smile is needed`},
		{`<smile><nodes>` + a, `syntax error: XML syntax error on line 1: unexpected EOF`},
		{``, `the file has no nodes`},
		{`<smile><nodes></nodes></smile>`, `the file has no nodes`},
		{`<smile><nodes><utility id="u"/></nodes></smile>`, `"u" is of the kind utility: cpt, deterministic and noisymax are read`},
		{`<smile><nodes><decision id="u"/></nodes></smile>`, `"u" is of the kind decision`},
		{`<smile><nodes><noisyadder id="u"/></nodes></smile>`, `"u" is of the kind noisyadder`},
		{`<smile><nodes>` + a + a + `</nodes></smile>`, `node "a" is there twice`},
		{`<smile><nodes>` + a + `</nodes><dynamic numslices="3"><cpt id="a" order="1"/></dynamic></smile>`, `the network is a dynamic one`},
		{`<smile><nodes><cpt id="a"><state id="x"/><state id="x"/></cpt></nodes></smile>`, `node "a": state "x" is there twice`},
		{`<smile><nodes><cpt id="a">` + two + `</cpt></nodes></smile>`, `the table of "a" is unknown: btn fit learns it`},
		{`<smile><nodes><cpt id="a">` + two + `<probabilities>1</probabilities></cpt></nodes></smile>`, `node "a": 1 numbers, 2 are needed`},
		{`<smile><nodes><cpt id="a">` + two + `<probabilities>1 0 0</probabilities></cpt></nodes></smile>`, `node "a": more than 2 numbers`},
		{`<smile><nodes><cpt id="a">` + two + `<probabilities>1 x</probabilities></cpt></nodes></smile>`, `number 2: "x" is not a number`},
		{`<smile><nodes><cpt id="a">` + two + `<parents>b</parents></cpt></nodes></smile>`, `node "a": no node has the id "b"`},
		{"<smile><nodes>\n" + a + `<deterministic id="b">` + two +
			`<parents>a</parents><resultingstates>x</resultingstates></deterministic></nodes></smile>`,
			`xdsl: line 2, column 159: invalid model: node "b": 1 resulting states, 2 are needed`},
		{`<smile><nodes>` + a + `<deterministic id="b">` + two +
			`<parents>a</parents><resultingstates>x z</resultingstates></deterministic></nodes></smile>`,
			`node "b": resulting state 2: it has no state "z"`},
		{`<smile><nodes>` + a + `<noisymax id="b">` + two + `<parents>a</parents><strengths>0 0</strengths><parameters>` +
			`1 0 0 1 0 1</parameters></noisymax></nodes></smile>`, `node "b": strength 2: "0" is no state of its parent, or there twice`},
		{`<smile><nodes>` + a + `<noisymax id="b">` + two + `<parents>a</parents><parameters>1 0 0 1</parameters></noisymax></nodes></smile>`,
			`node "b": 4 numbers, 6 are needed`},
	} {
		_, err := ReadXDSL(strings.NewReader(c[0]), uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
			continue
		}
		code := fault.BadInput
		if strings.Contains(c[1], "is of the kind") || strings.Contains(c[1], "dynamic") {
			code = fault.Unsupported
		}
		if fault.CodeOf(err) != code || !errors.Is(err, uai.ErrSyntax) && !errors.Is(err, uai.ErrModel) {
			t.Errorf("%s: code %s: %v", c[0], fault.CodeOf(err), err)
		}
	}
	// a noisy-max of many states and no parents takes no square of them
	var b strings.Builder
	b.WriteString(`<smile><nodes><noisymax id="a">`)
	for x := range 5000 {
		fmt.Fprintf(&b, `<state id="s%d"/>`, x)
	}
	b.WriteString(`<parameters>1</parameters></noisymax></nodes></smile>`)
	if _, err := ReadXDSL(strings.NewReader(b.String()), uai.Limits{}); !errors.Is(err, uai.ErrLimit) {
		t.Error(err)
	}
}
