package acceptance

// The programs with which docs/reference/wire.md begins.

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// firstPrograms are files of examples/ by their languages.
var firstPrograms = map[string]string{"js": "client-node/first.mjs", "go": "first/main.go", "python": "first/first.py"}

// TestWireDocPrograms: the document has the programs as the files have them.
func TestWireDocPrograms(t *testing.T) {
	doc := wireDoc(t)
	for language, file := range firstPrograms {
		text, err := os.ReadFile(examples + file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(doc, "```"+language+"\n"+string(text)+"```\n") {
			t.Errorf("docs/reference/wire.md does not have examples/%s as it is, in a block of %s", file, language)
		}
	}
}

// pLung is P(lung = yes | smoke = yes, xray = abnormal), by hand from the tables of asia.json. Tuberculosis or cancer has an abnormal X-ray
// with 0.98, neither with 0.05.
const (
	cancer, tuberculosis = 0.1, 0.99*0.01 + 0.01*0.05
	either               = 1 - (1-cancer)*(1-tuberculosis)
	pLung                = 0.98 * cancer / (0.98*either + 0.05*(1-either))
)

// TestFirstPrograms: each program prints P(lung = yes | smoke = yes, xray = abnormal).
func TestFirstPrograms(t *testing.T) {
	t.Parallel()
	up := startUp(t)

	for language, start := range map[string]func(*testing.T) []string{
		"js":     func(t *testing.T) []string { return nodeClient(t).argv[:1] },
		"go":     func(*testing.T) []string { return []string{"go", "run"} },
		"python": func(t *testing.T) []string { return []string{python(t)} },
	} {
		t.Run(language, func(t *testing.T) {
			argv := append(start(t), "examples/"+firstPrograms[language])
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
			cmd.Dir = root
			src, err := filepath.Abs(pythonDir + "/src")
			if err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(os.Environ(), "BTN_NATS="+up.nats, "BTN_GATEWAY="+up.gateway, "PYTHONPATH="+src, "PYTHONDONTWRITEBYTECODE=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, out)
			}
			printed, named := strings.CutPrefix(strings.TrimSpace(string(out)), "P(lung = yes) = ")
			got, err := strconv.ParseFloat(printed, 64)
			if err != nil || !named || math.Abs(got-pLung) > 1e-12 {
				t.Errorf("%v prints %q, and by hand it is %v", argv, out, pLung)
			}
		})
	}
}
