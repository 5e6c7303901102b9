// The seeded examples: their models, and the text of the files. Run with -update to write the files again.

package examples

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

var update = flag.Bool("update", false, "write the generated examples")

// uniform draws from U(−width, width), two decimals: the files are for people.
func uniform(rng *rand.Rand, width float64) float64 {
	return math.Round(100*width*(2*rng.Float64()-1)) / 100
}

// grid is an Ising model on rows × columns spins ±1 (value 0 is −1): E(x) = Σ J x x + Σ h x, factors exp(·).
type grid struct {
	rows, columns int
	field         []float64 // row-major
	right, down   []float64 // coupling of a spin to its neighbour; 0 where there is none
}

const (
	gridSeed        = 8
	exactlySeed     = 40
	curieWeissSeed  = 200
	exactlyCount    = 10
	curieWeissPower = 8.0 // β J: ln of the largest value is 800, beyond float64
)

func drawGrid() grid {
	rng := rand.New(rand.NewPCG(gridSeed, 0))
	g := grid{rows: 8, columns: 8}
	for i := range g.rows * g.columns {
		g.field = append(g.field, uniform(rng, 0.1))
		right, down := uniform(rng, 1), uniform(rng, 1)
		if i%g.columns == g.columns-1 {
			right = 0
		}
		if i/g.columns == g.rows-1 {
			down = 0
		}
		g.right, g.down = append(g.right, right), append(g.down, down)
	}
	return g
}

func (g grid) text() string {
	n := g.rows * g.columns
	var scopes, tables strings.Builder
	factors := 0
	add := func(scope string, entries ...float64) {
		factors++
		fmt.Fprintln(&scopes, scope)
		fmt.Fprintf(&tables, "\n%d\n", len(entries))
		for _, e := range entries {
			fmt.Fprintf(&tables, " %s", digits(e))
		}
		fmt.Fprintln(&tables)
	}
	pair := func(a, b int, j float64) {
		add(fmt.Sprintf("2 %d %d", a, b), math.Exp(j), math.Exp(-j), math.Exp(-j), math.Exp(j))
	}
	for i := range n {
		add(fmt.Sprintf("1 %d", i), math.Exp(-g.field[i]), math.Exp(g.field[i]))
	}
	for i := range n {
		if i%g.columns < g.columns-1 {
			pair(i, i+1, g.right[i])
		}
		if i/g.columns < g.rows-1 {
			pair(i, i+g.columns, g.down[i])
		}
	}
	return fmt.Sprintf("MARKOV\n%d\n%s\n%d\n%s%s",
		n, strings.TrimSpace(strings.Repeat("2 ", n)), factors, scopes.String(), tables.String())
}

// digits writes 15 digits: enough for 1e-14, few enough to be the same on every machine.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 15, 64) }

// drawExactly draws the weight of value 1 of each of 40 variables (value 0 has weight 1).
func drawExactly() []float64 {
	rng := rand.New(rand.NewPCG(exactlySeed, 0))
	w := make([]float64, 40)
	for i := range w {
		w[i] = math.Round(100*(0.05+2.95*rng.Float64())) / 100
	}
	return w
}

func exactlyText(w []float64) string {
	var f strings.Builder
	for i, v := range w {
		fmt.Fprintf(&f, ",\n    {\"scope\": [%d], \"dense\": {\"values\": [1, %s]}}", i, digits(v))
	}
	values := make([]string, len(w)+1)
	for c := range values {
		values[c] = "0"
	}
	values[exactlyCount] = "1"
	return nativeText(len(w), "exactly 10 of 40 binary variables, each with its own weight",
		`{"levels": "two", "values": [`+strings.Join(values, ", ")+`]}`, f.String())
}

// drawCurieWeiss draws the fields of 200 spins.
func drawCurieWeiss() []float64 {
	rng := rand.New(rand.NewPCG(curieWeissSeed, 0))
	h := make([]float64, 200)
	for i := range h {
		h[i] = uniform(rng, 0.5)
	}
	return h
}

func curieWeissText(h []float64) string {
	var f strings.Builder
	for i, v := range h {
		fmt.Fprintf(&f, ",\n    {\"scope\": [%d], \"dense\": {\"values\": [%s, %s]}}",
			i, digits(math.Exp(-v)), digits(math.Exp(v)))
	}
	values := make([]string, len(h)+1)
	for c := range values {
		values[c] = digits(curieWeissLog(len(h), c))
	}
	return nativeText(len(h), "Curie-Weiss magnet of 200 spins in random fields: beta J = 8, ln of the "+
		"core is 8 M^2 / 400",
		`{"levels": "two", "log_values": [`+strings.Join(values, ", ")+`]}`, f.String())
}

// curieWeissLog returns βJ M²/2n, M = 2c − n: c of the n spins are up.
func curieWeissLog(n, c int) float64 {
	m := float64(2*c - n)
	return curieWeissPower * m * m / float64(2*n)
}

// nativeText is a model of n binary variables, one symmetric factor over all and further factors.
func nativeText(n int, description, symmetric, factors string) string {
	scope := make([]string, n)
	for i := range scope {
		scope[i] = strconv.Itoa(i)
	}
	variables := strings.TrimSuffix(strings.Repeat(`{"domain": 2}, `, n), ", ")
	return fmt.Sprintf("{\n  \"basetensor_model\": 1,\n  \"description\": %q,\n  \"variables\": [%s],\n  "+
		"\"factors\": [\n    {\"scope\": [%s], \"symmetric\": %s}%s\n  ]\n}\n",
		description, variables, strings.Join(scope, ", "), symmetric, factors)
}

// The committed files are the generators' output, up to the last digits of exp on this machine.
func TestGeneratedFiles(t *testing.T) {
	for name, text := range map[string]string{
		"grid8x8.uai":      drawGrid().text(),
		"exactly-k.json":   exactlyText(drawExactly()),
		"curie-weiss.json": curieWeissText(drawCurieWeiss()),
		"latent-signs.uai": latentText(t, "mattis"),
		"latent-chain.uai": latentText(t, "chain"),
	} {
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := parse(name, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := load(t, name)
		if !reflect.DeepEqual(rounded(got), rounded(want)) {
			t.Errorf("%s is not what its generator draws; run go test ./examples -update", name)
		}
	}
}

// latentText is what btn generate latent FAMILY -n 30 --seed 1 writes.
func latentText(t *testing.T, family string) string {
	t.Helper()
	m, err := generate.Latent{Family: family, Variables: 30, Coupling: 1.2, Field: 0.1, Seed: 1}.Model()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := uai.Write(&text, m); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func parse(name, text string) (*factorgraph.Model, error) {
	if strings.HasSuffix(name, ".json") {
		return modeljson.Decode(strings.NewReader(text), modeljson.Limits{})
	}
	return uai.Read(strings.NewReader(text), uai.Limits{})
}

func load(t *testing.T, name string) *factorgraph.Model {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parse(name, string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return m
}

// rounded lists a model's numbers to 12 digits.
func rounded(m *factorgraph.Model) []string {
	out := []string{fmt.Sprint(m.Domains)}
	for _, f := range m.Factors {
		switch t := f.Table.(type) {
		case *tensor.Dense:
			out = append(out, fmt.Sprint(f.Scope), fmt.Sprintf("%.11e", t.Data))
		case *tensor.Symmetric:
			out = append(out, fmt.Sprint(f.Scope), fmt.Sprintf("%.11e %v", t.Values.Mant, t.Values.Exp))
		}
	}
	return out
}
