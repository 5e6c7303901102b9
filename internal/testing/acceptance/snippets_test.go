package acceptance

// The programs of README.md, run as they are written there.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// goProgram puts a fragment into a program that can be run.
const goProgram = `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

func main() {
%s}
`

// TestReadmePrograms: the fragments in Go, Python and the shell have five lines at most, and print P(lung = yes | smoke = yes,
// xray = abnormal).
func TestReadmePrograms(t *testing.T) {
	t.Parallel()
	up := startUp(t)
	raw, err := os.ReadFile(root + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("nats://127.0.0.1:4222", up.nats, "http://127.0.0.1:8080", up.gateway).Replace(string(raw))
	want := fmt.Sprintf("%.9f", pLung)

	for language, start := range map[string]func(t *testing.T, fragment string) []string{
		"go": func(t *testing.T, fragment string) []string {
			program := filepath.Join(t.TempDir(), "main.go")
			write(t, program, fmt.Sprintf(goProgram, fragment))
			return []string{"go", "run", program} // run within this module, for its packages
		},
		"python": func(t *testing.T, fragment string) []string { return []string{python(t), "-c", fragment} },
		"sh": func(t *testing.T, fragment string) []string {
			if _, err := exec.LookPath("curl"); err != nil {
				t.Skip("no curl on PATH")
			}
			return []string{"sh", "-c", fragment}
		},
	} {
		t.Run(language, func(t *testing.T) {
			found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(text, -1)
			if len(found) != 1 || strings.Count(found[0][1], "\n") > 5 {
				t.Fatalf("README.md has %d blocks of %s, want one of five lines at most", len(found), language)
			}
			argv := start(t, found[0][1])
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			src, err := filepath.Abs(pythonDir + "/src")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Dir = root
			cmd.Env = append(os.Environ(), "PYTHONPATH="+src, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), want) {
				t.Errorf("%v: no %s in %s", err, want, out)
			}
		})
	}
}
