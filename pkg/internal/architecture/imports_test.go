// Package architecture holds the tests of how packages may depend on each other.
package architecture

import (
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/basetensor/basetensor/"

// mathematics are the packages that compute. They know no network, clock, logger or environment.
var mathematics = []string{
	"pkg/scaled", "pkg/countspace", "pkg/tensor", "pkg/factorgraph", "pkg/uai", "pkg/modeljson", "pkg/btn", "pkg/elimination",
	"pkg/einsum", "pkg/bp", "pkg/ordering", "pkg/pairwise", "pkg/preprocess", "pkg/wide", "pkg/exact", "pkg/reparam", "pkg/learn", "pkg/contract", "pkg/aggregate", "pkg/infer", "pkg/generate", "pkg/fault", "pkg/linalg", "pkg/mps", "pkg/compressed", "pkg/truncated", "pkg/region",
}

// service are the packages that carry.
var service = []string{
	"pkg/wire", "pkg/client", "pkg/pipeline", "pkg/cache", "pkg/telemetry", "pkg/embedded", "pkg/config", "pkg/worker",
}

func deps(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", module+pkg).CombinedOutput()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", pkg, err, out)
	}
	set := map[string]bool{}
	for _, line := range strings.Fields(string(out)) {
		set[line] = true
	}
	return set
}

func TestMathematicsImportsNoPipeline(t *testing.T) {
	for _, pkg := range mathematics {
		d := deps(t, pkg)
		for _, s := range service {
			if d[module+s] {
				t.Errorf("%s depends on %s", pkg, s)
			}
		}
		for _, outside := range []string{"net", "log/slog", "github.com/nats-io/nats.go", "github.com/redis/go-redis/v9"} {
			if d[outside] {
				t.Errorf("%s depends on %s", pkg, outside)
			}
		}
	}
}

func TestImportsPointOneWay(t *testing.T) {
	// Each package may depend only on those before it.
	order := []string{"pkg/linalg", "pkg/scaled", "pkg/countspace", "pkg/tensor", "pkg/factorgraph", "pkg/btn", "pkg/elimination", "pkg/einsum", "pkg/wide", "pkg/preprocess", "pkg/exact", "pkg/bp", "pkg/region", "pkg/mps", "pkg/truncated", "pkg/contract", "pkg/learn", "pkg/infer"}
	for i, pkg := range order {
		d := deps(t, pkg)
		for _, later := range order[i+1:] {
			if d[module+later] {
				t.Errorf("%s depends on %s, which comes after it", pkg, later)
			}
		}
	}
}

func TestWorkersLinkNoServer(t *testing.T) {
	for _, cmd := range []string{"cmd/reparam-worker", "cmd/learn-worker", "cmd/contract-worker", "cmd/aggregator"} {
		d := deps(t, cmd)
		for _, server := range []string{"github.com/nats-io/nats-server/v2/server", "github.com/alicebob/miniredis/v2", module + "pkg/embedded"} {
			if d[server] {
				t.Errorf("%s links %s", cmd, server)
			}
		}
	}
}

func TestClientImportsNoPipeline(t *testing.T) {
	d := deps(t, "pkg/client")
	for _, heavy := range []string{"pkg/pipeline", "pkg/infer", "pkg/learn", "pkg/contract", "pkg/embedded"} {
		if d[module+heavy] {
			t.Errorf("pkg/client depends on %s", heavy)
		}
	}
}

// TestOnlyTheLabDraws: gonum/plot brings fonts, image and PDF packages. Whoever wants a picture asks pkg/lab.
func TestOnlyTheLabDraws(t *testing.T) {
	const plot, lab = "gonum.org/v1/plot", module + "pkg/lab/"
	out, err := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}{{range .TestImports}}{{$p}} {{.}}
{{end}}{{range .XTestImports}}{{$p}} {{.}}
{{end}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	drawn := false
	for line := range strings.Lines(string(out)) {
		pkg, imported, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || imported != plot && !strings.HasPrefix(imported, plot+"/") {
			continue
		}
		if drawn = true; !strings.HasPrefix(pkg, lab) {
			t.Errorf("%s imports %s", pkg, imported)
		}
	}
	if !drawn {
		t.Errorf("nobody imports %s: is this test still needed?", plot)
	}
	for _, pkg := range append(append([]string(nil), mathematics...), service...) {
		if deps(t, pkg)[module+"pkg/lab/bench"] {
			t.Errorf("%s depends on pkg/lab/bench", pkg)
		}
	}
}

// TestOnlyLinalgCallsLAPACK: some of its loops never end on entries that are not finite. pkg/linalg checks and scales what
// goes in; whoever wants a decomposition asks it. Tests may use gonum as an oracle.
func TestOnlyLinalgCallsLAPACK(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, module+"...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	called := false
	for line := range strings.Lines(string(out)) {
		pkg, imported, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(imported, "gonum.org/v1/gonum/") {
			continue
		}
		if called = true; pkg != module+"pkg/linalg" {
			t.Errorf("%s imports %s", pkg, imported)
		}
	}
	if !called {
		t.Error("nobody imports gonum: is this test still needed?")
	}
}
