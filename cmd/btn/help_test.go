package main

import (
	"strings"
	"testing"
)

// TestAloneItPrintsItsHelp: as with --help.
func TestAloneItPrintsItsHelp(t *testing.T) {
	code, stdout, stderr := command(t)
	if _, help, _ := command(t, "--help"); code != 0 || stderr != "" || stdout != help || !strings.Contains(stdout, "Usage: btn") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
