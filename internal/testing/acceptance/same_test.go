package acceptance

// One question on a named model, by every way there is to ask it: examples/same-answer.

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

const sameAnswer = root + "examples/same-answer/"

// TestSameAnswer: the command line, HTTP, Python, Node.js and Go print the same posteriors by name, to the last bit, equal to
// enumeration.
func TestSameAnswer(t *testing.T) {
	t.Parallel()
	up := startUp(t)
	want := enumerated(t)
	var first posteriors
	for _, way := range []struct {
		name  string
		start func(*testing.T) []string
	}{
		{"cli", func(t *testing.T) []string { return []string{"sh", sameAnswer + "cli.sh"} }},
		{"http", func(t *testing.T) []string {
			if _, err := exec.LookPath("curl"); err != nil {
				t.Skip("no curl on PATH")
			}
			return []string{"sh", sameAnswer + "http.sh"}
		}},
		{"python", func(t *testing.T) []string { return []string{python(t), sameAnswer + "ask.py"} }},
		{"node", func(t *testing.T) []string {
			digest, _ := command(t, "btn", "model", "put", examples+"heating.bif", "--nats", up.nats)
			return []string{nodeClient(t).argv[0], sameAnswer + "ask.mjs", strings.TrimSpace(digest)}
		}},
		{"go", func(t *testing.T) []string { return []string{"go", "run", sameAnswer, examples + "heating.bif"} }},
	} {
		t.Run(way.name, func(t *testing.T) {
			argv := way.start(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			btn, _ := filepath.Abs(filepath.Join(bin, "btn"))
			src, _ := filepath.Abs(pythonDir + "/src")
			cmd.Env = append(os.Environ(), "BTN="+btn, "BTN_NATS="+up.nats, "BTN_GATEWAY="+up.gateway,
				"PYTHONPATH="+src, "PYTHONDONTWRITEBYTECODE=1")
			var log bytes.Buffer
			cmd.Stderr = &log
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %v\n%s%s", argv, err, out, log.Bytes())
			}
			got := posteriorsIn(t, out)
			if first == nil {
				first = got
			}
			if !maps.EqualFunc(got, first, maps.Equal) {
				t.Errorf("%v says\n%v\nthe command line says\n%v", argv, got, first)
			}
			for v, of := range want {
				for s, p := range of {
					if q, ok := got[v][s]; !ok || math.Abs(q-p) > 1e-12 {
						t.Errorf("%v: P(%s = %s) is %v, enumeration says %v", argv, v, s, q, p)
					}
				}
			}
		})
	}
}

// posteriors are variable → state → probability.
type posteriors = map[string]map[string]float64

// posteriorsIn finds the posteriors in an output: by themselves, of a result, or of an answer's only result.
func posteriorsIn(t *testing.T, out []byte) posteriors {
	t.Helper()
	type result struct {
		query.Answers
		ByName posteriors `json:"posteriors"`
	}
	var said struct {
		result
		Results []result
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range append(said.Results, said.result) {
		if r.ByName != nil {
			return r.ByName
		}
		if r.Marginals != nil {
			return r.Posteriors()
		}
	}
	t.Fatalf("no posteriors: %s", out)
	return nil
}

// enumerated computes the posteriors that the scripts ask for, over all assignments of the model.
func enumerated(t *testing.T) posteriors {
	t.Helper()
	f, err := os.Open(examples + "heating.bif")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := formats.Read(f, formats.BIF, "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{"season": "winter", "complaint": "yes"}
	targets := map[string]bool{"boiler": true, "pump": true, "valve": true}
	total, weights := 0.0, posteriors{}
	x := make([]int, len(m.Domains))
	for {
		w := 1.0
		for _, f := range m.Factors {
			table := f.Table.(*tensor.Dense)
			at := 0
			for k, v := range f.Scope {
				at = at*table.Shape[k] + x[v]
			}
			w *= table.Data[at]
		}
		for v, s := range given {
			for i, name := range m.Names {
				if name == v && m.States[i][x[i]] != s {
					w = 0
				}
			}
		}
		total += w
		for i, name := range m.Names {
			if targets[name] {
				if weights[name] == nil {
					weights[name] = map[string]float64{}
				}
				weights[name][m.States[i][x[i]]] += w
			}
		}
		i := len(x) - 1
		for ; i >= 0 && x[i] == m.Domains[i]-1; i-- {
			x[i] = 0
		}
		if i < 0 {
			break
		}
		x[i]++
	}
	for _, of := range weights {
		for s := range of {
			of[s] /= total
		}
	}
	return weights
}
