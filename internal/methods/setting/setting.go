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

// Setting is an option of one family.
type Setting struct {
	Name    string         // FAMILY.OPTION
	Default string         // "": the help says it
	Help    string         // a line
	Methods []query.Method // the methods that read it; nil: all

	put func(s *query.Settings, value string) error
}

// Int is a whole number from least to most.
func Int(field func(*query.Settings) *int, least, most int) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("must be between %d and %d, not %s", least, most, nearest.Short(value))
		}
		*field(s) = n
		return nil
	}
}

// Word is one of several words. The field gets the word itself.
func Word[T ~string](field func(*query.Settings) *T, words ...T) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		if !slices.Contains(words, T(value)) {
			return fmt.Errorf("must be one of %q, not %q", words, nearest.Short(value))
		}
		*field(s) = T(value)
		return nil
	}
}

// Yes is yes or no. The field is true at the value on.
func Yes(field func(*query.Settings) *bool, on string) func(*query.Settings, string) error {
	return func(s *query.Settings, value string) error {
		if value != "yes" && value != "no" {
			return fmt.Errorf("must be yes or no, not %q", nearest.Short(value))
		}
		*field(s) = value == on
		return nil
	}
}

// New makes a setting.
func New(name, byDefault, help string, put func(*query.Settings, string) error, methods ...query.Method) Setting {
	return Setting{Name: name, Default: byDefault, Help: help, Methods: methods, put: put}
}

// Apply puts values, each NAME=VALUE, into s. It refuses unknown names, repeated names, and settings that the method of s does not read.
func Apply(known []Setting, s *query.Settings, values []string) error {
	given := map[string]bool{}
	for _, v := range values {
		name, value, found := strings.Cut(v, "=")
		if !found {
			return fmt.Errorf("%q: NAME=VALUE is needed, as learned.components=8", nearest.Short(v))
		}
		at := slices.IndexFunc(known, func(k Setting) bool { return k.Name == name })
		if at < 0 {
			return fmt.Errorf("no setting %q%s", nearest.Short(name), suggest(known, name))
		}
		if given[name] {
			return fmt.Errorf("%s is set twice", name)
		}
		given[name] = true
		k := known[at]
		if len(k.Methods) > 0 && !slices.Contains(k.Methods, s.Method) {
			return fmt.Errorf("%s is read by method %s, not by %s", name, list(k.Methods), s.Method)
		}
		if err := k.put(s, value); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
	}
	return nil
}

// suggest names the settings with the same option in another family, or the nearest names.
func suggest(known []Setting, name string) string {
	_, option, _ := strings.Cut(name, ".")
	var same, all []string
	for _, k := range known {
		all = append(all, k.Name)
		if _, of, _ := strings.Cut(k.Name, "."); of == name || of == option {
			same = append(same, k.Name)
		}
	}
	if len(same) > 0 {
		return ": did you mean " + strings.Join(same, " or ") + "?"
	}
	return nearest.Suggest(name, all, all)
}

// list writes methods in a sentence.
func list(methods []query.Method) string {
	words := make([]string, len(methods))
	for i, m := range methods {
		words[i] = string(m)
	}
	return strings.Join(words, " or ")
}
