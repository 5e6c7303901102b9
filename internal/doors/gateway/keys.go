package gateway

// Authorisation: a file of keys, which is read again when it changes.

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/watched"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Key is the permission of a caller.
type Key struct {
	Tenant   string // whose jobs and models the caller may see; "": everybody's
	ReadOnly bool
	sum      [sha256.Size]byte // of the key's text
}

// Everybody stands in a file of keys for the tenant of a key that is everybody's.
const Everybody = "*"

// leastKey is the least length of a key: 16 characters.
const leastKey = 16

// Keys are the keys of a file.
type Keys struct {
	file *watched.File[[]Key]
}

// OpenKeys reads a file of keys: a line has a tenant, or * for everybody, a key of 16 characters at
// least or, in its place, sha256: and the hexadecimal digits of its hash, and perhaps read-only.
// Text after # is a comment. The errors are bad input, name the line and contain no key. A file
// that changes and cannot be read leaves the keys as they were, and is logged.
func OpenKeys(path string, log *slog.Logger) (*Keys, error) {
	file, err := watched.Open("the keys", path, func(text string) ([]Key, error) {
		var keys []Key
		for _, l := range watched.Lines(text) {
			key, err := parseKey(strings.Fields(l.Text))
			if err != nil {
				return nil, fmt.Errorf("%s, line %d: %w", path, l.Number, err)
			}
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("%s: no keys in it", path)
		}
		return keys, nil
	}, log)
	if err != nil {
		return nil, fault.New(fault.BadInput, "--keys: %w", err)
	}
	return &Keys{file}, nil
}

// parseKey reads the words of a line of a file of keys: a tenant, a key or its hash, and perhaps read-only.
func parseKey(words []string) (Key, error) {
	// tenant
	key := Key{Tenant: words[0]}
	switch {
	case key.Tenant == Everybody:
		key.Tenant = ""
	case !form.IsOwner(key.Tenant) || access.IsReservedName(key.Tenant):
		return Key{}, fmt.Errorf("tenant %.80q is neither [A-Za-z0-9_-]{1,64} nor *", key.Tenant)
	}

	// read-only
	switch {
	case len(words) < 2:
		return Key{}, fmt.Errorf("a tenant, a key and perhaps read-only are needed")
	case len(words) == 3 && words[2] == "read-only":
		key.ReadOnly = true
	case len(words) > 2:
		return Key{}, fmt.Errorf("the text after the key is not read-only")
	}

	// key
	if digits, isHash := strings.CutPrefix(words[1], "sha256:"); isHash {
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size {
			return Key{}, fmt.Errorf("sha256: is not followed by 64 hexadecimal digits")
		}
		copy(key.sum[:], sum)
		return key, nil
	}
	if len(words[1]) < leastKey {
		return Key{}, fmt.Errorf("a key has at least %d characters", leastKey)
	}
	key.sum = sha256.Sum256([]byte(words[1]))
	return key, nil
}

// Find returns the key that a header Authorization has. It takes the same time for every wrong key.
func (k *Keys) Find(authorization string) (Key, error) {
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return Key{}, refuse(http.StatusUnauthorized, fault.BadInput, "a key is needed: Authorization: Bearer KEY")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	var match *Key
	keys := k.file.Value()
	for i := range keys { // no break: the time must not depend on the key
		if subtle.ConstantTimeCompare(keys[i].sum[:], sum[:]) == 1 {
			match = &keys[i]
		}
	}
	if match == nil {
		return Key{}, refuse(http.StatusUnauthorized, fault.BadInput, "the key is not known")
	}
	return *match, nil
}

// tenantClients are the clients of the tenants with keys.
type tenantClients struct {
	options client.Options // of the gateway's own client

	mu      sync.Mutex
	clients map[string]*client.Client // under mu
}

// clientOf returns a client with the permissions of the tenant.
func (t *tenantClients) clientOf(nc *nats.Conn, tenant string) (*client.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tenantClient := t.clients[tenant]; tenantClient != nil {
		return tenantClient, nil
	}
	o := t.options
	o.Tenant = tenant
	tenantClient, err := client.New(nc, o)
	if err != nil {
		return nil, err
	}
	if t.clients == nil {
		t.clients = map[string]*client.Client{}
	}
	t.clients[tenant] = tenantClient
	return tenantClient, nil
}
