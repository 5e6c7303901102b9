package architecture

import (
	"os"
	"testing"
)

// TestServersOfSingle: the overlay for trying has the configurations of deploy/, byte by byte: kustomize reads no file outside of its folder.
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
