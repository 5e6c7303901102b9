package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// leastCommon is the least number of first letters that a flag has in common with a misspelt one to be suggested.
const leastCommon = 4

// withHint adds to the error of a parser what was perhaps meant. For an unknown flag that is the flag of the command
// with the most first letters in common, since kong suggests only flags that miss by two letters. For an argument too
// many it is the way to write it.
func withHint(err error) error {
	if extra, isExtra := strings.CutPrefix(err.Error(), "unexpected argument "); isExtra {
		return withArgumentHint(err, extra)
	}
	misspelt, isUnknown := strings.CutPrefix(err.Error(), "unknown flag --")
	var parsing *kong.ParseError
	hasSuggestion := strings.Contains(misspelt, " ") // by kong
	if !isUnknown || hasSuggestion || !errors.As(err, &parsing) || parsing.Context == nil {
		return err
	}
	node := parsing.Context.Selected()
	if node == nil {
		return fmt.Errorf("%w: flags of a command follow its name", err)
	}

	// the flag with the most first letters in common
	best, length := "", 0
	for _, flags := range node.AllFlags(false) {
		for _, flag := range flags {
			n := commonPrefixLength(flag.Name, misspelt)
			if n > length && (n >= leastCommon || n == len(flag.Name)) { // enough letters, or all of a short name
				best, length = flag.Name, n
			}
		}
	}
	if best == "" {
		return err
	}
	return fmt.Errorf("%w, did you mean \"--%s\"?", err, best)
}

// withArgumentHint adds to the error for an argument too many where it belongs, if the command takes evidence: X=y
// behind --evid, or a name in the list of a flag before it.
func withArgumentHint(err error, extra string) error {
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

// commonPrefixLength returns the number of first letters that two words have in common.
func commonPrefixLength(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// commandOf returns the name of the command at which the parser stopped; of the program if that was before a command.
func commandOf(parser *kong.Kong, err error) string {
	var parsing *kong.ParseError
	if errors.As(err, &parsing) && parsing.Context != nil {
		if node := parsing.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return parser.Model.Name
}
