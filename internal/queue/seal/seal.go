// Package seal signs messages between workers and the answers of aggregators, and detects forged ones. The keys are in
// files, which are read again when they change: the first one signs, all of them verify.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sync"
)

// Header is the header of a message with its MAC, in hexadecimal digits.
const Header = "Btn-Mac"

// macBytes is the number of bytes of HMAC-SHA256 that a message carries.
const macBytes = 16

// key is the content of one line of the file: a key for messages and one for entries of the cache.
type key struct {
	states sync.Pool // *state, keyed for messages
	cache  []byte
	name   string // tells keys apart
}

// state is an HMAC at its beginning, with the room that one message needs.
type state struct {
	mac    hash.Hash
	prefix []byte
	sum    [sha256.Size]byte
}

// nameBytes is the number of bytes of a key's name.
const nameBytes = 8

// newKey derives the keys and the name of one line. None says anything of another.
func newKey(secret []byte) *key {
	derive := func(purpose string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(purpose))
		return h.Sum(nil)
	}
	messages := derive("basetensor: messages, 1")
	k := &key{cache: derive("basetensor: cache, 1"), name: hex.EncodeToString(derive("basetensor: name, 1")[:nameBytes])}
	k.states.New = func() any { return &state{mac: hmac.New(sha256.New, messages)} }
	return k
}

// mac writes the MAC of a message into to. The covered bytes begin with the lengths of subject and
// blob, so no two messages look alike.
func (k *key) mac(to *[macBytes]byte, subject, blob string, data []byte) {
	s := k.states.Get().(*state)
	s.prefix = binary.LittleEndian.AppendUint32(s.prefix[:0], uint32(len(subject)))
	s.prefix = binary.LittleEndian.AppendUint32(s.prefix, uint32(len(blob)))
	s.prefix = append(s.prefix, subject...)
	s.prefix = append(s.prefix, blob...)

	s.mac.Reset()
	s.mac.Write(s.prefix)
	s.mac.Write(data)
	copy(to[:], s.mac.Sum(s.sum[:0]))
	k.states.Put(s)
}

// Sign returns the MAC of a message: of its subject, its blob ("" for none) and its data.
func (k *Keys) Sign(subject, blob string, data []byte) string {
	var mac [macBytes]byte
	k.file.Now().all[0].mac(&mac, subject, blob, data)
	return hex.EncodeToString(mac[:])
}

// Verify reports whether a message has the MAC that one of the keys gives it.
func (k *Keys) Verify(mac, subject, blob string, data []byte) bool {
	var said [macBytes]byte
	if len(mac) != hex.EncodedLen(macBytes) {
		return false
	}
	for i := range said {
		high, low := digit(mac[2*i]), digit(mac[2*i+1])
		if high|low > 15 {
			return false
		}
		said[i] = high<<4 | low
	}
	return k.file.Either(func(now *set) bool { return verify(now.all, &said, subject, blob, data) })
}

func verify(keys []*key, said *[macBytes]byte, subject, blob string, data []byte) bool {
	var mac [macBytes]byte
	for _, one := range keys {
		if one.mac(&mac, subject, blob, data); hmac.Equal(mac[:], said[:]) {
			return true
		}
	}
	return false
}

// digit is the value of a digit as Sign writes it, or more than 15.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// Secrets returns the keys of the cache's entries: the first seals, all of them open. A nil *Keys has none.
func (k *Keys) Secrets() [][]byte {
	if k == nil {
		return nil
	}
	return k.file.Now().secrets
}

// Names returns the name of each key, that of the signing one first. Names tell keys apart, and may be public: nothing of a key follows
// from its name. A nil *Keys has none.
func (k *Keys) Names() []string {
	if k == nil {
		return nil
	}
	var names []string
	for _, key := range k.file.Now().all {
		names = append(names, key.name)
	}
	return names
}

// NewKey returns a line for a file of keys: 32 random bytes in base64.
func NewKey() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b), nil
}
