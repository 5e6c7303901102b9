package commands

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestNames: names has all folders of cmd in both modules, and Install makes a link to the built command of each name.
func TestNames(t *testing.T) {
	var found []string
	for _, folder := range []string{"cmd", "lab/cmd"} {
		list, err := os.ReadDir(filepath.Join("../../..", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list {
			found = append(found, entry.Name())
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, names) {
		t.Errorf("commands %v, names %v", found, names)
	}

	folder := t.TempDir()
	t.Setenv(Variable, "/built")
	if err := Install(folder, "../../.."); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if target, err := os.Readlink(filepath.Join(folder, name)); err != nil || target != "/built/"+name {
			t.Errorf("%s is %q: %v", name, target, err)
		}
	}
}
