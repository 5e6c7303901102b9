package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestFamiliesAreWritten: a file per model, that reads as one; without a folder the families are listed.
func TestFamiliesAreWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "models")
	code, _, stderr := command(t, "families", "qmr", "potts", "--per-family=2", "--large=1", "--out", dir)
	if code != 0 {
		t.Fatal(stderr)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.uai"))
	if len(files) != 2+2+len(families.Large(1)) {
		t.Errorf("%v", files)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := uai.Read(f, uai.Limits{}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		f.Close()
	}
	grown := filepath.Join(dir, "grown")
	if code, _, stderr := command(t, "families", "qmr", "--per-family=1", "--times=2", "--out", grown); code != 0 {
		t.Fatal(stderr)
	}
	if _, err := os.Stat(filepath.Join(grown, "qmr-52-0.05-0.uai")); err != nil {
		t.Error(err)
	}
	if code, out, _ := command(t, "families"); code != 0 || strings.Count(out, "\n") != 49 {
		t.Errorf("exit code %d, %s", code, out)
	}
	for _, args := range [][]string{{"nothing", "--out", dir}, {"--per-family=-1"}, {"--times=0"}} {
		if code, _, _ := command(t, append([]string{"families"}, args...)...); code == 0 {
			t.Errorf("%v is taken", args)
		}
	}
}
