package examples

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestNetworks: the posteriors of README.md, by enumeration of all states.
func TestNetworks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, target, given string }{
		{"heating.bif", "boiler = lockout", "complaint = yes, season = winter"},
		{"engine.xdsl", "FuelFilter = Clogged", "WarningLight = On"},
		{"orchard.net", "Frost = hard", "Harvest = bad"},
		{"parcel.xml", "depot = lost", "last scan = > 3 days ago"},
		{"mailserver.dsc", "Disk = full", "Complaints = some, Queue = stuck"},
		{"doors.cnf", "1 = 1", "3 = 1, 2 = 0"},
		{"ferry.fg", "1 = 2", "3 = 0"},
	} {
		f, err := os.Open(c.file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := formats.Read(f, "", c.file, uai.Limits{})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		given := map[int]int{}
		for part := range strings.SplitSeq(c.given, ", ") {
			v, x := state(t, m, part)
			given[v] = x
		}
		v, x := state(t, m, c.target)
		all, hit := 0.0, 0.0
		states(m, func(at []int, p float64) {
			for u, y := range given {
				if at[u] != y {
					return
				}
			}
			if all += p; at[v] == x {
				hit += p
			}
		})
		row := fmt.Sprintf("P(%s \\| %s) =", c.target, c.given)
		if want, ok := answer(string(readme), row); !ok || math.Abs(hit/all-want) > 5e-7 {
			t.Errorf("%s: %s %.6f, README.md says %v", c.file, row, hit/all, want)
		}
	}
}

// TestCosts: the least costs of README.md, by enumeration of all states.
func TestCosts(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"rota.wcsp", "menu.cfn"} {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := formats.Read(f, "", file, uai.Limits{})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		best := 0.0
		states(m, func(_ []int, p float64) { best = max(best, p) })
		_, row, found := strings.Cut(string(readme), "| `"+file+"` |")
		row, _, _ = strings.Cut(row, "\n")
		want, ok := answer(row, "least cost")
		if !found || !ok || math.Abs(-math.Log(best)-want) > 1e-9 {
			t.Errorf("%s: the least cost is %v, README.md says %v", file, -math.Log(best), want)
		}
	}
}

// state finds `variable = state`.
func state(t *testing.T, m *factorgraph.Model, text string) (v, x int) {
	t.Helper()
	name, value, _ := strings.Cut(text, " = ")
	v = slices.Index(m.Names, name)
	switch {
	case v < 0:
	case m.States != nil:
		x = slices.Index(m.States[v], value)
	default: // positions
		if _, err := fmt.Sscan(value, &x); err != nil {
			t.Fatal(err)
		}
	}
	if v < 0 || x < 0 {
		t.Fatalf("%s: %v", text, m.Names)
	}
	return v, x
}

// states calls do for every state of a model, with its weight.
func states(m *factorgraph.Model, do func(at []int, p float64)) {
	at := make([]int, len(m.Domains))
	for {
		p := 1.0
		for _, f := range m.Factors {
			p *= weight(f, at)
		}
		do(at, p)
		k := len(at) - 1
		for ; k >= 0; k-- {
			if at[k]++; at[k] < m.Domains[k] {
				break
			}
			at[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// weight is one entry of a factor, by the definition of its form.
func weight(f factorgraph.Factor, at []int) float64 {
	switch t := f.Table.(type) {
	case *tensor.Dense:
		i := 0
		for k, v := range f.Scope {
			i = i*t.Shape[k] + at[v]
		}
		return t.Data[i]
	case *tensor.CP:
		sum := 0.0
		for r, w := range t.Weights {
			for k, v := range f.Scope {
				w *= t.Vectors[k][r*t.Shape[k]+at[v]]
			}
			sum += w
		}
		return sum
	}
	return math.NaN()
}
