package cache

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"

	"github.com/basetensor/basetensor/internal/base/digest"
)

// NetworkKey returns the key of a registered model's network: btn:v1:network:<version>:<model's
// digest>:<SHA-256 of its other inputs>. The model's digest is in it, so that all entries of a
// model can be found.
func NetworkKey(version, model, settings string) string {
	return "btn:v1:network:" + version + ":" + model + ":" + digest.HexOf([]byte(settings))
}

// KeyOf returns the key of an owner's own entry instead of everybody's. If owner is "", it returns key.
func KeyOf(owner, key string) string {
	if owner == "" {
		return key
	}
	return key + ":of:" + owner
}

// Owner returns the text that stands for a tenant in the keys of its entries. The tenant's name cannot be read from it.
func Owner(tenant string) string { return digest.HexOf([]byte("owner " + tenant))[:32] }

// writeWithLength writes the length of b and b, so that different sequences of texts have different bytes.
func writeWithLength(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

// valuePlace says where the value of an entry is.
type valuePlace byte

const (
	inEntry    valuePlace = 0 // the payload is the value
	inOverflow valuePlace = 2 // the payload is the digest of the value in the overflow store, with the key behind it
)

// The header of an entry:
//
//	bytes 0–3   "BTNC"
//	byte  4     version of this layout, 1
//	byte  5     valuePlace
//	bytes 6–7   zero
//	bytes 8–15  length of the payload, little-endian
//	bytes 16–47 HMAC-SHA256 under the secret, of bytes 4–15, the key with its length, and the payload
//
// An empty secret makes the HMAC a checksum: it finds rot and mix-ups, not forgery.
const (
	magic         = "BTNC"
	layoutVersion = 1
	headerSize    = 48
)

// errEntry means that an entry differs from the one that Put stored under its key.
var errEntry = errors.New("cache: entry does not match its key and checksum")

// sealEntry returns the entry with a payload for a key. Its header has the magic number (bytes 0–3), the version of the
// layout, the place of the value, the length of the payload (bytes 8–15), and from byte 16 on an HMAC with the first
// secret of bytes 4–15, the key and the payload. The payload follows.
func sealEntry(secrets [][]byte, key string, where valuePlace, payload []byte) []byte {
	var secret []byte
	if len(secrets) > 0 {
		secret = secrets[0]
	}
	entry := make([]byte, headerSize, headerSize+len(payload))
	copy(entry, magic)
	entry[4], entry[5] = layoutVersion, byte(where)
	binary.LittleEndian.PutUint64(entry[8:], uint64(len(payload)))
	copy(entry[16:], entryMAC(secret, key, entry[4:16], payload))
	return append(entry, payload...)
}

// unsealEntry returns the place of an entry's value and the entry's payload, if every bit is as sealEntry wrote it for this
// key with one of the secrets. Without secrets the empty one is tried.
func unsealEntry(secrets [][]byte, key string, entry []byte) (valuePlace, []byte, error) {
	// The magic number, the layout, the length and the place have to be right.
	if len(entry) < headerSize || !bytes.HasPrefix(entry, []byte(magic)) || entry[4] != layoutVersion {
		return 0, nil, errEntry
	}
	if binary.LittleEndian.Uint64(entry[8:]) != uint64(len(entry)-headerSize) {
		return 0, nil, errEntry
	}
	payload := entry[headerSize:len(entry):len(entry)]
	if where := valuePlace(entry[5]); where != inEntry && where != inOverflow {
		return 0, nil, errEntry
	}

	// One of the secrets has to give the HMAC.
	if len(secrets) == 0 {
		secrets = [][]byte{nil}
	}
	for _, secret := range secrets {
		if hmac.Equal(entry[16:headerSize], entryMAC(secret, key, entry[4:16], payload)) {
			return valuePlace(entry[5]), payload, nil
		}
	}
	return 0, nil, errEntry
}

// entryMAC returns the HMAC of an entry: of header (bytes 4–15), the key with its length, and the payload.
func entryMAC(secret []byte, key string, header, payload []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(header)
	writeWithLength(h, []byte(key))
	h.Write(payload)
	return h.Sum(nil)
}
