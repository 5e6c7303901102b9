package console

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// TestReplace: a file is as it was, or whole, and nothing is left beside it; only its owner reads one that is private.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.gz")
	says := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, wrote := io.WriteString(w, text)
			return errors.Join(wrote, err)
		}
	}
	if err := ReplaceFile(name, 0o600, says("old", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := ReplaceFile(name, 0o600, says("half", broken)); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	in, err := decompress(bytes.NewReader(raw), 100)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(in); err != nil || string(text) != "old" || bytes.Equal(raw, text) {
		t.Errorf("%q of %q, %v", text, raw, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	nowhere := filepath.Join(dir, "none", "out")
	err = ReplaceFile(nowhere, 0o600, says("", nil))
	if fault.CodeOf(err) != fault.BadInput || !strings.HasPrefix(err.Error(), "open "+nowhere+": ") {
		t.Error(err)
	}
	if err := ReplaceFile(os.DevNull, 0o600, says("gone", nil)); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s became a file, %v", os.DevNull, err)
	}
}

// TestBar: numbers that make no sense draw a bar, too.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &Bar{out: &out}
	for _, c := range [][2]float64{{1, 2}, {math.MaxInt64, 1}, {-1, 1}, {0, 0}, {1, -1}} {
		b.Draw("before ", c[0], c[1], "text")
	}
	if want := "\r\x1b[Kbefore [###############---------------] text"; !bytes.HasPrefix(out.Bytes(), []byte(want)) {
		t.Errorf("%q, want %q", out.String(), want)
	}
	b.Clear()
	NewBar(&out).Draw("", 1, 2, "a pipe has none")
}
