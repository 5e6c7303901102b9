package access

// Changes of keys while the service runs: the first of two keys in a file is used, both are accepted.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nkeys"
)

// Names of keys that are no user's.
const (
	Messages = "messages" // keys in MessageKeys
	Answers  = "answers"  // seeds in AnswersSeed
)

// Step is a step in the change of a key. Call WriteKeys after it.
type Step string

// The steps, in their order.
const (
	Rotate Step = "rotate" // adds a second key, which is accepted
	Use    Step = "use"    // the second key is used, the first is accepted
	Retire Step = "retire" // drops the second key, which is accepted no more
)

// ChangeKeys takes a step with the keys of a user, of messages or of answers in a folder.
func ChangeKeys(dir, name string, step Step) error {
	file, newKey, err := keyFile(dir, name)
	if err != nil {
		return err
	}
	keys, err := keysOf(file)
	if err != nil {
		return err
	}
	switch {
	case step == Rotate && len(keys) == 1:
		another, err := newKey()
		if err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		keys = append(keys, another)
	case step == Use && len(keys) == 2:
		keys[0], keys[1] = keys[1], keys[0]
	case step == Retire && len(keys) == 2:
		keys = keys[:1]
	default:
		return fault.New(fault.BadInput,
			"access: --%s %s: there are %d keys; --rotate makes the second, --use puts it first, --retire drops the other",
			step, name, len(keys))
	}
	w := writer{dir: filepath.Dir(file)}
	w.replace(filepath.Base(file), []byte(strings.Join(keys, "\n")+"\n"), 0o600)
	return w.err
}

// keyFile returns the file with the keys of a user, of messages or of answers, and the function that makes another key
// for it.
func keyFile(dir, name string) (file string, newKey func() (string, error), err error) {
	switch {
	case name == Messages:
		return filepath.Join(dir, MessageKeys), seal.NewKey, nil
	case name == Answers:
		return filepath.Join(dir, AnswersSeed), seal.NewAnswersSeed, nil
	case isRole(name):
		return filepath.Join(dir, name+seedSuffix), newUserSeed, nil
	case form.IsOwner(name):
		return filepath.Join(dir, tenantsDir, name+seedSuffix), newUserSeed, nil
	}
	return "", nil, fault.New(fault.BadInput, "access: %.80q is no user, nor %s or %s", name, Messages, Answers)
}

// keysOf returns the keys in a file, one per line. A file that everybody may read is an error.
func keysOf(file string) ([]string, error) {
	if err := connect.CheckPrivate(file); err != nil {
		return nil, fault.New(fault.BadInput, "access: %w", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fault.New(fault.BadInput, "access: %w", err)
	}
	var keys []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			keys = append(keys, line)
		}
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.BadInput, "access: %s has no keys", file)
	}
	return keys, nil
}

// newUserSeed returns the seed of a new user's key.
func newUserSeed() (string, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	seed, err := pair.Seed()
	if err != nil {
		return "", fmt.Errorf("the seed of a user: %w", err)
	}
	return string(seed), nil
}
