package config

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestVersionFlag: --version prints a line and exits, even if everything else is wrong or missing.
func TestVersionFlag(t *testing.T) {
	var s struct {
		settings
		Needed string `required:""`
	}
	var out bytes.Buffer
	exits := 0
	_, _ = Parse(&s, []string{"--version"}, &out, &out, func(code int) {
		if code == 0 {
			exits++
		}
	}, kong.Name("some-worker"))
	line, _, _ := strings.Cut(out.String(), "\n")
	if exits == 0 || !strings.HasPrefix(line, "some-worker ") || !strings.Contains(line, runtime.Version()) ||
		!strings.Contains(line, "revision ") {
		t.Errorf("%d exits, printed %q", exits, out.String())
	}
}
