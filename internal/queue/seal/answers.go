package seal

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/queue/watched"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nkeys"
)

// Signature is the header of an answer with its signature, in base64 of URLs without padding.
const Signature = "Btn-Signature"

// Answers verifies the signatures of answers by public keys, and signs answers if it has a seed. Public keys cannot
// sign, so tenants may have them. Its methods may be called from any goroutine.
type Answers struct {
	public *watched.File[[]nkeys.KeyPair]
	seeds  *watched.File[[]nkeys.KeyPair] // the first one signs; nil: it cannot sign
}

// OpenAnswers returns the keys that verify and sign answers. public is a list of public keys with commas, or the name
// of a file of them. seeds is the name of the file of this aggregator's seeds, the first of which signs; "" means that
// it cannot sign. The log may be nil.
func OpenAnswers(public, seeds string, log *slog.Logger) (*Answers, error) {
	a := &Answers{}

	// The public keys are in public itself if its first item is a key, and otherwise in a file, which is watched.
	var err error
	if listed := strings.Split(public, ","); nkeys.IsValidPublicAccountKey(strings.TrimSpace(listed[0])) {
		var keys []nkeys.KeyPair
		keys, err = parsePublic("--answers-key", strings.Join(listed, "\n"))
		a.public = watched.Fixed(keys)
	} else {
		parse := func(text string) ([]nkeys.KeyPair, error) { return parsePublic(public, text) }
		a.public, err = watched.Open("the public keys of answers", public, parse, log)
	}
	if err != nil {
		return nil, fault.New(fault.BadInput, "seal: --answers-key: %w", err)
	}
	if seeds == "" {
		return a, nil
	}

	parse := func(text string) ([]nkeys.KeyPair, error) { return parseSeeds(seeds, text) }
	if a.seeds, err = watched.Open("the seeds that sign answers", seeds, parse, log); err != nil {
		return nil, fault.New(fault.BadInput, "seal: --answers-seed: %w", err)
	}
	signer := a.seeds.Value()[0]
	isPublic := slices.ContainsFunc(a.public.Value(), func(k nkeys.KeyPair) bool { return sameKey(k, signer) })
	if !isPublic {
		return nil, fault.New(fault.BadInput, "seal: the public key of --answers-seed %s is not one of --answers-key", seeds)
	}
	return a, nil
}

// parsePublic parses public keys, one per line. source names their origin in errors.
func parsePublic(source, text string) ([]nkeys.KeyPair, error) {
	var keys []nkeys.KeyPair
	for _, l := range watched.Lines(text) {
		key, err := nkeys.FromPublicKey(l.Text)
		if err != nil || !nkeys.IsValidPublicAccountKey(l.Text) {
			return nil, fmt.Errorf("%s, line %d: no public key of an account (A…)", source, l.Number)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w", source, errNoKeys)
	}
	return keys, nil
}

// parseSeeds parses seeds of accounts, one per line. file names their source in errors.
func parseSeeds(file, text string) ([]nkeys.KeyPair, error) {
	var keys []nkeys.KeyPair
	for _, l := range watched.Lines(text) {
		key, err := nkeys.FromSeed([]byte(l.Text))
		if err == nil {
			var public string
			if public, err = key.PublicKey(); err == nil && !nkeys.IsValidPublicAccountKey(public) {
				err = errors.New("of another kind")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: no seed of an account (SA…)", file, l.Number)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: %w", file, errNoKeys)
	}
	return keys, nil
}

// sameKey reports whether a and b have the same public key.
func sameKey(a, b nkeys.KeyPair) bool {
	x, errX := a.PublicKey()
	y, errY := b.PublicKey()
	return x == y && errX == nil && errY == nil
}

// NewAnswersSeed returns a seed that signs answers.
func NewAnswersSeed() (string, error) {
	pair, err := nkeys.CreateAccount()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	return string(seed), err
}

// signedBytes returns the bytes of an answer that are signed: the subject on which it is stored, the digest of its
// request, and its content (the digest of its bytes, and its status). Before these are the lengths of subject and
// digest, so that different answers have different bytes, and a line with the kind of message, so that no other
// signature by the key is valid here.
func signedBytes(subject, request, content string) []byte {
	b := []byte("basetensor: answer, 1\n")
	b = binary.LittleEndian.AppendUint32(b, uint32(len(subject)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(request)))
	b = append(b, subject...)
	b = append(b, request...)
	return append(b, content...)
}

// Sign returns the signature of an answer, by its subject, the digest of its request, and its content (the digest of
// its bytes, and its status). Without a seed it returns "".
func (a *Answers) Sign(subject, request, content string) (string, error) {
	if a == nil || a.seeds == nil {
		return "", nil
	}
	signature, err := a.seeds.Value()[0].Sign(signedBytes(subject, request, content))
	return base64.RawURLEncoding.EncodeToString(signature), err
}

// Names returns the public keys by which answers are believed, and the public key of the seed that signs, "" if there
// is none. A nil *Answers has none.
func (a *Answers) Names() (believed []string, signer string, err error) {
	if a == nil {
		return nil, "", nil
	}
	for _, k := range a.public.Value() {
		public, err := k.PublicKey()
		if err != nil {
			return nil, "", err
		}
		believed = append(believed, public)
	}
	if a.seeds != nil {
		signer, err = a.seeds.Value()[0].PublicKey()
	}
	return believed, signer, err
}

// Verify reports whether one of the keys made the signature of an answer.
func (a *Answers) Verify(signature, subject, request, content string) bool {
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil {
		return false
	}
	signed := signedBytes(subject, request, content)
	return a.public.HoldsNowOrAfterReload(func(keys []nkeys.KeyPair) bool {
		return slices.ContainsFunc(keys, func(k nkeys.KeyPair) bool { return k.Verify(signed, decoded) == nil })
	})
}
