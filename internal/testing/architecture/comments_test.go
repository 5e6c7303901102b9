package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
