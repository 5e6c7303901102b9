// Package architecture holds the tests of how packages may depend on each other.
package architecture

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
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

// wing is the wing of a package of this module.
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

// lists holds the output of go list, by its arguments.
var lists = map[string][]string{}

// list returns the output of go list in a folder, word by word.
func list(t *testing.T, dir string, args ...string) []string {
	t.Helper()
	key := dir + " " + strings.Join(args, " ")
	if words, ok := lists[key]; ok {
		return words
	}
	var said bytes.Buffer // modules that are downloaded on the way are named there
	command := exec.Command("go", append([]string{"list", "-C", dir, "-tags=nightly"}, args...)...)
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list %v in %s: %v\n%s", args, dir, err, &said)
	}
	lists[key] = strings.Fields(string(out))
	return lists[key]
}

// imports holds the imports of the product's packages and of all that they depend on.
var imports = map[string][]string{}

// deps returns a package of the product with all that it depends on.
func deps(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	if len(imports) == 0 {
		for pair := range slices.Chunk(list(t, modules[0], "-deps", "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, "./..."), 2) {
			imports[pair[0]] = append(imports[pair[0]], pair[1])
		}
	}
	set := map[string]bool{}
	for next := []string{module + pkg}; len(next) > 0; {
		path := next[len(next)-1]
		next = next[:len(next)-1]
		if !set[path] {
			set[path] = true
			next = append(next, imports[path]...)
		}
	}
	return set
}

// TestImportsPointDown: a package imports its own wing and those that the wing may import, and is under pkg only if it is public.
func TestImportsPointDown(t *testing.T) {
	deps(t, "cmd/btn")
	needed := map[string]bool{}
	var outside []string
	for _, path := range list(t, modules[0], "./...") {
		from := wing(path)
		may, ruled := wings[from]
		if !ruled {
			t.Errorf("%s is in no wing", path)
		}
		for _, imported := range imports[path] {
			if to := wing(imported); strings.HasPrefix(imported, module) && to != from {
				if needed[from+" "+to] = true; !slices.Contains(strings.Fields(may), to) {
					t.Errorf("%s imports %s: wing %s may not import %s", path, imported, from, to)
				}
			}
		}
		if name, ok := strings.CutPrefix(path, module+"pkg/"); ok {
			outside = append(outside, name)
		}
	}
	for from, may := range wings {
		for _, to := range strings.Fields(may) {
			if !needed[from+" "+to] {
				t.Errorf("wing %s need not import %s", from, to)
			}
		}
	}
	if !slices.Equal(outside, public) {
		t.Errorf("public are %v, want %v", outside, public)
	}
}

// TestPureWings: what computes has no network, log, server or cache below it.
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

func TestPublicSurface(t *testing.T) {
	total, of := 0, map[string]int{}
	for _, pkg := range public {
		files, err := filepath.Glob(modules[0] + "/pkg/" + pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("no files of %s: %v", pkg, err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				of[pkg] += exported(t, file)
			}
		}
		total += of[pkg]
	}
	if total != surface {
		t.Errorf("%d exported functions, methods and types, %d are stated: %v", total, surface, of)
	}
}

// exported counts the exported functions, methods and types of a file.
func exported(t *testing.T, path string) (n int) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
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

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

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

// TestOnlyCommandsExportTraces: importers of the pipeline or the client get the interface of OpenTelemetry alone, and no command
// brings gRPC, 66 packages that a first build would compile.
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

// TestOnlyTheLabDraws: gonum/plot brings fonts, image and PDF packages. Importers of this module get none of them.
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

// TestTheLabMeasuresWhatIsImported: with other versions of the common requirements it would measure another program.
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

// TestOnlyLinalgCallsLAPACK: some of its loops never end on entries that are not finite. internal/base/linalg
// checks and scales the input; every decomposition goes through it. Tests may use gonum as an oracle.
func TestOnlyLinalgCallsLAPACK(t *testing.T) {
	called := false
	for _, dir := range modules {
		words := list(t, dir, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}
{{end}}`, "./...")
		for pair := range slices.Chunk(words, 2) {
			if pkg, imported := pair[0], pair[1]; strings.HasPrefix(imported, "gonum.org/v1/gonum/") {
				if called = true; pkg != module+"internal/base/linalg" {
					t.Errorf("%s imports %s", pkg, imported)
				}
			}
		}
	}
	if !called {
		t.Error("nobody imports gonum: is this test still needed?")
	}
}
