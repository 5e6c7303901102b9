package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Flags are the flags of commands that sign messages, or want them signed.
type Flags struct {
	MessageKeys    string `name:"message-keys" placeholder:"FILE" help:"${message_keys_help}"`
	AcceptUnsigned bool   `name:"accept-unsigned" help:"Believe unsigned messages too, while --message-keys is being introduced."`
}

// Help are the help texts of Flags.
var Help = map[string]string{
	"message_keys_help": "Keys that sign what workers write for each other: one per line, at least 32 bytes in base64, # for comments. " +
		"The first signs, all verify.",
}

// Check refuses flags that contradict each other.
func (f Flags) Check() error {
	if f.AcceptUnsigned && f.MessageKeys == "" {
		return fault.New(fault.BadInput, "seal: --accept-unsigned belongs to --message-keys")
	}
	return nil
}

// Open returns the keys of the file, nil where none is named. The log may be nil.
func (f Flags) Open(log *slog.Logger) (*Keys, error) {
	if err := f.Check(); err != nil || f.MessageKeys == "" {
		return nil, err
	}
	return Open(f.MessageKeys, f.AcceptUnsigned, log)
}

// Keys are those of a file. Its methods may be called from any goroutine.
type Keys struct {
	file     string
	unsigned bool // messages without a MAC are believed
	log      *slog.Logger

	keys   atomic.Pointer[set]
	looked atomic.Int64 // when the file was looked at last, Unix nanoseconds

	mu    sync.Mutex
	info  os.FileInfo // of the file when it was read last; nil after a failure
	worse bool        // it could not be read since
}

// set is what one version of the file gives.
type set struct {
	all     []*key
	secrets [][]byte
}

// lookEvery is the least time between two looks at the file, unless a message does not verify.
const lookEvery = time.Second

// Open reads the keys of a file. With unsigned, messages without a MAC are believed. The log may be nil.
func Open(file string, unsigned bool, log *slog.Logger) (*Keys, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &Keys{file: file, unsigned: unsigned, log: log}
	if err := k.read(); err != nil {
		return nil, fault.New(fault.BadInput, "seal: message keys: %w", err)
	}
	return k, nil
}

// now returns the keys, after a look at the file if the last one was a while ago.
func (k *Keys) now() []*key { return k.nowSet().all }

func (k *Keys) nowSet() *set {
	if k.stale() {
		k.mu.Lock()
		// Whoever finds the last look too old waits for the next one, lest it sign with a key that is gone.
		if k.stale() {
			k.reread()
			k.looked.Store(time.Now().UnixNano())
		}
		k.mu.Unlock()
	}
	return k.keys.Load()
}

// stale reports whether the last look at the file was a while ago.
func (k *Keys) stale() bool { return time.Now().UnixNano()-k.looked.Load() > int64(lookEvery) }

// look reads the file again if it has changed, and reports whether the keys are others now. A file that cannot be read leaves them as
// they are.
func (k *Keys) look() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reread()
}

// reread is look for who holds the lock.
func (k *Keys) reread() bool {
	info, err := os.Stat(k.file)
	if err == nil && k.info != nil && same(info, k.info) {
		return false
	}
	before := k.keys.Load()
	if err = k.read(); err != nil {
		if !k.worse {
			k.log.Warn("cannot read the message keys again: the old ones stay", "error", err)
		}
		k.info = nil
		k.worse = true
		return false
	}
	k.worse = false
	k.log.Info("the message keys were read again", "keys", len(k.keys.Load().all))
	return k.keys.Load() != before
}

func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// read reads the file. Its errors say nothing of what the file holds.
func (k *Keys) read() error {
	info, err := os.Stat(k.file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return err
	}
	s := &set{}
	for n, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(secret) < leastKey {
			return fmt.Errorf("%s, line %d: no base64 of at least %d bytes", k.file, n+1, leastKey)
		}
		one := newKey(secret)
		s.all = append(s.all, one)
		s.secrets = append(s.secrets, one.cache)
	}
	if len(s.all) == 0 {
		return fmt.Errorf("%s: %w", k.file, errNone)
	}
	if k.unsigned {
		s.secrets = append(s.secrets, nil)
	}
	k.info = info
	k.keys.Store(s)
	return nil
}

// leastKey is the least number of bytes of a key.
const leastKey = 32

var errNone = errors.New("no keys in it")
