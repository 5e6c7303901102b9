package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
)

// internals matches words of Go and its libraries, which mean nothing to a caller.
var internals = regexp.MustCompile(`\bjson:|\bGo\b|unmarshal|struct|reflect|strconv|goroutine|interface|` +
	`nil\b|<nil>|%!|runtime|map\[|\[\]|0x[0-9a-f]|nuid|nats:|EOF|\berr\b|` +
	`\b(?:bus|client|modeljson|pipeline|wire): |^model\.|\bQuery\b`)

// TestErrorsNameTheField: of a query that is given flat by itself, with names of variables; there are no workers here.
func TestErrorsNameTheField(t *testing.T) {
	s := start(t, false, nil)
	for fields, message := range map[string]string{
		`"evidence": {"weet": "yes"}`:                 `evidence: no variable "weet": did you mean "wet"?`,
		`"evidence": {"wet": "yes"}, "evid": "1 0 0"`: `evid: it excludes evidence and event`,
		`"evid": "1 0 7"`: `evid: uai: line 1: invalid evidence: ` +
			`observation 0: variable 0 at value 7, its domain is 0 to 1`,
		`"best": 2`: `best: it lists the most probable explanations ` +
			`of all variables: mpe is needed beside it`,
		`"marginals": "x"`:                                    `body: line 3: field marginals: a string, where true or false is needed`,
		`"queries": [{"marginals": "x"}]`:                     `body: line 3: field queries.marginals: a string, where true or false is needed`,
		`"believe": {"rain": [0.2, 0.2]}`:                     `believe: the probabilities of variable "rain" sum to 0.4, not to 1`,
		`"information": {"target": "wet", "candidates": [1]}`: `information.candidates: variable "wet" is the target`,
		`"settings": {"bond": -1}`:                            `settings.bond: -1 is not from 0 to 1048576`,
		`"settings": {"method": "magic"}`: `settings.method: "magic" is none of ` +
			`auto, exact, symmetry-cp, truncated, regions, circuit, sampled`,
		`"deadline_ms": -1`: `deadline_ms: -1 is negative`,
	} {
		f := want[Failure](s, 400, "POST", "/v1/infer", `{"model": `+rain+`, `+fields+`}`)
		if f.Error.Message != message {
			t.Errorf("%s: %q, want %q", fields, f.Error.Message, message)
		}
	}
	for path, message := range map[string]string{
		"/v1/models/nope":                       `no registered model is called "nope"`,
		"/v1/models/" + strings.Repeat("0", 64): `no model is registered under the digest ` + strings.Repeat("0", 64),
		"/v1/jobs/nope":                         `the job is unknown: it is not stored, nor is an answer of it: nope`,
	} {
		f := want[Failure](s, 404, "GET", path, "")
		if f.Error.Message != message {
			t.Errorf("%s: %q, want %q", path, f.Error.Message, message)
		}
	}
	f := want[Failure](s, 400, "POST", "/v1/infer", "\x1f\x8b\x08", "Content-Encoding", "gzip")
	if f.Error.Message != "body: it ends in the middle" {
		t.Errorf("a broken body: %q", f.Error.Message)
	}
}

// TestErrorsSpeakPlainly: the reasons for wrong requests are in words of requests.
func TestErrorsSpeakPlainly(t *testing.T) {
	s := start(t, false, nil)
	values := []string{`null`, `7`, `-1.5`, `1e999`, `"x"`, `"cloudy"`, `true`, `[]`, `{}`, `[[]]`, `[null]`, `{"a": {}}`,
		`[7, "x"]`, `"\u0000"`, `1e20`}
	fields := []string{
		"job", "tenant", "model", "text", "format", "model_name", "queries", "settings", "deadline_ms", "async", "evidence", "event", "evid",
		"label", "marginals", "joint", "targets", "mpe", "map", "samples", "seed", "gradients",
		"information", "sensitivity", "interventions",
		"nothing", "",
	}
	settings := []string{"method", "memory", "budget", "accuracy", "components", "bond", "seed", "no_exact", "nothing"}
	var bodies []string
	for _, v := range values {
		for _, f := range fields {
			if f == "model" {
				bodies = append(bodies, fmt.Sprintf(`{"model": %s}`, v))
				continue
			}
			bodies = append(bodies, fmt.Sprintf(`{"model": %s, %q: %s}`, rain, f, v),
				fmt.Sprintf(`{"model": %s, "queries": [{%q: %s}]}`, rain, f, v))
		}
		for _, f := range settings {
			bodies = append(bodies, fmt.Sprintf(`{"model": %s, "settings": {%q: %s}}`, rain, f, v))
		}
		for _, f := range []string{"variables", "factors", "bayes", "basetensor_model"} {
			bodies = append(bodies, fmt.Sprintf(`{"model": {"basetensor_model": 1, %q: %s}}`, f, v))
		}
		for _, f := range []string{"name", "domain", "states"} {
			bodies = append(bodies, fmt.Sprintf(`{"model": {"basetensor_model": 1, "variables": [{%q: %s}], "factors": []}}`, f, v))
		}
		for _, f := range []string{"scope", "dense", "cp", "symmetric", "symmetry_cp", "low_rank"} {
			bodies = append(bodies, fmt.Sprintf(
				`{"model": {"basetensor_model": 1, "variables": [{"domain": 2}], "factors": [{"scope": [0], %q: %s}]}}`, f, v))
		}
		bodies = append(bodies, v)
	}
	bodies = append(bodies, ``, `{`, `{"model`, `{"model": `+rain, `{"model": `+rain+`} x`,
		"\x00", `{"text": "MARKOV"}`, `{"text": "network x {"}`, `{"text": "<"}`,
		`{"text": "p cnf 1"}`, `{"text": "x", "format": "bif"}`, `{"text": "net {}", "format": "net"}`)
	seen := 0
	check := func(what string, status int, b []byte) {
		t.Helper()
		var f Failure
		if status < 400 || json.Unmarshal(b, &f) != nil {
			return
		}
		seen++
		if found := internals.FindString(f.Error.Message); found != "" || f.Error.Message == "" || status >= 500 {
			t.Errorf("%d %.300s: %q in: %s", status, what, found, f.Error.Message)
		}
	}
	for _, body := range bodies {
		r := s.ask("POST", "/v1/infer", strings.Replace(body, "{", `{"async": true, `, 1))
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		check(body, r.StatusCode, b)
	}
	for _, of := range [][3]string{
		{"GET", "/v1/jobs?limit=x", ""},
		{"GET", "/v1/jobs?limit=99999999999999999999", ""},
		{"GET", "/v1/jobs?after=x", ""},
		{"GET", "/v1/jobs?state=x", ""},
		{"GET", "/v1/jobs?after=9999999999999999999999-x", ""},
		{"GET", "/v1/jobs/x", ""},
		{"GET", "/v1/jobs/x.y.z", ""},
		{"GET", "/v1/jobs/%00", ""},
		{"GET", "/v1/jobs/x/model", ""},
		{"GET", "/v1/jobs/unknown/events", ""},
		{"DELETE", "/v1/jobs/unknown", ""},
		{"GET", "/v1/models/x", ""},
		{"GET", "/v1/models/x@y", ""},
		{"GET", "/v1/models/abcdef", ""},
		{"GET", "/v1/models/x@99999999999999999999", ""},
		{"DELETE", "/v1/models/x", ""},
		{"PUT", "/v1/models/a@b", rain},
		{"PUT", "/v1/models/", rain},
		{"POST", "/v1/models", "x"},
		{"POST", "/v1/models", ""},
		{"POST", "/v1/models?format=x", "x"},
		{"POST", "/v1/models", `{"basetensor_model": "x"}`},
		{"POST", "/v1/convert", rain},
		{"POST", "/v1/convert?to=x", rain},
		{"POST", "/v1/convert?to=bif", rain},
		{"POST", "/v1/convert?to=uai", "x"},
		{"POST", "/v1/dead-letters/x/replay", ""},
		{"POST", "/v1/dead-letters/x.y.z/replay", ""},
		{"GET", "/page/x", ""},
		{"PUT", "/healthz", ""},
		{"GET", "/x", ""},
	} {
		r := s.ask(of[0], of[1], of[2])
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		check(of[0]+" "+of[1], r.StatusCode, b)
	}
	if seen < 500 {
		t.Errorf("%d errors were seen", seen)
	}
}
