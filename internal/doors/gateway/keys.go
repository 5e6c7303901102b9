package gateway

// Authorisation: a file of keys, which is read again when it changes.

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/network/form"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Key is the permission of a caller.
type Key struct {
	Tenant   string // whose jobs and models; "": everybody's
	ReadOnly bool
	sum      [sha256.Size]byte
}

// Everybody stands in a file of keys for the tenant of a key that is everybody's.
const Everybody = "*"

// leastKey is the least length of a key: 16 characters.
const leastKey = 16

// lookEvery is how often the file is looked at.
const lookEvery = 2 * time.Second

// Keys are the keys of a file.
type Keys struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	all    []Key
	looked time.Time
	info   os.FileInfo
}

// OpenKeys reads a file of keys: a line has a tenant, or * for everybody, a key of 16 characters at
// least or, in its place, sha256: and the hexadecimal digits of its hash, and perhaps read-only.
// Text after # is a comment. The errors are bad input, name the line and contain no key. A file
// that changes and cannot be read leaves the keys as they were, and is logged.
func OpenKeys(path string, log *slog.Logger) (*Keys, error) {
	k := &Keys{path: path, log: log, looked: time.Now()}
	if err := k.read(); err != nil {
		return nil, fault.New(fault.BadInput, "keys: %w", err)
	}
	return k, nil
}

// read reads the file.
func (k *Keys) read() error {
	info, err := os.Stat(k.path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(k.path)
	if err != nil {
		return err
	}
	var all []Key
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		one, err := parseKey(words)
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", k.path, n+1, err)
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return fmt.Errorf("%s: no keys in it", k.path)
	}
	k.all, k.info = all, info
	return nil
}

// parseKey reads the words of a line.
func parseKey(words []string) (Key, error) {
	one := Key{Tenant: words[0]}
	switch {
	case one.Tenant == Everybody:
		one.Tenant = ""
	case !form.IsToken(one.Tenant) || access.Reserved(one.Tenant):
		return Key{}, fmt.Errorf("tenant %.80q is neither [A-Za-z0-9_-]{1,64} nor *", one.Tenant)
	}
	switch {
	case len(words) < 2:
		return Key{}, fmt.Errorf("a tenant, a key and perhaps read-only are needed")
	case len(words) == 3 && words[2] == "read-only":
		one.ReadOnly = true
	case len(words) > 2:
		return Key{}, fmt.Errorf("the text after the key is not read-only")
	}
	if digits, hashed := strings.CutPrefix(words[1], "sha256:"); hashed {
		sum, err := hex.DecodeString(digits)
		if err != nil || len(sum) != sha256.Size {
			return Key{}, fmt.Errorf("sha256: is not followed by 64 hexadecimal digits")
		}
		copy(one.sum[:], sum)
		return one, nil
	}
	if len(words[1]) < leastKey {
		return Key{}, fmt.Errorf("a key has at least %d characters", leastKey)
	}
	one.sum = sha256.Sum256([]byte(words[1]))
	return one, nil
}

// now returns the keys, after a look at the file if the last one was a while ago.
func (k *Keys) now() []Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.looked) < lookEvery {
		return k.all
	}
	k.looked = time.Now()
	info, err := os.Stat(k.path)
	if err == nil && info.ModTime().Equal(k.info.ModTime()) && info.Size() == k.info.Size() && os.SameFile(info, k.info) {
		return k.all
	}
	if err := k.read(); err != nil {
		k.log.Warn("cannot read the keys again: the old ones stay", "error", err)
		return k.all
	}
	k.log.Info("the keys were read again", "keys", len(k.all))
	return k.all
}

// Of returns the key that a header Authorization has. It takes the same time for every wrong key.
func (k *Keys) Of(authorization string) (Key, error) {
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" {
		return Key{}, refuse(http.StatusUnauthorized, fault.BadInput, "a key is needed: Authorization: Bearer KEY")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	var found *Key
	all := k.now()
	for i := range all {
		if subtle.ConstantTimeCompare(all[i].sum[:], sum[:]) == 1 {
			found = &all[i]
		}
	}
	if found == nil {
		return Key{}, refuse(http.StatusUnauthorized, fault.BadInput, "the key is not known")
	}
	return *found, nil
}

// tenants are the clients of the tenants with keys.
type tenants struct {
	mu  sync.Mutex
	all map[string]*client.Client
}

// of returns a client with the permissions of the tenant.
func (t *tenants) of(c Connection, tenant string) (*client.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.all[tenant]; one != nil {
		return one, nil
	}
	b, err := c.bus(tenant)
	if err != nil {
		return nil, err
	}
	if t.all == nil {
		t.all = map[string]*client.Client{}
	}
	t.all[tenant] = client.On(b)
	return t.all[tenant], nil
}
