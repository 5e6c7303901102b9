package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPackageComments: every package has a file with a package comment.
func TestPackageComments(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^// .*\npackage `)
	hasComment := map[string]bool{} // by folder
	for _, root := range []string{"cmd", "internal", "pkg", "lab"} {
		err := filepath.WalkDir(filepath.Join(modules[0], root), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.Contains(path, "testdata") {
				return err
			}
			text, err := os.ReadFile(path)
			hasComment[filepath.Dir(path)] = hasComment[filepath.Dir(path)] || comment.Match(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for folder, isCommented := range hasComment {
		if !isCommented {
			t.Errorf("%s: no file has a package comment", folder)
		}
	}
}
