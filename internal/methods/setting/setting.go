// Package setting names the options of single methods. Each family states its own; people set them by --set NAME=VALUE.
package setting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/query"
)

// Setting is an option of one method, or of all.
type Setting struct {
	Name    string         // FAMILY.OPTION
	Default string         // "": the help says it
	Help    string         // a line
	Methods []query.Method // the methods that read it; nil: all

	put func(s *query.Settings, value string) error // parses a value and writes it into s
}

// Int returns a parser of a setting that is a whole number from minimum to maximum. The parser writes the number into the field of the
// settings, or returns an error if the value is none of these.
func Int(field func(*query.Settings) *int, minimum, maximum int) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < minimum || n > maximum {
			return fmt.Errorf("must be between %d and %d, not %s", minimum, maximum, nearest.Shorten(value))
		}
		*field(s) = n
		return nil
	}
}

// Word returns a parser of a setting that is one of several words. The parser writes the word into the field of the settings, or returns an
// error if the value is another word.
func Word[T ~string](field func(*query.Settings) *T, words ...T) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		if !slices.Contains(words, T(value)) {
			return fmt.Errorf("must be one of %q, not %q", words, nearest.Shorten(value))
		}
		*field(s) = T(value)
		return nil
	}
}

// YesOrNo returns a parser of a setting that is yes or no. The parser sets the field of the settings to whether the value is trueWord,
// which is one of these two, or returns an error if the value is another word.
func YesOrNo(field func(*query.Settings) *bool, trueWord string) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		if value != "yes" && value != "no" {
			return fmt.Errorf("must be yes or no, not %q", nearest.Shorten(value))
		}
		*field(s) = value == trueWord
		return nil
	}
}

// New returns a setting. put is the parser of its values: Int, Word or YesOrNo. byDefault is the value that it has if nobody sets it.
func New(name, byDefault, help string, put func(*query.Settings, string) error, methods ...query.Method) Setting {
	return Setting{Name: name, Default: byDefault, Help: help, Methods: methods, put: put}
}

// Apply writes values, each a text NAME=VALUE, into s. known are all settings that there are. It returns an error for an unknown name,
// for a name that is set twice, for a setting that the method of s does not read, and for a value that the setting does not have.
func Apply(known []Setting, s *query.Settings, values []string) error {
	isSet := map[string]bool{}
	for _, v := range values {
		name, value, hasValue := strings.Cut(v, "=")
		if !hasValue {
			return fmt.Errorf("%q: NAME=VALUE is needed, as learned.components=8", nearest.Shorten(v))
		}
		index := slices.IndexFunc(known, func(k Setting) bool { return k.Name == name })
		if index < 0 {
			return fmt.Errorf("no setting %q%s", nearest.Shorten(name), suggest(known, name))
		}
		if isSet[name] {
			return fmt.Errorf("%s is set twice", name)
		}
		isSet[name] = true
		setting := known[index]
		if len(setting.Methods) > 0 && !slices.Contains(setting.Methods, s.Method) {
			return fmt.Errorf("%s is read by method %s, not by %s", name, joinWithOr(setting.Methods), s.Method)
		}
		if err := setting.put(s, value); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	return nil
}

// suggest returns the end of an error message about an unknown name FAMILY.OPTION or OPTION: it suggests the settings of other families
// with the same option, or those with the nearest names.
func suggest(known []Setting, name string) string {
	_, option, _ := strings.Cut(name, ".")
	var sameOption, allNames []string
	for _, setting := range known {
		allNames = append(allNames, setting.Name)
		if _, knownOption, _ := strings.Cut(setting.Name, "."); knownOption == name || knownOption == option {
			sameOption = append(sameOption, setting.Name)
		}
	}
	if len(sameOption) > 0 {
		return ": did you mean " + strings.Join(sameOption, " or ") + "?"
	}
	return nearest.Suggest(name, allNames, allNames)
}

// joinWithOr returns the names of methods as a text: "a or b or c".
func joinWithOr(methods []query.Method) string {
	words := make([]string, len(methods))
	for i, m := range methods {
		words[i] = string(m)
	}
	return strings.Join(words, " or ")
}
