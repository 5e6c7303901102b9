package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is the largest number of characters of a line, a tab counted as one. Aim at 100.
const widest = 140

// TestNoLineIsTooWide: no line of a Go file has more than widest characters, so that two files fit side by side.
func TestNoLineIsTooWide(t *testing.T) {
	files := 0
	for _, root := range []string{"cmd", "examples", "internal", "lab", "pkg", "schemas"} {
		err := filepath.WalkDir(filepath.Join(modules[0], root), func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			name, err := filepath.Rel(modules[0], path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			for k, line := range strings.Split(string(text), "\n") {
				if n := utf8.RuneCountInString(line); n > widest {
					t.Errorf("%s:%d: %d characters, at most %d", name, k+1, n, widest)
				}
			}
			files++
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files == 0 {
		t.Error("no file was found")
	}
}
