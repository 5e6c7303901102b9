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

// key is what is derived from one line of the file: a key for messages, and one for entries of the cache.
type key struct {
	macPool  sync.Pool // of *state, with the key for messages
	cacheKey []byte
	name     string // tells keys apart, see Keys.Names
}

// state is an HMAC before its first byte, with buffers for one message.
type state struct {
	mac    hash.Hash
	prefix []byte            // the bytes that are hashed before the data
	sum    [sha256.Size]byte // the result
}

// nameBytes is the number of bytes of a key's name.
const nameBytes = 8

// newKey derives from the secret of one line the key of messages, the key of caches and the key's name. They are
// HMAC-SHA256 of three purposes, so none of the three tells anything about another.
func newKey(secret []byte) *key {
	derive := func(purpose string) []byte {
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(purpose))
		return h.Sum(nil)
	}
	messages := derive("basetensor: messages, 1")
	key := &key{cacheKey: derive("basetensor: cache, 1"), name: hex.EncodeToString(derive("basetensor: name, 1")[:nameBytes])}
	key.macPool.New = func() any { return &state{mac: hmac.New(sha256.New, messages)} }
	return key
}

// writeMAC writes the MAC of a message into out. The hashed bytes begin with the lengths of subject and blob, so that
// different messages have different bytes.
func (k *key) writeMAC(out *[macBytes]byte, subject, blob string, data []byte) {
	state := k.macPool.Get().(*state)
	state.prefix = binary.LittleEndian.AppendUint32(state.prefix[:0], uint32(len(subject)))
	state.prefix = binary.LittleEndian.AppendUint32(state.prefix, uint32(len(blob)))
	state.prefix = append(state.prefix, subject...)
	state.prefix = append(state.prefix, blob...)

	state.mac.Reset()
	state.mac.Write(state.prefix)
	state.mac.Write(data)
	copy(out[:], state.mac.Sum(state.sum[:0]))
	k.macPool.Put(state)
}

// Sign returns the MAC of a message: of its subject, the digest of its blob ("" for none) and its data.
func (k *Keys) Sign(subject, blob string, data []byte) string {
	var mac [macBytes]byte
	k.file.Value().keys[0].writeMAC(&mac, subject, blob, data)
	return hex.EncodeToString(mac[:])
}

// Verify reports whether mac, in hexadecimal digits, is the MAC of a message by one of the keys.
func (k *Keys) Verify(mac, subject, blob string, data []byte) bool {
	var wanted [macBytes]byte
	if len(mac) != hex.EncodedLen(macBytes) {
		return false
	}
	for i := range wanted {
		high, low := hexDigit(mac[2*i]), hexDigit(mac[2*i+1])
		if high|low > 15 { // hexDigit has returned 255 for one of them
			return false
		}
		wanted[i] = high<<4 | low
	}
	return k.file.HoldsNowOrAfterReload(func(keys *keySet) bool { return anyVerifies(keys.keys, &wanted, subject, blob, data) })
}

// anyVerifies reports whether mac is the MAC of a message by one of the keys.
func anyVerifies(keys []*key, mac *[macBytes]byte, subject, blob string, data []byte) bool {
	var computed [macBytes]byte
	for _, key := range keys {
		if key.writeMAC(&computed, subject, blob, data); hmac.Equal(computed[:], mac[:]) {
			return true
		}
	}
	return false
}

// hexDigit returns the value of a hexadecimal digit in lower case, or 255 for any other byte.
func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// Secrets returns the keys by which entries of the cache are authenticated: the first makes their HMACs, and all of
// them verify. A nil *Keys has none.
func (k *Keys) Secrets() [][]byte {
	if k == nil {
		return nil
	}
	return k.file.Value().cacheKeys
}

// Names returns the name of each key, that of the signing one first. Names tell keys apart, and may be public, because
// nothing about a key follows from its name. A nil *Keys has none.
func (k *Keys) Names() []string {
	if k == nil {
		return nil
	}
	var names []string
	for _, key := range k.file.Value().keys {
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
