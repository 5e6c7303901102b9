package main

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// lnZOfTree sums the variables of a tree out, the last one first, of factors over one variable and over an earlier and a later one.
func lnZOfTree(m *factorgraph.Model) float64 {
	weights := make([][2]float64, len(m.Domains))
	above := make([]int, len(m.Domains)) // the factor that joins a variable to an earlier one
	for j, f := range m.Factors {
		if len(f.Scope) == 1 {
			copy(weights[f.Scope[0]][:], f.Table.(*tensor.Dense).Data)
		} else {
			above[f.Scope[1]] = j
		}
	}
	ln := 0.0
	for v := len(weights) - 1; v >= 0; v-- {
		w := weights[v]
		sum := w[0] + w[1]
		ln += math.Log(sum)
		if v == 0 {
			break
		}
		f := m.Factors[above[v]]
		table := f.Table.(*tensor.Dense).Data
		to := &weights[f.Scope[0]]
		for x := range to {
			to[x] *= (table[2*x]*w[0] + table[2*x+1]*w[1]) / sum
		}
	}
	return ln
}

// TestLargeModelsInLittleMemory: a chain and a tree of 10^5 variables are answered by their recursion's value, with some kilobytes and
// few allocations a variable from the file to the answer.
func TestLargeModelsInLittleMemory(t *testing.T) {
	const n = 100000
	for name, draw := range map[string]func() (*factorgraph.Model, error){
		"chain": func() (*factorgraph.Model, error) { return generate.Grid(1, n, generate.Ising{Delta: 1, Seed: 1}) },
		"tree":  func() (*factorgraph.Model, error) { return generate.Tree(n, generate.Ising{Delta: 1, Seed: 1}) },
	} {
		m, err := draw()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := uai.Write(&text, m); err != nil {
			t.Fatal(err)
		}
		file := write(t, t.TempDir(), name+".uai", text.String())
		want := lnZOfTree(m)

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var out, log strings.Builder
		code := runOn(context.Background(), []string{"infer", filepath.Clean(file), "--json"}, &console.Terminal{Out: &out, Err: &log})
		runtime.ReadMemStats(&after)
		var result struct {
			LogZ float64 `json:"log_z"`
		}
		if err := json.Unmarshal([]byte(out.String()), &result); err != nil || code != 0 {
			t.Fatalf("%s: code %d, %v: %.300s %s", name, code, err, out.String(), log.String())
		}
		if math.Abs(result.LogZ-want) > 1e-12*want {
			t.Errorf("%s: ln Z = %v, by recursion %v", name, result.LogZ, want)
		}
		bytes, allocations := (after.TotalAlloc-before.TotalAlloc)/n, float64(after.Mallocs-before.Mallocs)/n
		t.Logf("%s: %d bytes and %.1f allocations a variable", name, bytes, allocations)
		if bytes > 9000 || allocations > 16 {
			t.Errorf("%s: %d bytes and %.1f allocations a variable", name, bytes, allocations)
		}
	}
}
