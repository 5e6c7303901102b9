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
	return "btn:v1:network:" + version + ":" + model + ":" + digest.Of([]byte(settings))
}

// KeyOf returns the key of an owner's entry in place of everybody's; without an owner it is everybody's.
func KeyOf(owner, key string) string {
	if owner == "" {
		return key
	}
	return key + ":of:" + owner
}

// Owner returns the owner of a tenant's entries, as which keys have it: it says no name.
func Owner(tenant string) string { return digest.Of([]byte("owner " + tenant))[:32] }

func writeSized(h hash.Hash, b []byte) {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}

// place says where the value of an entry is.
type place byte

const (
	here      place = 0 // the payload is the value
	elsewhere place = 2 // the payload is the digest of the value in the overflow store, with the key behind it
)

// The header of an entry:
//
//	bytes 0–3   "BTNC"
//	byte  4     version of this layout, 1
//	byte  5     place
//	bytes 6–7   zero
//	bytes 8–15  length of the payload, little-endian
//	bytes 16–47 HMAC-SHA256 under the secret, of bytes 4–15, the key with its length, and the payload
//
// An empty secret makes the HMAC a checksum: it finds rot and mix-ups, not forgery.
const (
	magic      = "BTNC"
	layout     = 1
	headerSize = 48
)

// errEntry: an entry differs from the one that Put stored under its key.
var errEntry = errors.New("cache: entry does not match its key and checksum")

func seal(secrets [][]byte, key string, where place, payload []byte) []byte {
	var secret []byte
	if len(secrets) > 0 {
		secret = secrets[0]
	}
	entry := make([]byte, headerSize, headerSize+len(payload))
	copy(entry, magic)
	entry[4], entry[5] = layout, byte(where)
	binary.LittleEndian.PutUint64(entry[8:], uint64(len(payload)))
	copy(entry[16:], check(secret, key, entry[4:16], payload))
	return append(entry, payload...)
}

// unseal returns an entry's payload if every bit is as seal wrote it, for this key and under one of the secrets.
func unseal(secrets [][]byte, key string, entry []byte) (place, []byte, error) {
	if len(entry) < headerSize || !bytes.HasPrefix(entry, []byte(magic)) || entry[4] != layout ||
		binary.LittleEndian.Uint64(entry[8:]) != uint64(len(entry)-headerSize) {
		return 0, nil, errEntry
	}
	payload := entry[headerSize:len(entry):len(entry)]
	if where := place(entry[5]); where != here && where != elsewhere {
		return 0, nil, errEntry
	}
	if len(secrets) == 0 {
		secrets = [][]byte{nil}
	}
	for _, secret := range secrets {
		if hmac.Equal(entry[16:headerSize], check(secret, key, entry[4:16], payload)) {
			return place(entry[5]), payload, nil
		}
	}
	return 0, nil, errEntry
}

func check(secret []byte, key string, header, payload []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write(header)
	writeSized(h, []byte(key))
	h.Write(payload)
	return h.Sum(nil)
}
