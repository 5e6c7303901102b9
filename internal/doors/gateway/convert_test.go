package gateway

import (
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/formats"
)

// converted is a model file in another format, with what it has lost.
func (s *service) converted(to, text string) (file, lost string) {
	s.Helper()
	r := s.ask("POST", "/v1/convert?to="+to, text)
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		s.Fatalf("to %s: %d: %.300s, %v", to, r.StatusCode, b, err)
	}
	if lost, err = url.PathUnescape(r.Header.Get(lossesHeader)); err != nil {
		s.Fatal(err)
	}
	return string(b), lost
}

// sorted is a text with its lines in alphabetical order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestConvert: a file becomes another format and the same again; what a format lacks is named; nothing is stored.
func TestConvert(t *testing.T) {
	s := start(t, false, nil)
	const table = "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n0.8 0.2\n\n4\n0.9 0.1 0.2 0.8\n"
	file, lost := s.converted("uai", rain)
	if strings.Join(strings.Fields(file), " ") != strings.Join(strings.Fields(table), " ") ||
		lost != "names of variables and values are lost: the format has none" {
		t.Errorf("%s: %q", file, lost)
	}
	heating, err := os.ReadFile("../../../examples/heating.bif")
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.converted("bif", string(heating))
	for _, to := range []string{"json", "xmlbif", "net", "dsc", "xdsl"} {
		file, lost := s.converted(to, first)
		if lost != "" || file == first {
			t.Errorf("%s: %q", to, lost)
		}
		// causes come before effects in XDSL: other formats keep the order
		if back, _ := s.converted("bif", file); back != first && (to != "xdsl" || sorted(back) != sorted(first)) {
			t.Errorf("through %s it is another one: %.600s", to, back)
		}
	}
	cp, err := os.ReadFile("../../../examples/engine.xdsl")
	if err != nil {
		t.Fatal(err)
	}
	if _, lost := s.converted("bif", string(cp)); lost != "factors that became tables, since the format has nothing else: 1" {
		t.Errorf("%q", lost)
	}
	s.refused(400, "to is missing", "POST", "/v1/convert", rain)
	s.refused(400, "is no format", "POST", "/v1/convert?to=doc", rain)
	s.refused(422, "dne is not written", "POST", "/v1/convert?to="+string(formats.DNE), rain)
	s.refused(400, "model:", "POST", "/v1/convert?to=bif", "network unknown {")
	s.refused(403, "another origin", "POST", "/v1/convert?to=uai", rain, "Origin", "http://elsewhere.example")
	if all := want[Models](s, 200, "GET", "/v1/models", ""); len(all.Models) != 0 {
		t.Errorf("%+v are registered", all.Models)
	}
}

// TestConvertIsBounded: a short file whose tables are long in another format takes bytes of the bodies, or is refused.
func TestConvertIsBounded(t *testing.T) {
	s := start(t, false, func(c *Config) { c.Limits.Body, c.Limits.Bodies = 1<<16, 1<<18 })
	ones := "[1" + strings.Repeat(", 1", 39) + "]"
	wide := strings.ReplaceAll(`{"basetensor_model": 1, "variables": [{"domain": 40}, {"domain": 40}, {"domain": 40}],
		"factors": [{"scope": [0, 1, 2], "cp": {"weights": [1], "vectors": [[ONES], [ONES], [ONES]]}}]}`, "ONES", ones)
	s.refused(429, "bytes of bodies", "POST", "/v1/convert?to=uai", wide)
	s.refused(413, "the body has more than 65536 bytes", "POST", "/v1/convert?to=uai", strings.Repeat(" ", 1<<17))
	if _, lost := s.converted("json", wide); lost != "" {
		t.Errorf("%q", lost)
	}
}

// TestGraphHasWhatItsFileShows: the graph of a model has display names and places; that of another one has neither.
func TestGraphHasWhatItsFileShows(t *testing.T) {
	s := start(t, false, nil)
	const net = `net { } node a { label = "Visit to Asia?"; position = (94 246); states = ("no" "yes"); }
		potential (a) { data = (0.5 0.5); }`
	digest := want[Model](s, 201, "POST", "/v1/models", net).Digest
	g := want[Graph](s, 200, "GET", "/v1/models/"+digest+"?format=graph", "")
	if v := g.Variables[0]; v.Display != "Visit to Asia?" || !slices.Equal(v.Place, []float64{94, -246}) {
		t.Errorf("%+v", v)
	}
	file, _ := s.converted("net", net)
	for _, line := range []string{`label = "Visit to Asia?"`, "position = (94 246)"} {
		if !strings.Contains(file, line) {
			t.Errorf("no %s: %s", line, file)
		}
	}
	digest = want[Model](s, 201, "POST", "/v1/models", rain).Digest
	g = want[Graph](s, 200, "GET", "/v1/models/"+digest+"?format=graph", "")
	if v := g.Variables[0]; v.Display != "" || v.Place != nil {
		t.Errorf("%+v", v)
	}
}
