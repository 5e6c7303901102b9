package architecture

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestServersOfSingle: the overlay for trying has the configurations of deploy/, byte by byte: kustomize reads no file
// outside of its folder.
func TestServersOfSingle(t *testing.T) {
	for _, name := range []string{"nats-server.conf", "redis.conf"} {
		want, err := os.ReadFile("../../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile("../../../deploy/kubernetes/single/" + name)
		if err != nil || string(have) != string(want) {
			t.Errorf("deploy/kubernetes/single/%s is not deploy/%[1]s: copy it (%v)", name, err)
		}
	}
}

// TestUnitSyncs: the service of one machine loses no acknowledged job when the power is cut, as the tutorial says of --sync.
func TestUnitSyncs(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/basetensor.service")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if settings, ok := strings.CutPrefix(line, "Environment="); ok && strings.Contains(settings, "BTN_DIR=") {
			if !slices.Contains(strings.Fields(settings), "BTN_SYNC=true") {
				t.Errorf("files that are not synced: %s", line)
			}
			return
		}
	}
	t.Error("the unit keeps no files")
}
