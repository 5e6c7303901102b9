package acceptance

// The pieces of docs/explanation/go-packages.md are compiled and run in one program, and their output is compared with the page.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// pieces finds a piece of Go and the output behind it.
var pieces = regexp.MustCompile("(?ms)^```go\n(.*?)^```\n\n```text\n(.*?)^```$")

// packageName finds the packages that a piece names.
var packageName = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)

const endOfPiece = "-- end of piece --"

func TestGoPackages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles a program: not with -short")
	}
	page := root + "docs/explanation/go-packages.md"
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	found := pieces.FindAllStringSubmatchIndex(text, -1)
	if len(found) != strings.Count(text, "```go\n") {
		t.Fatalf("%d pieces of %d have an output behind them", len(found), strings.Count(text, "```go\n"))
	}
	packages, err := filepath.Glob(root + "pkg/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range packages {
		if name := filepath.Base(folder); !strings.Contains(text, name+".") && !strings.Contains(text, "`"+name+"`") {
			t.Errorf("package %s is not on the page", name)
		}
	}

	var functions, calls strings.Builder
	imports := []string{`"context"`, `"fmt"`, `"log"`}
	for i, at := range found {
		piece := text[at[2]:at[3]]
		for _, m := range packageName.FindAllStringSubmatch(piece, -1) {
			path := fmt.Sprintf("%q", m[1])
			if _, err := os.Stat(root + "pkg/" + m[1]); err == nil {
				path = fmt.Sprintf("%q", "github.com/basetensor/basetensor/pkg/"+m[1])
			} else if !slices.Contains([]string{"os", "strings", "math"}, m[1]) {
				continue // a variable, or imported already
			}
			imports = append(imports, path)
		}
		if lines := strings.Split(strings.TrimSpace(piece), "\n"); !strings.HasPrefix(lines[len(lines)-1], "return") {
			piece += "return nil\n"
		}
		fmt.Fprintf(&functions, "func piece%d(ctx context.Context) error {\n%s}\n\n", i, piece)
		fmt.Fprintf(&calls, "\tif err := piece%d(ctx); err != nil {\n\t\tlog.Fatal(%d, err)\n\t}\n\tfmt.Println(%q)\n", i, i, endOfPiece)
	}
	slices.Sort(imports)
	program := filepath.Join(t.TempDir(), "main.go")
	const frame = "package main\n\nimport (\n%s\n)\n\nfunc main() {\n\tctx := context.Background()\n%s}\n\n%s"
	write(t, program, fmt.Sprintf(frame, strings.Join(slices.Compact(imports), "\n"), &calls, &functions))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", program)
	cmd.Dir = root // for the packages of this module
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}

	printed := strings.Split(string(out), endOfPiece+"\n")
	for i, at := range slices.Backward(found) {
		if written := text[at[4]:at[5]]; written != printed[i] {
			if !*update {
				t.Errorf("piece %d prints\n%s\nand the page has\n%s", i+1, printed[i], written)
			}
			text = text[:at[4]] + printed[i] + text[at[5]:]
		}
	}
	if *update && text != string(raw) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
