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
	`nil\b|<nil>|%!|runtime|map\[|\[\]|0x[0-9a-f]|nuid|nats:|EOF|\berr\b`)

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
	settings := []string{"method", "memory", "budget", "accuracy", "components", "learn_flops", "seed", "no_exact", "nothing"}
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
