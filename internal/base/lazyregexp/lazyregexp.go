// Package lazyregexp compiles regular expressions when they are first used: a command that needs none of them starts the sooner.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that its first use compiles. It may be used from any goroutine.
type Regexp struct{ compile func() *regexp.Regexp }

// New returns the regular expression of a pattern. The first use panics if the pattern is malformed.
func New(pattern string) *Regexp {
	return &Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })}
}

// MatchString reports whether text contains a match.
func (r *Regexp) MatchString(text string) bool { return r.compile().MatchString(text) }

// Match reports whether text contains a match.
func (r *Regexp) Match(text []byte) bool { return r.compile().Match(text) }

// FindStringSubmatch returns the leftmost match and those of its groups, or nil if there is no match.
func (r *Regexp) FindStringSubmatch(text string) []string {
	return r.compile().FindStringSubmatch(text)
}

// ReplaceAllString returns text with matches replaced; $1 in replacement is the first group.
func (r *Regexp) ReplaceAllString(text, replacement string) string {
	return r.compile().ReplaceAllString(text, replacement)
}

// ReplaceAllStringFunc returns text with each match replaced by what replace returns for it.
func (r *Regexp) ReplaceAllStringFunc(text string, replace func(string) string) string {
	return r.compile().ReplaceAllStringFunc(text, replace)
}
