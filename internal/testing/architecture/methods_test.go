package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outside are the files and folders outside of methods that may name one, with the reason of each.
var outside = map[string]string{
	"internal/queue/admission/bound.go": "bounds the work of a request before it is planned, in a process that plans nothing",
	"internal/jobs/metrics":             "series of the methods that plans have begin at 0",
	"internal/answer/plan/setting.go":   "auto.exact is an option of the planner's own method",
	"internal/answer/stage/conflict.go": "asks exactly whether observations contradict each other",
	"internal/testing/truth":            "draws requests by every method",
}

// rooms are where methods, and what is public about them, may be named.
var rooms = []string{"internal/methods", "internal/network/btn", "pkg", "cmd/btn", "lab"}

// TestAMethodIsARoom: outside the rooms of methods no file names a type of their parts, such as descent.Descent, or a constant of a method,
// such as query.MethodExact; the files of outside may name the latter.
func TestAMethodIsARoom(t *testing.T) {
	isPart := partTypes(t)
	isUsed := map[string]bool{} // exceptions of outside that name a method
	for _, root := range []string{"cmd", "examples", "internal"} {
		forEachFile(t, root, func(name string, file *ast.File) {
			imports := ownImports(file)
			ast.Inspect(file, func(n ast.Node) bool {
				// Look at qualified names only, such as query.MethodExact.
				selector, isSelector := n.(*ast.SelectorExpr)
				if !isSelector {
					return true
				}
				pkg, isIdent := selector.X.(*ast.Ident)
				if !isIdent {
					return true
				}
				path, word := imports[pkg.Name], selector.Sel.Name
				hasMethods := path == "internal/network/btn" || path == "pkg/query"
				isMethod := hasMethods && strings.HasPrefix(word, "Method") && word != "Method" && word != "Methods"
				if !isMethod && !isPart[path+"."+word] {
					return true
				}

				for exception := range outside {
					if isMethod && (exception == name || strings.HasPrefix(name, exception+"/")) {
						isUsed[exception] = true
						return true
					}
				}
				t.Errorf("%s names %s.%s", name, pkg.Name, word)
				return true
			})
		})
	}
	for exception := range outside {
		if !isUsed[exception] {
			t.Errorf("%s names no method: it is no exception", exception)
		}
	}
}

// ownImports returns the packages of this module that a file imports, as paths from its root, by the names that the file has for them.
func ownImports(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if own, isOwn := strings.CutPrefix(path, module); isOwn {
			if imports[filepath.Base(own)] = own; i.Name != nil {
				imports[i.Name.Name] = own
			}
		}
	}
	return imports
}

// TestStagesKnowNoMethod: the packages of the planner, the stages and the aggregator import no room of a method, but only the packages that
// have the tables and interfaces of all methods.
func TestStagesKnowNoMethod(t *testing.T) {
	deps(t, "cmd/btn") // fills imports
	allowed := []string{"internal/methods", "internal/methods/proposal", "internal/methods/judge", "internal/methods/setting"}
	for _, stage := range []string{"internal/answer/plan", "internal/answer/aggregate", "internal/answer/stage", "internal/answer/questions"} {
		for _, imported := range imports[module+stage] {
			path := strings.TrimPrefix(imported, module)
			if strings.HasPrefix(path, "internal/methods") && !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", stage, path)
			}
		}
	}
}

// partTypes returns the types of parts of all methods, as "PATH.TYPE": the types in rooms of methods that have a method Class.
func partTypes(t *testing.T) map[string]bool {
	types := map[string]bool{}
	for _, path := range list(t, modules[0], "./internal/methods/...") {
		pkg := strings.TrimPrefix(path, module)
		files, _ := filepath.Glob(filepath.Join(modules[0], pkg, "*.go"))
		for _, path := range files {
			for _, d := range parseFile(t, path).Decls {
				if f, isFunc := d.(*ast.FuncDecl); isFunc && f.Recv != nil && f.Name.Name == "Class" {
					types[pkg+"."+receiverName(f.Recv.List[0].Type)] = true
				}
			}
		}
	}
	if len(types) < 10 {
		t.Fatalf("%d types of parts are found: %v", len(types), types)
	}
	return types
}

// forEachFile calls visit with each Go file below a folder that is no test and not in one of rooms, and with its path from the root.
func forEachFile(t *testing.T, root string, visit func(name string, file *ast.File)) {
	err := filepath.WalkDir(filepath.Join(modules[0], root), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(modules[0], path)
		for _, room := range rooms {
			if strings.HasPrefix(name, room+"/") {
				return err
			}
		}
		visit(name, parseFile(t, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// parseFile returns the syntax tree of a Go file.
func parseFile(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
