package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	"github.com/basetensor/basetensor/internal/queue/watched"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Flags are the flags of commands that sign messages, or want them signed.
type Flags struct {
	MessageKeys string `name:"message-keys" placeholder:"FILE" help:"${message_keys_help}"`
	AnswersKey  string `name:"answers-key" placeholder:"KEY,…|FILE" help:"${answers_key_help}"`
}

// Help are the help texts of Flags.
var Help = map[string]string{
	"message_keys_help": "File of keys by which workers sign their messages, one per line: at least 32 bytes in base64. " +
		"The first signs, all are accepted.",
	"answers_key_help": "Public keys of the aggregators, separated by commas, or a file of them. Answers that none of them signed " +
		"are refused.",
}

// Trust has the keys by which a process verifies and signs messages. A nil field stands for no such keys.
type Trust struct {
	Keys    *Keys    // of workers
	Answers *Answers // of aggregators
}

// Open reads the keys that the flags name. seeds is the file with an aggregator's seeds, "" if the process is none. The
// log may be nil.
func (f Flags) Open(seeds string, log *slog.Logger) (t Trust, err error) {
	if seeds != "" && f.AnswersKey == "" {
		return t, fault.New(fault.BadInput, "seal: --answers-seed belongs to --answers-key, by which others know it")
	}
	if f.MessageKeys != "" {
		if t.Keys, err = Open(f.MessageKeys, log); err != nil {
			return t, err
		}
	}
	if f.AnswersKey != "" {
		t.Answers, err = OpenAnswers(f.AnswersKey, seeds, log)
	}
	return t, err
}

// Keys are the message keys in a file. Its methods may be called from any goroutine.
type Keys struct {
	file *watched.File[*keySet]
}

// keySet is the content of one version of the file.
type keySet struct {
	keys      []*key
	cacheKeys [][]byte
}

// Open reads the keys of a file. The log may be nil.
func Open(file string, log *slog.Logger) (*Keys, error) {
	parse := func(text string) (*keySet, error) { return parseKeys(file, text) }
	w, err := watched.Open("the message keys", file, parse, log)
	if err != nil {
		return nil, fault.New(fault.BadInput, "seal: --message-keys: %w", err)
	}
	return &Keys{file: w}, nil
}

// parseKeys parses keys in base64, one per line. file names their source in errors.
func parseKeys(file, text string) (*keySet, error) {
	set := &keySet{}
	for _, l := range watched.Lines(text) {
		secret, err := base64.StdEncoding.DecodeString(l.Text)
		if err != nil || len(secret) < minKeyBytes {
			return nil, fmt.Errorf("%s, line %d: no base64 of at least %d bytes", file, l.Number, minKeyBytes)
		}
		key := newKey(secret)
		set.keys = append(set.keys, key)
		set.cacheKeys = append(set.cacheKeys, key.cacheKey)
	}
	switch n := len(set.keys); {
	case n == 0:
		return nil, fmt.Errorf("%s: %w", file, errNoKeys)
	case n > maxKeys:
		return nil, fmt.Errorf("%s: %d keys, at most %d", file, n, maxKeys)
	}
	return set, nil
}

var errNoKeys = errors.New("no keys in it")

const (
	minKeyBytes = 32 // least number of bytes of a key
	maxKeys     = 64 // largest number of keys in a file: workers send the names of theirs in one message
)
