package seal

import (
	"strings"
	"testing"
)

// TestAFileHasFewKeys: as many as workers may tell the names of.
func TestAFileHasFewKeys(t *testing.T) {
	line, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for n, isFile := range map[int]bool{maxKeys: true, maxKeys + 1: false} {
		if _, err := parseKeys("FILE", strings.Repeat(line+"\n", n)); isFile != (err == nil) {
			t.Errorf("%d keys: %v", n, err)
		}
	}
}
