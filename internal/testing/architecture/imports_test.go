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

// mathematics are the packages that compute. They know no network, clock, logger or environment.
var mathematics = []string{
	"internal/answer/aggregate",
	"internal/models/bayesnet",
	"internal/network/bp",
	"internal/network/btn",
	"internal/logic/circuit",
	"internal/network/compiled",
	"internal/logic/compiler",
	"internal/network/contraction",
	"internal/network/contractionorder",
	"internal/base/decimal",
	"internal/base/digest",
	"internal/models/dimacs",
	"internal/base/floats",
	"internal/logic/formula",
	"internal/models/generate",
	"internal/base/kernel",
	"internal/network/ladder",
	"internal/network/ising",
	"internal/base/jsontext",
	"internal/base/linalg",
	"internal/logic",
	"internal/network/lower",
	"internal/base/memo",
	"internal/models/named",
	"internal/base/nearest",
	"internal/answer/plan",
	"internal/base/policy",
	"internal/network/problem",
	"internal/network/proposal",
	"internal/network/preprocess",
	"internal/network/reparam",
	"internal/base/sampling",
	"internal/network/setting",
	"internal/answer/stage",
	"internal/network/sumproduct",
	"pkg/countspace",
	"pkg/factorgraph",
	"pkg/fault",
	"pkg/formats",
	"pkg/infer",
	"pkg/modeljson",
	"pkg/query",
	"pkg/scaled",
	"pkg/tensor",
	"pkg/uai",
}

// service are the packages that carry.
var service = []string{
	"internal/people/backup",
	"internal/doors/access",
	"internal/queue/admission",
	"internal/jobs/cache",
	"internal/jobs/cached",
	"internal/base/codec",
	"internal/doors/config",
	"internal/queue/connect",
	"internal/network/form",
	"internal/doors/gateway",
	"internal/jobs/hop",
	"internal/queue/message",
	"internal/jobs/metrics",
	"internal/queue/pull",
	"internal/queue/seal",
	"internal/queue/streams",
	"internal/queue/telemetry",
	"internal/queue/tracing",
	"internal/queue/tracing/export",
	"internal/doors/worker",
	"internal/jobs/workers",
	"pkg/client",
	"pkg/embedded",
	"pkg/pipeline",
	"pkg/wire",
}

// public are the packages that others may import. Their surface is a promise: see TestPublicSurface.
var public = []string{
	"client", "countspace", "embedded", "factorgraph", "fault", "formats", "infer", "modeljson", "pipeline", "query",
	"scaled", "tensor", "uai", "wire",
}

// beside are the packages of commands, and those that only tests use.
var beside = []string{
	"cmd/aggregator",
	"cmd/btn",
	"cmd/contract-worker",
	"cmd/learn-worker",
	"cmd/reparam-worker",
	"examples",
	"examples/client-go",
	"examples/same-answer",
	"internal/testing/acceptance",
	"internal/testing/architecture",
	"internal/base/arena",
	"internal/queue/bus",
	"internal/people/cases",
	"internal/people/console",
	"internal/base/cputime",
	"internal/testing/enginetest",
	"internal/base/fair",
	"internal/people/fit",
	"internal/testing/golden",
	"internal/base/kernel/generate",
	"internal/testing/nightly",
	"internal/testing/oracle",
	"internal/testing/orders",
	"internal/doors/page",
	"internal/base/pace",
	"internal/queue/redact",
	"internal/testing/reference",
	"internal/testing/testserver",
	"internal/testing/testserver/install",
	"internal/testing/truth",
	"internal/testing/truth/run",
	"internal/base/zipped",
	"schemas",
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

// TestEveryPackageHasARule: a package that is new is mathematics, service, or beside both, and under pkg only
// if it is public.
func TestEveryPackageHasARule(t *testing.T) {
	ruled := map[string]bool{}
	for _, pkg := range slices.Concat(mathematics, engines(t), service, beside) {
		if ruled[module+pkg] {
			t.Errorf("%s is named twice", pkg)
		}
		ruled[module+pkg] = true
	}
	var outside []string
	for _, path := range list(t, modules[0], "./...") {
		if !ruled[path] {
			t.Errorf("no rule names %s", path)
		}
		delete(ruled, path)
		if name, ok := strings.CutPrefix(path, module+"pkg/"); ok {
			outside = append(outside, name)
		}
	}
	for path := range ruled {
		t.Errorf("%s is named, and is not there", path)
	}
	if !slices.Equal(outside, public) {
		t.Errorf("public are %v, want %v", outside, public)
	}
}

// surface is the number of functions, methods and types that the public packages export. It may fall; a
// commit that raises it gives the reason.
const surface = 300

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

// engines are the packages of engines and families: all that lie in their folders, so that a new one needs no line here.
func engines(t *testing.T) (pkgs []string) {
	t.Helper()
	for _, path := range list(t, modules[0], "./internal/engine/...", "./internal/families/...") {
		pkgs = append(pkgs, strings.TrimPrefix(path, module))
	}
	return pkgs
}

// TestEnginesKnowNoPlanner: the choice between engines, and the sum of their values, are made above
// them.
func TestEnginesKnowNoPlanner(t *testing.T) {
	for _, pkg := range engines(t) {
		d := deps(t, pkg)
		for _, above := range []string{"internal/answer/plan", "internal/answer/aggregate", "internal/answer/stage"} {
			if d[module+above] {
				t.Errorf("%s depends on %s", pkg, above)
			}
		}
	}
}

func TestMathematicsImportsNoPipeline(t *testing.T) {
	for _, pkg := range slices.Concat(mathematics, engines(t)) {
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
	order := []string{
		"internal/base/policy",
		"internal/base/linalg",
		"pkg/scaled",
		"pkg/countspace",
		"pkg/tensor",
		"pkg/factorgraph",
		"pkg/query",
		"internal/network/btn",
		"internal/network/contractionorder",
		"internal/base/memo",
		"internal/network/sumproduct",
		"internal/network/compiled",
		"internal/network/lower",
		"internal/engine/einsum",
		"internal/engine/wide",
		"internal/network/preprocess",
		"internal/network/problem",
		"internal/network/contraction",
		"internal/network/proposal",
		"internal/families/exact",
		"internal/families/gradients",
		"internal/families/counts",
		"internal/families/closed",
		"internal/network/reparam",
		"internal/network/bp",
		"internal/engine/region",
		"internal/families/truncated/sweeps",
		"internal/families/truncated",
		"internal/families/learned",
		"internal/families",
		"internal/answer/plan",
		"internal/answer/stage",
		"pkg/infer",
	}
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

func TestClientImportsNoPipeline(t *testing.T) {
	d := deps(t, "pkg/client")
	for _, heavy := range []string{
		"pkg/pipeline", "pkg/infer", "internal/answer/stage", "internal/answer/plan", "internal/network/contraction", "pkg/embedded",
	} {
		if d[module+heavy] {
			t.Errorf("pkg/client depends on %s", heavy)
		}
	}
}

// TestTheLoopKnowsNoStage: the rules for every message from delivery to acknowledgement stand apart from the work on it.
func TestTheLoopKnowsNoStage(t *testing.T) {
	for _, pkg := range []string{"internal/jobs/hop", "internal/queue/pull", "internal/queue/streams"} {
		d := deps(t, pkg)
		for _, stage := range []string{
			"internal/answer/stage", "internal/jobs/workers", "internal/answer/plan", "internal/network/contraction", "internal/answer/aggregate",
			"internal/network/reparam",
		} {
			if d[module+stage] {
				t.Errorf("%s depends on %s", pkg, stage)
			}
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
