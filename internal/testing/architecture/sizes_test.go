package architecture

import (
	"bytes"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of what one person keeps in mind.
const (
	mostLines   = 4600 // of a room without its tests
	mostMethods = 25   // of a type
)

// crowded are the types above mostMethods, with their numbers of methods, which may only fall.
var crowded = map[string]int{
	"internal/network/preprocess.work":     56,
	"internal/logic/compiler.search":       49,
	"internal/base/kernel.set":             41,
	"internal/logic/formula.builder":       40,
	"internal/doors/gateway.call":          38,
	"internal/logic/circuit.Circuit":       36,
	"internal/answer/aggregate.sequence":   36,
	"pkg/client.Client":                    34,
	"internal/network/lower.layout":        30,
	"internal/families/exact.Prepared":     30,
	"internal/families/counts.Form":        29,
	"internal/families/truncated.Prepared": 29,
	"internal/engine/pairwise.run":         26,
	"internal/logic/formula.simplifier":    26,
	"internal/doors/gateway.Gateway":       26,
}

// TestRoomsAndTypesAreSmall: a room is a folder below a wing, with all that is in it.
func TestRoomsAndTypesAreSmall(t *testing.T) {
	lines, methods := map[string]int{}, map[string]int{}
	for _, root := range []string{"cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join(modules[0], root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name, err := filepath.Rel(modules[0], path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			parts := strings.Split(filepath.ToSlash(name), "/")
			depth := map[bool]int{true: 3, false: 2}[root == "internal"]
			lines[strings.Join(parts[:min(depth, len(parts)-1)], "/")] += bytes.Count(text, []byte("\n"))
			for _, decl := range parsed(t, path).Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
					methods[strings.Join(parts[:len(parts)-1], "/")+"."+receiver(f.Recv.List[0].Type)]++
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, room := range slices.Sorted(maps.Keys(lines)) {
		if lines[room] > mostLines {
			t.Errorf("%s has %d lines, at most %d", room, lines[room], mostLines)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(methods)) {
		if most := max(crowded[of], mostMethods); methods[of] > most {
			t.Errorf("%s has %d methods, at most %d", of, methods[of], most)
		}
	}
	for of, n := range crowded {
		if methods[of] < n {
			t.Errorf("%s has %d methods: write that here in place of %d", of, methods[of], n)
		}
	}
}

// TestPackageComments: every package says what it is for.
func TestPackageComments(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^// .*\npackage `)
	commented := map[string]bool{}
	for _, root := range []string{"cmd", "internal", "pkg", "lab"} {
		err := filepath.WalkDir(filepath.Join(modules[0], root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.Contains(path, "testdata") {
				return err
			}
			text, err := os.ReadFile(path)
			commented[filepath.Dir(path)] = commented[filepath.Dir(path)] || comment.Match(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for folder, has := range commented {
		if !has {
			t.Errorf("%s: no file has a package comment", folder)
		}
	}
}
