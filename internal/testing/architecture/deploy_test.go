package architecture

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestServersOfSingle: deploy/kubernetes/single has copies of the servers' configurations in deploy/, byte by byte. It needs copies since
// kustomize reads no file outside of its folder.
func TestServersOfSingle(t *testing.T) {
	for _, name := range []string{"nats-server.conf", "redis.conf"} {
		want, err := os.ReadFile("../../../deploy/" + name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../deploy/kubernetes/single/" + name)
		if err != nil || string(got) != string(want) {
			t.Errorf("deploy/kubernetes/single/%s is not deploy/%[1]s: copy it (%v)", name, err)
		}
	}
}

// TestUnitSyncs: the systemd unit sets BTN_DIR, and BTN_SYNC=true with it, so that no acknowledged job is lost when the power is cut.
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
