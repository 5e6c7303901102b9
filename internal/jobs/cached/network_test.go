package cached_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestNetworkKeyStays: networks of registered models are cached under it.
func TestNetworkKeyStays(t *testing.T) {
	const want = "btn:v1:network:1:9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4:" +
		"cde0fb0dec1400c54a0f7e7eafa73624c53e4da258bbd34b3380a0defeba95c1"
	if got := cache.NetworkKey("1", wire.Digest([]byte("model")), "settings"); got != want {
		t.Errorf("the key is %s", got)
	}
}
