package truth

import (
	"path/filepath"
	"testing"
)

// TestPastViolations runs the minimised cases in testdata, which had a violation once: they have none now.
func TestPastViolations(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d cases: %v", len(paths), err)
	}
	for _, path := range paths {
		c, err := Load(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		for _, v := range Check(c, Solve(c.Model, c.Queries), Run(c, DefaultLimits)) {
			t.Errorf("%s: query %d: %s: %s", path, v.Query, v.Class, v.Detail)
		}
	}
}
