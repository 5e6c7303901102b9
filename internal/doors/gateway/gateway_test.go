package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/basetensor/basetensor/schemas"
)

// rain is P(rain) and P(wet | rain), by names.
const rain = `{"basetensor_model": 1, "variables": [{"name": "rain", "domain": 2, "states": ["no", "yes"]},
{"name": "wet", "domain": 2, "states": ["no", "yes"]}], "factors": [{"scope": [0], "dense": {"values": [0.8, 0.2]}},
{"scope": [0, 1], "dense": {"values": [0.9, 0.1, 0.2, 0.8]}}]}`

// wetRain is P(rain = yes | wet = yes) of it.
const wetRain = 0.2 * 0.8 / (0.2*0.8 + 0.8*0.1)

// service is a gateway in front of workers.
type service struct {
	*testing.T
	stack   *embedded.Stack
	gateway *Gateway
	url     string
	key     string
}

// start runs a stack with workers, or without, and a gateway.
func start(t *testing.T, workers bool, change func(*Config)) *service {
	t.Helper()
	stack, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stack.Close() })
	s := &service{T: t, stack: stack}
	if workers {
		s.work()
	}
	nc, err := stack.Connect("gateway")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Connect: Connection{NC: nc}}
	if change != nil {
		change(&c)
	}
	if s.gateway, err = New(c); err != nil {
		t.Fatal(err)
	}
	server, err := Serve("127.0.0.1:0", s.gateway)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// work starts workers.
func (s *service) work() {
	go s.stack.Run(context.WithoutCancel(s.Context()), pipeline.Config{})
}

// keys is a change of Config: a file of keys.
func keys(t *testing.T, text string) func(*Config) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKeys(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config) { c.Keys = k }
}

// ask sends a request. Headers are pairs of name and value.
func (s *service) ask(method, path, body string, headers ...string) *http.Response {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { response.Body.Close() })
	return response
}

// want asks and reads the body of a response with this status.
func want[T any](s *service, status int, method, path, body string, headers ...string) (v T) {
	s.Helper()
	r := s.ask(method, path, body, headers...)
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.Fatal(err)
	}
	if r.StatusCode != status {
		s.Fatalf("%s %s: %s, want %d: %.600s", method, path, r.Status, status, b)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		s.Fatalf("%s %s: %v: %.600s", method, path, err, b)
	}
	documented(s, reflect.TypeFor[T](), b)
	return v
}

// refused makes a request and expects this status and a message with these words.
func (s *service) refused(status int, words, method, path, body string, headers ...string) {
	s.Helper()
	f := want[Failure](s, status, method, path, body, headers...)
	if f.Error.Stage != Stage || f.Error.Code == "" || !strings.Contains(f.Error.Message, words) {
		s.Errorf("%s %s: %+v, want %q", method, path, f.Error, words)
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12 }

func TestInferByName(t *testing.T) {
	s := start(t, true, nil)
	body := `{"model": ` + rain + `, "queries": [{"evidence": {"wet": "yes"}, "marginals": true},
		{"evidence": {"wet": "yes"}, "event": {"rain": 1}}, {"evidence": {"1": [0.1, 0.4]}, "joint": ["wet", "rain"]},
		{"evidence": {"wet": {"no": 0.1, "yes": 0.4}}}]}`
	a := want[Answer](s, http.StatusOK, "POST", "/v1/infer", body)
	if a.Status != "ok" || len(a.Results) != 5 {
		t.Fatalf("%+v", a)
	}
	if p := a.Results[0].Marginals[0].P[1]; !near(p, wetRain) {
		t.Errorf("P(rain | wet) = %v, want %v", p, wetRain)
	}
	if p := a.Results[0].Posteriors(); !near(p["rain"]["yes"], wetRain) {
		t.Errorf("by name: %+v", p)
	}
	if r := a.Results[2].Ratio; r == nil || !near(*r.P, wetRain) {
		t.Errorf("P(rain | wet) as an event: %v, want %v", r, wetRain)
	}
	// P(wet, rain | weights): 0.8·0.9·0.1, 0.2·0.2·0.1, 0.8·0.1·0.4, 0.2·0.8·0.4, their sum is Z
	soft := []float64{0.072, 0.004, 0.032, 0.064}
	for i, p := range a.Results[3].Joint.P {
		if !near(p, soft[i]/0.172) {
			t.Errorf("joint %d is %v, want %v", i, p, soft[i]/0.172)
		}
	}
	if z := a.Results[4].LogZ; z == nil || !near(math.Exp(*z), 0.172) {
		t.Errorf("Z under weights by name: %v, want ln 0.172", z)
	}

	flat := `{"text": "BAYES 2 2 2 2 1 0 2 0 1 2 0.8 0.2 4 0.9 0.1 0.2 0.8", "evid": "1 1 1", "marginals": true, "job": "flat-1"}`
	for range 2 { // the same request is the same job
		b := want[Answer](s, http.StatusOK, "POST", "/v1/infer", flat)
		if b.Job != "flat-1" || !near(b.Results[0].Marginals[0].P[1], wetRain) {
			t.Errorf("%+v", b)
		}
	}
	s.refused(http.StatusConflict, "taken", "POST", "/v1/infer", strings.Replace(flat, "0.8 0.2", "0.7 0.3", 1))

	accepted := want[Submitted](s, http.StatusAccepted, "POST", "/v1/infer", `{"model": `+rain+`, "async": true, "job": "later"}`)
	if accepted.Job != "later" || accepted.Status != StatusPending || len(accepted.Digest) != 64 {
		t.Errorf("%+v", accepted)
	}
}

// TestModels: registered, found by the beginning of a digest, asked by name, converted, removed.
func TestModels(t *testing.T) {
	s := start(t, true, nil)
	m := want[Model](s, 201, "POST", "/v1/models", rain, "Content-Type", "text/plain")
	again := want[Model](s, 201, "POST", "/v1/models?format=json", zipped(t, rain), "Content-Encoding", "gzip")
	if all := want[Models](s, 200, "GET", "/v1/models", ""); len(all.Models) != 1 ||
		all.Models[0].Digest != m.Digest || again.Digest != m.Digest {
		t.Errorf("%+v, %+v and %+v", m, again, all)
	}
	name := m.Digest[:8]
	a := want[Answer](s, 200, "POST", "/v1/infer",
		`{"model_name": "`+name+`", "evidence": {"wet": "yes"}, "targets": ["rain"], "job": "named"}`)
	if p := a.Results[0].Marginals; len(p) != 1 || !near(p[0].P[1], wetRain) {
		t.Errorf("%v, want %v", p, wetRain)
	}
	s.refused(400, `did you mean "wet"`, "POST", "/v1/infer", `{"model_name": "`+name+`", "evidence": {"weet": "yes"}}`)
	for _, g := range []Graph{
		want[JobModel](s, 200, "GET", "/v1/jobs/named/model", "").Graph, want[Graph](s, 200, "GET", "/v1/models/"+name+"?format=graph", ""),
	} {
		if len(g.Variables) != 2 || g.Variables[1].Name != "wet" || g.Variables[1].States[1] != "yes" || len(g.Factors) != 2 ||
			!slices.Equal(g.Factors[1].Scope, []int{0, 1}) || g.Factors[1].Kind != "dense" {
			t.Errorf("%+v", g)
		}
	}
	if q := want[JobModel](s, 200, "GET", "/v1/jobs/named/model", "").Queries; len(q) != 1 ||
		q[0].Hard[0].Var != 1 || q[0].Hard[0].Value != 1 {
		t.Errorf("%+v", q)
	}
	native := want[map[string]any](s, 200, "GET", "/v1/models/"+name, "")
	if of := want[map[string]any](s, 200, "GET", "/v1/jobs/named/model?format=json", ""); !reflect.DeepEqual(of, native) {
		t.Errorf("that of the job is %v, want %v", of, native)
	}
	s.refused(400, "is no format", "GET", "/v1/jobs/named/model?format=doc", "")
	for format, begins := range map[string]string{"": `{`, "uai": "MARKOV"} {
		b, err := io.ReadAll(s.ask("GET", "/v1/models/"+name+"?format="+format, "").Body)
		if err != nil || !strings.HasPrefix(string(b), begins) {
			t.Errorf("as %q: %.80q, %v", format, b, err)
		}
		if back, err := parseModel(b, format, 0); err != nil || back.Domains[1] != 2 {
			t.Errorf("as %q: %v", format, err)
		}
	}
	s.refused(400, "is no format", "GET", "/v1/models/"+name+"?format=doc", "")
	s.refused(400, "model:", "POST", "/v1/models", "MARKOV 1")
	s.refused(404, "no registered model", "GET", "/v1/models/nobody", "")
	other := strings.Replace(rain, "0.8, 0.2]", "0.7, 0.3]", 1)
	for _, put := range []struct {
		model   string
		version int
	}{{rain, 1}, {other, 2}, {other, 2}} {
		if v := want[Model](s, 200, "PUT", "/v1/models/weather", put.model); v.Name != "weather" || v.Version != put.version {
			t.Errorf("%+v, want version %d", v, put.version)
		}
	}
	for of, p := range map[string]float64{"weather@1": wetRain, "weather": 0.3 * 0.8 / (0.3*0.8 + 0.7*0.1)} {
		a := want[Answer](s, 200, "POST", "/v1/infer", `{"model_name": "`+of+`", "evidence": {"wet": "yes"}, "targets": ["rain"]}`)
		if got := a.Results[0].Marginals[0].P[1]; !near(got, p) {
			t.Errorf("%s: %v, want %v", of, got, p)
		}
	}
	if all := want[Models](s, 200, "GET", "/v1/models", ""); len(all.Models) != 2 || all.Models[0].Name != "weather" {
		t.Errorf("%+v", all)
	}
	s.refused(400, "cannot be removed alone", "DELETE", "/v1/models/weather@1", "")
	want[Model](s, 200, "DELETE", "/v1/models/weather", "")
	s.refused(404, "weather", "GET", "/v1/models/weather", "")
	want[Model](s, 200, "DELETE", "/v1/models/"+name, "")
	s.refused(404, "no model", "GET", "/v1/models/"+name, "")
	s.refused(404, "digest", "GET", "/v1/models/"+m.Digest, "")
}

// TestDeadLetters: a message that a stage gave up is listed, and only its tenant's key runs it
// again.
func TestDeadLetters(t *testing.T) {
	s := start(t, true, keys(t, "a 0123456789abcdef\nb 0123456789abcdeg\n* 0123456789abcdeh\n"))
	s.key = "0123456789abcdef"
	nc, err := s.stack.Connect("publisher")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish(wire.ModelSubject(wire.Lane("a"), "a.late"), []byte("no message")); err != nil {
		t.Fatal(err)
	}
	all := eventually(s, "/v1/dead-letters", func(d DeadLetters) bool { return len(d.DeadLetters) == 1 })
	if l := all.DeadLetters[0]; l.Job != "a.late" || l.Error.Code != fault.BadInput || l.Time == 0 {
		t.Errorf("%+v", l)
	}
	s.refused(404, "job", "POST", "/v1/dead-letters/none/replay", "")
	for key, n := range map[string]int{"0123456789abcdeg": 0, "0123456789abcdeh": 1} {
		s.key = key
		if d := want[DeadLetters](s, 200, "GET", "/v1/dead-letters", ""); len(d.DeadLetters) != n {
			t.Errorf("%+v, want %d", d, n)
		}
		if j := want[Jobs](s, 200, "GET", "/v1/jobs", ""); j.Total != n {
			t.Errorf("%+v, want %d", j, n)
		}
	}
	s.key = "0123456789abcdeg"
	s.refused(404, "not one of tenant b", "POST", "/v1/dead-letters/a.late/replay", "")
	s.refused(404, "not one of tenant b", "GET", "/v1/jobs/a.late", "")
	s.refused(403, "may not remove", "DELETE", "/v1/models/"+strings.Repeat("0", 64), "")
	s.key = "0123456789abcdef"
	if again := want[Submitted](s, 202, "POST", "/v1/dead-letters/late/replay", ""); again.Job != "a.late" {
		t.Errorf("%+v", again)
	}
	eventually(s, "/v1/jobs/late", func(j Job) bool { return j.Status == "error" })
}

func TestStatus(t *testing.T) {
	s := start(t, true, nil)
	st := eventually(s, "/v1/status", func(st Status) bool {
		return len(st.Stages) == 4 && st.Stages[0].Asking > 0 && st.Stages[3].Asking > 0
	})
	if len(st.Lanes) != 16 || len(st.Streams) == 0 || st.Access.Keys || st.Version == "" {
		t.Errorf("%+v", st)
	}
	want[Answer](s, 200, "POST", "/v1/infer", `{"model": `+rain+`}`)
	eventually(s, "/v1/status", func(st Status) bool {
		return !slices.ContainsFunc(st.Stages, func(x StageStatus) bool { return x.Workers != 1 || len(x.Versions) != 1 || x.Rate <= 0 })
	})
}

// TestWhatIsRefused: refused requests do not reach the workers: there are none here.
func TestWhatIsRefused(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Body = 4096; c.Hosts = []string{"gateway.internal"} })
	infer := func(status int, words, body string, headers ...string) {
		t.Helper()
		s.refused(status, words, "POST", "/v1/infer", body, headers...)
	}
	infer(400, `queries[0].evidence: no variable "weet": did you mean "wet"`,
		`{"model": `+rain+`, "queries": [{"evidence": {"weet": "yes"}}]}`)
	infer(400, `queries[1].samples: -1 samples`,
		`{"model": `+rain+`, "queries": [{"evidence": {"wet": 1}, "event": {"rain": 1}}, {"samples": -1}]}`)
	infer(400, `queries[1].joint: `, `{"model": `+rain+`, "queries": [{}, {"joint": ["wet", "wet"]}]}`)
	infer(400, "contradictory", `{"model": `+rain+`, "evidence": {"wet": "yes", "1": 0}}`)
	infer(400, "exactly one of model, text and model_name is needed, not 0", `{}`)
	infer(400, "line 2", "{\n\"job\": }")
	infer(400, "field job", `{"job": 3}`)
	infer(400, "unknown field", `{"marginal": true}`)
	infer(400, "something follows", `{} {}`)
	infer(400, "model: ", `{"model": {"basetensor_model": 1}}`)
	infer(400, "not both", `{"model": `+rain+`, "marginals": true, "queries": [{}]}`)
	infer(404, "no registered model", `{"model_name": "nobody"}`)
	infer(404, "no model's digest", `{"model_name": "0123456789"}`)
	infer(415, "application/json", `{}`, "Content-Type", "text/plain")
	infer(415, "encoding", `{}`, "Content-Encoding", "br")
	infer(413, "4096", `{"text": "`+strings.Repeat("x", 5000)+`"}`)
	infer(413, "4096", zipped(t, `{"text": "`+strings.Repeat("x", 5000)+`"}`), "Content-Encoding", "gzip")
	infer(403, "another origin", `{}`, "Origin", "http://elsewhere")
	infer(403, "another origin", `{}`, "Sec-Fetch-Site", "cross-site")
	infer(400, "exactly one", zipped(t, `{}`), "Content-Encoding", "gzip", "Origin", s.url)
	infer(421, "--host-name", `{}`, "Host", "elsewhere.example:8080")
	infer(400, "exactly one", `{}`, "Host", "gateway.internal:8080")
	s.refused(405, "takes POST", "DELETE", "/v1/infer", "")
	s.refused(404, "/openapi.json", "GET", "/v2", "")
	if got := want[Health](s, 200, "GET", "/healthz", ""); got.Status != "ok" {
		t.Errorf("%+v", got)
	}
}

func zipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestKeys: a caller without a key gets nothing, a tenant's key gives access to its own jobs, and a
// read-only key changes nothing.
func TestKeys(t *testing.T) {
	s := start(t, true, keys(t, "a 0123456789abcdef\nb sha256:"+
		"f3b1d9e27eb3a3c1ae3cbbd1f7d64f04a1aee0b8d2e0e3a1f0ff3b4e8e8b5d55 # of nothing\nc fedcba9876543210 read-only\n"))
	body := `{"model": ` + rain + `, "job": "one"}`
	s.refused(401, "a key is needed", "POST", "/v1/infer", body)
	s.key = "0123456789abcdeF"
	s.refused(401, "not known", "POST", "/v1/infer", body)
	s.key = "fedcba9876543210"
	s.refused(403, "read only", "POST", "/v1/infer", body)
	s.key = "0123456789abcdef"
	if a := want[Answer](s, 200, "POST", "/v1/infer", body); a.Job != "a.one" || a.Status != "ok" {
		t.Errorf("%+v", a)
	}
	s.refused(404, "not one of tenant a", "POST", "/v1/infer", `{"model": `+rain+`, "job": "b.one"}`)
	s.refused(403, "not that of tenant", "POST", "/v1/infer", `{"model": `+rain+`, "tenant": "b"}`)
	s.key = ""
	want[map[string]any](s, 200, "GET", "/openapi.json", "")
}

// TestElements: those of the lists of an object's own fields.
func TestElements(t *testing.T) {
	for text, n := range map[string]int{
		`{}`:                          0,
		`{"queries": [{}, {}, null]}`: 3,
		`{"a": [1, [2, 3]], "b": {"c": [4, 5]}, "d": "[,", "e": ["\",", 6]}`: 4,
		`[1, 2]`:  0,
		`]]]}{[,`: 0,
	} {
		if got := countElements([]byte(text)); got != n {
			t.Errorf("%s: %d, want %d", text, got, n)
		}
	}
}

func TestFilesOfKeys(t *testing.T) {
	for text, words := range map[string]string{
		"":                          "no keys",
		"a":                         "line 1: a tenant, a key",
		"# x\na short":              "line 2: a key has at least 16",
		"a.b 0123456789abcdef":      "neither",
		"operator 0123456789abcdef": "neither",
		"a sha256:00":               "64 hexadecimal",
		"a 0123456789abcdef ro":     "read-only",
	} {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenKeys(file, slog.Default())
		if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "0123456789abcdef") ||
			fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v, want %q", text, err, words)
		}
	}
}

// TestTheLengthOfKeysIsDocumented: the page on HTTP has the least length, and the error of a shorter key.
func TestTheLengthOfKeysIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/http.md")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "FILE")
	for length, isKey := range map[int]bool{leastKey - 1: false, leastKey: true} {
		if err := os.WriteFile(file, []byte("# keys\nclinic "+strings.Repeat("k", length)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := OpenKeys(file, slog.New(slog.DiscardHandler))
		if isKey != (err == nil) {
			t.Errorf("a key of %d characters: %v", length, err)
		}
		if err != nil && !strings.Contains(string(text), "`"+strings.Replace(err.Error(), file, "FILE", 1)+"`") {
			t.Errorf("the page does not have the error %q", err)
		}
	}
	if words := fmt.Sprintf("at least %d characters", leastKey); !strings.Contains(string(text), "A key has "+words) {
		t.Errorf("the page does not say %q", words)
	}
}

// TestOperationsAreDocumented: the document has the routes that there are, and no other.
func TestOperationsAreDocumented(t *testing.T) {
	b, err := schemas.FS.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for path, of := range doc.Paths {
		for method := range of {
			if method != "parameters" {
				told[strings.ToUpper(method)+" "+path] = true
			}
		}
	}
	var g Gateway
	served := map[string]bool{}
	for _, r := range g.routes() {
		served[r.Method+" "+strings.TrimSuffix(r.Path, "{$}")] = true
	}
	if got, want := slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(told)); !slices.Equal(got, want) {
		t.Errorf("served are %q, documented %q", got, want)
	}
}

// TestPanicsAreAnswers: of a handler, and before anything was written.
func TestPanicsAreAnswers(t *testing.T) {
	s := start(t, false, nil)
	w := httptest.NewRecorder()
	h := s.gateway.guarded(route{Method: "GET", Path: "/panics", handle: func(*call) error { panic("no") }})
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/panics", nil))
	if w.Code != 500 || !strings.Contains(w.Body.String(), `"code":"internal"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestModelFilesAsBodies: in any format and content type, and the name of a registered model in the place of a model.
func TestModelFilesAsBodies(t *testing.T) {
	s := start(t, true, nil)
	const bif = `network rain {}
variable rain { type discrete [ 2 ] { no, yes }; }
variable wet { type discrete [ 2 ] { no, yes }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.2, 0.8; }
`
	wet := func(a Answer) {
		t.Helper()
		if a.Status != "ok" || len(a.Results) != 1 || !near(a.Results[0].Posteriors()["rain"]["yes"], wetRain) {
			t.Errorf("%+v", a)
		}
	}
	for _, kind := range []string{"application/x-www-form-urlencoded", "text/x-bif", "application/octet-stream", "application/json", ""} {
		for _, text := range []string{bif, rain} {
			wet(want[Answer](s, 200, "POST", "/v1/infer?evidence=wet=yes", text, "Content-Type", kind))
		}
	}
	a := want[Answer](s, 200, "POST", "/v1/infer?evidence=wet=yes&target=rain&job=by-hand&method=exact&format=bif", bif,
		"Content-Type", "text/plain")
	wet(a)
	if len(a.Results[0].Marginals) != 1 || a.Job != "by-hand" {
		t.Errorf("%+v", a)
	}
	if a := want[Answer](s, 200, "POST", "/v1/infer?mpe=true", bif); a.Results[0].MPE.States[0] != "no" || a.Results[0].Marginals != nil {
		t.Errorf("%+v", a.Results[0])
	}
	if a := want[Answer](s, 200, "POST", "/v1/infer?mpe=true&best=3", bif); len(a.Results[0].MPE.Others) != 2 {
		t.Errorf("%+v", a.Results[0].MPE)
	}
	for path, words := range map[string]string{
		"/v1/infer?best=few&mpe=true": "a whole number is needed", "/v1/infer?best=2": "mpe is needed",
		"/v1/infer?evidence=wet": "VARIABLE=VALUE", "/v1/infer?evidence=wet=no&evidence=wet=yes": "twice",
		"/v1/infer?evidnce=x":   "evidence, async",
		"/v1/infer?mpe=perhaps": "true or false", "/v1/infer?evidence=wet=wett": `no value`, "/v1/infer?target=rein": "did you mean",
	} {
		s.refused(400, words, "POST", path, bif)
	}
	want[Model](s, 200, "PUT", "/v1/models/weather", bif)

	// A client of NATS sends the file itself, as a request and as a registered model.

	if _, err := s.gateway.ownClient.Submit(t.Context(), wire.Request{Job: "file", Text: bif, Queries: []query.Query{{}}}); err != nil {
		t.Fatal(err)
	}
	digest, err := s.gateway.ownClient.PutModel(t.Context(), &wire.Graph{Text: bif})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []Graph{
		want[JobModel](s, 200, "GET", "/v1/jobs/file/model", "").Graph, want[Graph](s, 200, "GET", "/v1/models/"+digest+"?format=graph", ""),
	} {
		if len(g.Variables) != 2 || g.Variables[1].Name != "wet" {
			t.Errorf("%+v", g)
		}
	}
	wet(want[Answer](s, 200, "POST", "/v1/infer", `{"model": "weather", "evidence": {"wet": "yes"}, "marginals": true}`))
	s.refused(404, "wether", "POST", "/v1/infer", `{"model": "wether"}`)
	s.refused(400, "one is enough", "POST", "/v1/infer", `{"model": "weather", "model_name": "weather"}`)
}

// TestWhatStagesSayByName: warnings and reasons name variables and values of models that have names.
func TestWhatStagesSayByName(t *testing.T) {
	s := start(t, true, nil)
	model := strings.Replace(rain, "0.9, 0.1", "1, 0", 1)
	a := want[Answer](s, 200, "POST", "/v1/infer", `{"model": `+model+`, "evidence": {"rain": "no", "wet": "yes"}}`)
	said := strings.Join(a.Results[0].Warnings, " ")
	for _, words := range []string{`"rain" = "no"`, `"wet" = "yes"`, `the factor over "rain", "wet"`, "contradict each other"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q, want %s", said, words)
		}
	}
	model = strings.Replace(rain, "0.9, 0.1", "0.9, 0.3", 1)
	model = strings.Replace(model, `"basetensor_model": 1`, `"basetensor_model": 1, "bayes": true`, 1)
	a = want[Answer](s, 200, "POST", "/v1/infer", `{"model": `+model+`}`)
	if said = strings.Join(a.Results[0].Warnings, " "); !strings.Contains(said, `"wet"`) || strings.Contains(said, "x_0") {
		t.Errorf("%q", said)
	}
}
