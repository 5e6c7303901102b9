package admission

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
)

const file = `{
  "classes": {
    "default": {"flops_per_job": 1e12, "flops_per_second": 1e9},
    "gold": {"flops_per_job": 1e14, "burst": 5e9},
    "free": {"flops_per_job": 0}
  },
  "tenants": {"acme": "gold", "nobody": "free"}
}`

func TestClasses(t *testing.T) {
	tenants, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range []struct {
		tenant, class            string
		flops, rate, burst, part float64
	}{
		{"acme", "gold", 1e14, 1e9, 5e9, Default().PartsPerJob},
		{"nobody", "free", 0, 1e9, 0, Default().PartsPerJob},
		{"", "default", 1e12, 1e9, 0, Default().PartsPerJob},
		{"gold", "default", 1e12, 1e9, 0, Default().PartsPerJob},
	} {
		class, l := tenants.Limits(is.tenant)
		if class != is.class || class != tenants.Class(is.tenant) || l.FlopsPerJob != is.flops ||
			l.FlopsPerSecond != is.rate || l.Burst != is.burst || l.PartsPerJob != is.part {
			t.Errorf("%q: class %s with %+v", is.tenant, class, l)
		}
	}

	var none *Tenants
	if class, l := none.Limits("acme"); class != DefaultClass || l != Default() || none.Class("") != class {
		t.Errorf("without a file: class %s with %+v", class, l)
	}
}

func TestFilesThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		`{"clases": {}}`:                               "clases",
		`{"classes": {"a": {"flops": 1}}}`:             `class "a"`,
		`{"classes": {"a": {"flops_per_job": -1}}}`:    "flops_per_job is -1",
		`{"classes": {"a": {"flops_per_job": "1e9"}}}`: "flops_per_job",
		`{"classes": {"a": {"burst": 1e9}}}`:           "burst without",
		`{"classes": {"a\nb": {}}}`:                    "no name",
		`{"classes": {}, "tenants": {"acme": "gold"}}`: `class "gold"`,
		`{"classes": {}} {}`:                           "follows",
		`{"classes": {"default": {"wait": 1}}}`:        "wait",
		`{"classes": {"a": {"stream_share": 1.5}}}`:    "stream_share is 1.5",
		`{"classes": {"a": {"cache": "none"}}}`:        `cache is "none"`,
		``:                                             "it ends in the middle",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A refusal states the cost of the request, the limit, and the setting and class that impose it.
func TestRefusals(t *testing.T) {
	l := Default()
	for name, c := range map[string]Cost{
		"flops_per_job": {Flops: l.FlopsPerJob * 1.5},
		"bytes_per_job": {Bytes: l.BytesPerJob * 2},
		"parts_per_job": {Parts: l.PartsPerJob + 1, Flops: 1e300},
	} {
		err := l.Admit("gold", c, ByPlan)
		if fault.CodeOf(err) != fault.OverBudget || !strings.Contains(err.Error(), name+` of class "gold" is`) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := l.Admit("gold", Cost{Flops: 1.5e14}, ByRequest); err == nil ||
		!strings.Contains(err.Error(), "asks for at least 1.5e+14 flops") || !strings.Contains(err.Error(), "1e+14") {
		t.Errorf("%v", err)
	}

	if err := l.Admit("", Cost{l.FlopsPerJob, l.BytesPerJob, l.PartsPerJob}, ByPlan); err != nil {
		t.Error(err)
	}
	if err := (&Limits{}).Admit("", Cost{1e300, 1e300, 1e300}, ByPlan); err != nil {
		t.Errorf("0 is no limit: %v", err)
	}
}

// A quota is the smaller one of the class's share of the stream and its bytes for that stream, and names the setting.
func TestQuotas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.json")
	text := `{"classes": {"default": {"model_bytes": 1000, "dead_letter_bytes": 7}, "any": {"stream_share": 0, "model_bytes": 0}},
		"tenants": {"acme": "any"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range []struct {
		stream, tenant string
		room, bytes    int64
		why            string
	}{
		{bus.StreamGraph, "b", 8000, 1000, `model_bytes of class "default" is 1000`},
		{bus.StreamGraph, "b", 2000, 500, `stream_share of class "default" is 0.25`},
		{bus.StreamGraph, "b", -1, 1000, "model_bytes"},
		{bus.StreamBlob, "b", 8000, 2000, "stream_share"},
		{bus.StreamModel, "b", 8000, 2000, "stream_share"},
		{bus.StreamAnswer, "b", -1, 0, "answer_bytes"},
		{bus.StreamDead, "b", 8000, 7, "dead_letter_bytes"},
		{bus.StreamGraph, "acme", 8000, 0, "model_bytes"},
		{bus.StreamBlob, "acme", 8000, 0, "blob_bytes"},
	} {
		if q := f.Quota(is.stream, is.tenant, is.room); q.Bytes != is.bytes || !strings.Contains(q.Why, is.why) {
			t.Errorf("%+v: %+v", is, q)
		}
	}
}

// A file that changes is read again; one that is wrong, or gone, leaves the earlier content.
func TestFilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tenants.json")
	at := time.Unix(1e9, 0)
	var said strings.Builder
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second) // of the file, whose clock may be coarse
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write(file)
	f, err := Open(path, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	class := func() string {
		f.tenants.Reload()
		return f.Tenants().Class("acme")
	}
	if class() != "gold" {
		t.Errorf("class %s", class())
	}
	write(`{"classes": {"silver": {}}, "tenants": {"acme": "silver"}}`)
	if class() != "silver" {
		t.Errorf("class %s after the change", class())
	}
	write(`{"tenants": {"acme": "wood"}}`)
	if class() != "silver" || !strings.Contains(said.String(), "wood") {
		t.Errorf("class %s after a wrong change, said: %s", class(), said.String())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if class() != "silver" {
		t.Errorf("class %s without the file", class())
	}

	if _, err := Open(path, slog.Default()); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("a file that is not there: %v", err)
	}
	if f, err := Open("", nil); err != nil || f.Tenants() != nil {
		t.Errorf("no file: %v", err)
	}
}
