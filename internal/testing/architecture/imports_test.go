// Package architecture holds the tests of how packages may depend on each other.
package architecture

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/basetensor/basetensor/"

// wings lists what each wing may import beside itself: the folders of internal/, cmd, examples, and the packages of pkg/ by groups.
var wings = map[string]string{
	"values":   "",
	"base":     "values",
	"data":     "values base",
	"models":   "values base data",
	"formats":  "values base data models",
	"network":  "values base data",
	"form":     "values base data",
	"engine":   "values base data network",
	"methods":  "values base data network engine",
	"answer":   "values base data models network methods",
	"infer":    "values data answer",
	"wire":     "values base data form",
	"queue":    "values base data form network wire",
	"client":   "values data form wire queue",
	"jobs":     "values base data formats form network methods answer wire queue",
	"pipeline": "values data queue jobs",
	"embedded": "values queue jobs client pipeline",
	"doors":    "values base data models formats form network answer wire queue client jobs schemas",
	"people":   "values base data formats wire queue client jobs embedded doors",
	"testing":  "values base data models formats network engine answer infer wire queue",
	"schemas":  "",
	"examples": "values data formats wire client",
	"cmd":      "values base data models formats form network methods answer wire queue client jobs pipeline embedded doors people",
}

// groups are the packages of pkg/ that are not a wing of their own name.
var groups = map[string]string{
	"fault": "values", "scaled": "values",
	"countspace": "data", "factorgraph": "data", "modeljson": "data", "query": "data", "tensor": "data", "uai": "data",
}

// pure are the wings that compute. They know no network, log, server or cache.
var pure = []string{"values", "base", "data", "models", "formats", "network", "engine", "methods", "answer", "infer"}

// wing returns the wing of a package of this module: its folder of internal/, its group or name in pkg/, or its folder of the root.
func wing(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, module), "/")
	switch {
	case parts[0] == "internal" && len(parts) > 1:
		return parts[1]
	case parts[0] == "pkg" && len(parts) == 2:
		if group, ok := groups[parts[1]]; ok {
			return group
		}
		return parts[1]
	}
	return parts[0]
}

// public are the packages that others may import. Their surface is a promise: see TestPublicSurface.
var public = []string{
	"client", "countspace", "embedded", "factorgraph", "fault", "formats", "infer", "modeljson", "pipeline", "query",
	"scaled", "tensor", "uai", "wire",
}

// laboratory are the packages of the nested module lab, which measures and draws.
var laboratory = []string{
	"baseline", "bench", "chart", "cmd/btnlab", "deploy", "evaluate", "families", "faults",
	"image", "image/build", "load", "page", "simulate", "watch",
}

// modules are the folders of the two modules.
var modules = []string{"../../..", "../../../lab"}

// lists caches the output of go list, by its folder and arguments.
var lists = map[string][]string{}

// list returns the output of go list in a folder, word by word.
func list(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	key := dir + " " + strings.Join(args, " ")
	if words, ok := lists[key]; ok {
		return words
	}
	var stderr bytes.Buffer // apart from the output, since it names modules that are downloaded
	command := exec.Command("go", append([]string{"list", "-C", dir, "-tags=nightly"}, args...)...)
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v in %s: %v\n%s", args, dir, err, &stderr)
	}
	lists[key] = strings.Fields(string(out))
	return lists[key]
}

// imports has the paths that each package of the main module, and each that it depends on, imports. deps fills it at its first call.
var imports = map[string][]string{}

// deps returns the set of a package of the main module, such as cmd/btn, and all packages that it depends on.
func deps(t *testing.T, pkg string) map[string]bool {
	t.Helper()

	// go list prints pairs of an importing and an imported package.
	if len(imports) == 0 {
		for pair := range slices.Chunk(list(t, modules[0], "-deps", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, "./..."), 2) {
			imports[pair[0]] = append(imports[pair[0]], pair[1])
		}
	}
	found := map[string]bool{}
	for unvisited := []string{module + pkg}; len(unvisited) > 0; {
		path := unvisited[len(unvisited)-1]
		unvisited = unvisited[:len(unvisited)-1]
		if !found[path] {
			found[path] = true
			unvisited = append(unvisited, imports[path]...)
		}
	}
	return found
}

// TestImportsPointDown: a package imports packages of its own wing and of those that wings allows, every import that wings allows is
// needed, and the packages under pkg are the public ones.
func TestImportsPointDown(t *testing.T) {
	deps(t, "cmd/btn")            // fills imports
	isNeeded := map[string]bool{} // "FROM TO": wing FROM imports wing TO
	var underPkg []string
	for _, path := range list(t, modules[0], "./...") {
		from := wing(path)
		allowed, isWing := wings[from]
		if !isWing {
			t.Errorf("%s is in no wing", path)
		}
		for _, imported := range imports[path] {
			to := wing(imported)
			if !strings.HasPrefix(imported, module) || to == from {
				continue
			}
			isNeeded[from+" "+to] = true
			if !slices.Contains(strings.Fields(allowed), to) {
				t.Errorf("%s imports %s: wing %s may not import %s", path, imported, from, to)
			}
		}
		if name, isUnder := strings.CutPrefix(path, module+"pkg/"); isUnder {
			underPkg = append(underPkg, name)
		}
	}

	for from, allowed := range wings {
		for _, to := range strings.Fields(allowed) {
			if !isNeeded[from+" "+to] {
				t.Errorf("wing %s need not import %s", from, to)
			}
		}
	}
	if !slices.Equal(underPkg, public) {
		t.Errorf("public are %v, want %v", underPkg, public)
	}
}

// TestPureWings: packages of the wings that compute depend on no network, log, server or cache.
func TestPureWings(t *testing.T) {
	for _, path := range list(t, modules[0], "./...") {
		if !slices.Contains(pure, wing(path)) {
			continue
		}
		d := deps(t, strings.TrimPrefix(path, module))
		for _, outside := range []string{"net", "log/slog", "github.com/nats-io/nats.go", "github.com/redis/go-redis/v9"} {
			if d[outside] {
				t.Errorf("%s depends on %s", path, outside)
			}
		}
	}
}

// surface is the number of functions, methods and types that the public packages export. It may fall; a
// commit that raises it gives the reason.
const surface = 317

// TestPublicSurface: the public packages export as many functions, methods and types as surface says.
func TestPublicSurface(t *testing.T) {
	total, counts := 0, map[string]int{} // by package
	for _, pkg := range public {
		files, err := filepath.Glob(modules[0] + "/pkg/" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", pkg, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				counts[pkg] += countExported(t, file)
			}
		}
		total += counts[pkg]
	}
	if total != surface {
		t.Errorf("%d exported functions, methods and types, %d are stated: %v", total, surface, counts)
	}
}

// countExported returns the number of exported functions and types of a file, and of exported methods of exported types.
func countExported(t *testing.T, path string) (n int) {
	t.Helper()
	for _, d := range parseFile(t, path).Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverName(d.Recv.List[0].Type))) {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() {
					n++
				}
			}
		}
	}
	return n
}

// receiverName returns the name of the type of a receiver: T for T, *T and T[X].
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// TestWorkersLinkNoServer: the commands of the workers contain no NATS server and no Redis server.
func TestWorkersLinkNoServer(t *testing.T) {
	for _, cmd := range []string{"cmd/reparam-worker", "cmd/learn-worker", "cmd/contract-worker", "cmd/aggregator"} {
		d := deps(t, cmd)
		for _, server := range []string{
			"github.com/nats-io/nats-server/v2/server", "github.com/alicebob/miniredis/v2",
			module + "pkg/embedded",
		} {
			if d[server] {
				t.Errorf("%s links %s", cmd, server)
			}
		}
	}
}

// TestOnlyCommandsExportTraces: commands depend on the SDK of OpenTelemetry, and the public packages do not. Nothing depends on gRPC, 66
// packages that a first build would compile.
func TestOnlyCommandsExportTraces(t *testing.T) {
	for pkg, want := range map[string]bool{
		"pkg/client": false, "pkg/pipeline": false, "pkg/embedded": false, "cmd/aggregator": true, "cmd/btn": true,
	} {
		d := deps(t, pkg)
		if sdk := "go.opentelemetry.io/otel/sdk/trace"; d[sdk] != want {
			t.Errorf("%s depends on %s: %v", pkg, sdk, d[sdk])
		}
		if d["google.golang.org/grpc"] {
			t.Errorf("%s depends on gRPC", pkg)
		}
	}
}

// TestOnlyTheLabDraws: lab requires gonum/plot, and the main module does not depend on it or on lab, since it brings fonts, image and PDF
// packages to all who import this module.
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

// TestPackagesOfTheLab: the packages of lab are those that laboratory lists.
func TestPackagesOfTheLab(t *testing.T) {
	var want []string
	for _, pkg := range laboratory {
		want = append(want, module+"lab/"+pkg)
	}
	if got := list(t, modules[1], "./..."); !slices.Equal(got, want) {
		t.Errorf("lab has the packages %v, want %v", got, want)
	}
}

// TestTheLabMeasuresWhatIsImported: the two go.mod require the same version of each common module; otherwise lab would measure another
// program.
func TestTheLabMeasuresWhatIsImported(t *testing.T) {
	labVersions, common := requirements(t, modules[1]), 0
	for path, version := range requirements(t, modules[0]) {
		labVersion, isCommon := labVersions[path]
		if !isCommon {
			continue
		}
		common++
		if labVersion != version {
			t.Errorf("%s: %s here and %s in lab/go.mod; go get -C lab %s@%s", path, version, labVersion, path, version)
		}
	}
	if common == 0 {
		t.Error("the two modules have no requirement in common")
	}
}

// requirements returns the versions of modules that the go.mod in a folder requires, by their paths.
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

// TestOnlyLinalgCallsLAPACK: internal/base/linalg alone imports gonum, in both modules; tests may. Some loops of its LAPACK never end on
// entries that are not finite, and linalg checks and scales them first.
func TestOnlyLinalgCallsLAPACK(t *testing.T) {
	isImported := false
	for _, dir := range modules {
		words := list(t, dir, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, "./...")
		for pair := range slices.Chunk(words, 2) {
			if pkg, imported := pair[0], pair[1]; strings.HasPrefix(imported, "gonum.org/v1/gonum/") {
				isImported = true
				if pkg != module+"internal/base/linalg" {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
		}
	}
	if !isImported {
		t.Error("nobody imports gonum: is this test still needed?")
	}
}
