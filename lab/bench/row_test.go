package bench

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func ended(stdout string) process {
	return process{
		Stdout: []byte(stdout),
		Reason: "exit status 0",
		Wall:   1500 * time.Millisecond,
		CPU:    2 * time.Second,
		Peak:   64 << 20,
	}
}

func estimate(line string) string {
	return strings.Replace(line, `"exact":true,"method":"exact"`, `"exact":false,"method":"symmetry-cp"`, 1)
}

func TestJudge(t *testing.T) {
	zero := strings.Replace(exactLine, `"log10_z":1,"zero":false`, `"log10_z":null,"zero":true`, 1)
	marginals := strings.Replace(exactLine, `"timings_ms"`, `"marginals":[[0.25,0.75]],"timings_ms"`, 1)
	at := func(v float64) reference { return reference{Log10Z: &v, Tolerance: 5e-4} }
	withMar := func(p float64) reference {
		r := at(1)
		r.Marginals = [][]float64{{p, 1 - p}}
		return r
	}
	failed := `{"status":"error","error":{"code":"over_budget","message":"too large","stage":"learn"}}`
	for name, c := range map[string]struct {
		process process
		ref     reference
		mar     bool
		want    Status
		note    string
	}{
		"right": {ended(exactLine), at(1.0004), false, OK, ""},
		"off":   {ended(exactLine), at(1.0006), false, Wrong, "log10 Z 1, the reference is 1.0006"},
		"off estimate": {
			ended(estimate(exactLine)), at(1.0006), false, Estimate, "the reference is 1.0006",
		},
		"right estimate":          {ended(estimate(exactLine)), at(1), false, OK, ""},
		"no reference":            {ended(exactLine), reference{}, true, Unchecked, ""},
		"estimate, no reference":  {ended(estimate(exactLine)), reference{}, false, Estimate, "no reference"},
		"zero":                    {ended(zero), at(math.Inf(-1)), false, OK, ""},
		"zero, but should not be": {ended(zero), at(1), false, Wrong, "log10 Z −∞ (Z = 0), the reference is 1"},
		"should be zero":          {ended(exactLine), at(math.Inf(-1)), false, Wrong, "the reference is −∞"},
		"marginals":               {ended(marginals), withMar(0.250009), true, OK, ""},
		"marginals off":           {ended(marginals), withMar(0.25002), true, WrongMar, ""},
		"estimated marginals off": {ended(estimate(marginals)), withMar(0.25002), true, Estimate, ""},
		"marginals missing":       {ended(exactLine), withMar(0.25), true, NoMar, ""},
		"marginals nobody wants":  {ended(exactLine), withMar(0.25), false, OK, ""},
		"reference unreadable": {
			ended(exactLine), reference{Err: errors.New("bad file")}, false, NoReference, "bad file",
		},
		"the program's own errors": {ended(failed), at(1), false, "over_budget", "too large"},
		"timeout": {
			process{Ending: endedTimeout, Reason: "killed after 1s"}, at(1), false, Timeout,
			"killed after 1s",
		},
		"killed": {
			process{Ending: endedKilled, Reason: "signal: killed"}, at(1), false, Killed,
			"signal: killed",
		},
		"not started": {process{Ending: endedUnborn, Reason: "no such file"}, at(1), false, Broken, "no such file"},
		"silent": {
			process{Reason: "exit status 2", Stderr: "panic: x"}, at(1), false, Broken,
			"exit status 2 panic: x",
		},
	} {
		r := Config{Set: "s", Mar: c.mar}.row(Model{Name: "m", Variables: 7}, c.process, c.ref)
		if r.Status != c.want || !strings.Contains(r.Note, c.note) {
			t.Errorf("%s: %s %q, want %s %q", name, r.Status, r.Note, c.want, c.note)
		}
		if r.Error != nil && math.IsInf(*r.Error, 0) {
			t.Errorf("%s: an infinite difference", name)
		}
		if r.Status.Solved() != (c.want == OK || c.want == Unchecked) || r.Set != "s" || r.Model != "m" ||
			r.Variables != 7 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func TestRowTakesWhatWasReported(t *testing.T) {
	line := strings.Replace(exactLine, `"peak_bytes":256}`, `"peak_bytes":256,"slices":8},"run":{"flops":130}`, 1)
	r := Config{}.row(Model{Name: "m"}, ended(line), reference{})
	if *r.Width != 3 || *r.Log2Table != 4 || *r.Flops != 120 || *r.Bytes != 256 || *r.RealFlops != 130 ||
		*r.Slices != 8 {
		t.Errorf("got %+v", r)
	}
	if r.Wall != 1.5 || r.CPU != 2 || r.Peak != 64<<20 || *r.Log10Z != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestNoSlicesAreOnePart(t *testing.T) {
	line := strings.Replace(exactLine, `"peak_bytes":256}`, `"peak_bytes":256,"slices":0}`, 1)
	if r := (Config{}).row(Model{}, ended(line), reference{}); r.Slices == nil || *r.Slices != 1 {
		t.Errorf("got %v", r.Slices)
	}
}

func TestNotesNameNoFolder(t *testing.T) {
	line := `{"status":"error","error":{"code":"bad_input","message":"/some/where/m.uai:\n line 3"}}`
	for folder, want := range map[string]string{
		"/some/where": "FOLDER/m.uai: line 3", ".": "/some/where/m.uai: line 3", "line": "/some/where/m.uai: line 3",
	} {
		if r := (Config{Folder: folder}).row(Model{}, ended(line), reference{}); r.Note != want {
			t.Errorf("%s: note %q", folder, r.Note)
		}
	}
}
