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

// TestAMethodIsARoom: outside the rooms of methods nobody names one of their parts, nor a method of requests.
func TestAMethodIsARoom(t *testing.T) {
	parts := partTypes(t)
	used := map[string]bool{}
	for _, root := range []string{"cmd", "examples", "internal"} {
		eachFile(t, root, func(name string, file *ast.File) {
			imports := map[string]string{}
			for _, i := range file.Imports {
				path, _ := strconv.Unquote(i.Path.Value)
				if own, ok := strings.CutPrefix(path, module); ok {
					if imports[filepath.Base(own)] = own; i.Name != nil {
						imports[i.Name.Name] = own
					}
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				of, ok := s.X.(*ast.Ident)
				if !ok {
					return true
				}
				path, word := imports[of.Name], s.Sel.Name
				method := (path == "internal/network/btn" || path == "pkg/query") && strings.HasPrefix(word, "Method") &&
					word != "Method" && word != "Methods"
				if !method && !parts[path+"."+word] {
					return true
				}
				for at := range outside {
					if method && (at == name || strings.HasPrefix(name, at+"/")) {
						used[at] = true
						return true
					}
				}
				t.Errorf("%s names %s.%s", name, of.Name, word)
				return true
			})
		})
	}
	for at := range outside {
		if !used[at] {
			t.Errorf("%s names no method: it is no exception", at)
		}
	}
}

// TestStagesKnowNoMethod: the planner and the aggregator know the tables of methods, and the two interfaces, and no method by itself.
func TestStagesKnowNoMethod(t *testing.T) {
	known := []string{"internal/methods", "internal/methods/proposal", "internal/methods/judge", "internal/methods/setting"}
	for _, stage := range []string{"internal/answer/plan", "internal/answer/aggregate", "internal/answer/stage", "internal/answer/questions"} {
		deps(t, "cmd/btn")
		for _, imported := range imports[module+stage] {
			path := strings.TrimPrefix(imported, module)
			if strings.HasPrefix(path, "internal/methods") && !slices.Contains(known, path) {
				t.Errorf("%s imports %s", stage, path)
			}
		}
	}
}

// partTypes are the types of parts: those in rooms of methods that have a function Class.
func partTypes(t *testing.T) map[string]bool {
	types := map[string]bool{}
	for _, path := range list(t, modules[0], "./internal/methods/...") {
		pkg := strings.TrimPrefix(path, module)
		files, _ := filepath.Glob(filepath.Join(modules[0], pkg, "*.go"))
		for _, path := range files {
			for _, d := range parsed(t, path).Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Class" {
					types[pkg+"."+receiver(f.Recv.List[0].Type)] = true
				}
			}
		}
	}
	if len(types) < 10 {
		t.Fatalf("%d types of parts are found: %v", len(types), types)
	}
	return types
}

// eachFile visits the files of a folder that are no tests and are not in a room of methods.
func eachFile(t *testing.T, root string, visit func(name string, file *ast.File)) {
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
		visit(name, parsed(t, path))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func parsed(t *testing.T, path string) *ast.File {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
