// Package architecture holds the tests of how packages may depend on each other.
package architecture

import (
	"encoding/json"
	"os/exec"
	"slices"
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

// laboratory are the packages of the nested module lab, which measures and draws.
var laboratory = []string{"baseline", "bench", "chart", "cmd/btnlab", "evaluate", "load", "simulate"}

// modules are the folders of the two modules.
var modules = []string{"../../..", "../../../lab"}

// list returns what go list prints in a folder, word by word.
func list(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("go list %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.Fields(string(out))
}

func deps(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	set := map[string]bool{}
	for _, path := range list(t, modules[0], "-deps", module+pkg) {
		set[path] = true
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

// TestOnlyTheLabDraws: gonum/plot brings fonts, image and PDF packages. Whoever imports this module gets none of them.
func TestOnlyTheLabDraws(t *testing.T) {
	const plot = "gonum.org/v1/plot"
	for _, path := range list(t, modules[0], "-deps", "-test", "./...") {
		if path == plot || strings.HasPrefix(path, plot+"/") || strings.HasPrefix(path, module+"lab/") {
			t.Errorf("this module depends on %s", path)
		}
	}
	if _, required := requirements(t, modules[0])[plot]; required {
		t.Errorf("go.mod requires %s", plot)
	}
	if _, required := requirements(t, modules[1])[plot]; !required {
		t.Errorf("lab/go.mod does not require %s: is this test still needed?", plot)
	}
}

// TestPackagesOfTheLab: a package that goes there, or leaves, is named here.
func TestPackagesOfTheLab(t *testing.T) {
	var want []string
	for _, pkg := range laboratory {
		want = append(want, module+"lab/"+pkg)
	}
	if got := list(t, modules[1], "./..."); !slices.Equal(got, want) {
		t.Errorf("lab has the packages %v, want %v", got, want)
	}
}

// TestTheLabMeasuresWhatIsImported: with other versions of what both modules require it would measure another program.
func TestTheLabMeasuresWhatIsImported(t *testing.T) {
	lab, shared := requirements(t, modules[1]), 0
	for path, version := range requirements(t, modules[0]) {
		if there, both := lab[path]; both {
			if shared++; there != version {
				t.Errorf("%s: %s here and %s in lab/go.mod; go get -C lab %s@%s", path, version, there, path, version)
			}
		}
	}
	if shared == 0 {
		t.Error("the two modules have no requirement in common")
	}
}

// requirements returns the versions that a module's go.mod requires.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "mod", "edit", "-C", dir, "-json").Output()
	if err != nil {
		t.Fatalf("go mod edit in %s: %v", dir, err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	return versions
}

// TestOnlyLinalgCallsLAPACK: some of its loops never end on entries that are not finite. pkg/linalg checks and scales what
// goes in; whoever wants a decomposition asks it. Tests may use gonum as an oracle.
func TestOnlyLinalgCallsLAPACK(t *testing.T) {
	called := false
	for _, dir := range modules {
		words := list(t, dir, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, "./...")
		for pair := range slices.Chunk(words, 2) {
			if pkg, imported := pair[0], pair[1]; strings.HasPrefix(imported, "gonum.org/v1/gonum/") {
				if called = true; pkg != module+"pkg/linalg" {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
		}
	}
	if !called {
		t.Error("nobody imports gonum: is this test still needed?")
	}
}
