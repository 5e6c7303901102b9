package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// leastCommon is the least number of first letters that a flag has in common with a misspelt one to be suggested.
const leastCommon = 4

// withHint adds what was perhaps meant. That is the flag of the command that begins like an unknown one: kong suggests flags that miss by
// two letters at most. Of an argument too many that is evidence, or belongs to the list of a flag before it, it is the way to write that.
func withHint(err error) error {
	if extra, isExtra := strings.CutPrefix(err.Error(), "unexpected argument "); isExtra {
		return withPlace(err, extra)
	}
	wrong, unknown := strings.CutPrefix(err.Error(), "unknown flag --")
	var parsing *kong.ParseError
	if !unknown || strings.Contains(wrong, " ") || !errors.As(err, &parsing) || parsing.Context == nil {
		return err
	}
	node := parsing.Context.Selected()
	if node == nil {
		return fmt.Errorf("%w: flags of a command follow its name", err)
	}
	best, length := "", 0
	for _, flags := range node.AllFlags(false) {
		for _, flag := range flags {
			n := common(flag.Name, wrong)
			if n > length && (n >= leastCommon || n == len(flag.Name)) {
				best, length = flag.Name, n
			}
		}
	}
	if best == "" {
		return err
	}
	return fmt.Errorf("%w, did you mean \"--%s\"?", err, best)
}

// withPlace adds to the error for an argument too many where it belongs, if the command takes evidence.
func withPlace(err error, extra string) error {
	var parsing *kong.ParseError
	if !errors.As(err, &parsing) || parsing.Context == nil || parsing.Context.Selected() == nil {
		return err
	}
	for _, flags := range parsing.Context.Selected().AllFlags(false) {
		for _, flag := range flags {
			switch {
			case flag.Name != "evid":
			case strings.Contains(extra, "="):
				return fmt.Errorf("%w, did you mean --evid %s?", err, extra)
			default:
				return fmt.Errorf("%w: names in a list have commas between them, without blanks", err)
			}
		}
	}
	return err
}

// common is the number of first letters that two words have in common.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commandOf names the command at which the parser stopped.
func commandOf(parser *kong.Kong, err error) string {
	var parsing *kong.ParseError
	if errors.As(err, &parsing) && parsing.Context != nil {
		if node := parsing.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return parser.Model.Name
}
