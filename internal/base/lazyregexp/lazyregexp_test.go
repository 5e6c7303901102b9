package lazyregexp

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSameAsRegexp: every method answers as that of the standard library's expression, the first use included.
func TestSameAsRegexp(t *testing.T) {
	const pattern, text = `(\w)=(\d+)`, "a=1, b=22"
	want := regexp.MustCompile(pattern)
	if got := New(pattern).MatchString(text); got != want.MatchString(text) {
		t.Errorf("MatchString is %v", got)
	}
	if got := New(pattern).Match([]byte("none")); got {
		t.Error("a match in a text without one")
	}
	if got := New(pattern).FindStringSubmatch(text); !slices.Equal(got, want.FindStringSubmatch(text)) {
		t.Errorf("FindStringSubmatch is %q", got)
	}
	if got := New(pattern).ReplaceAllString(text, "$2"); got != "1, 22" {
		t.Errorf("ReplaceAllString is %q", got)
	}
	if got := New(pattern).ReplaceAllStringFunc(text, strings.ToUpper); got != "A=1, B=22" {
		t.Errorf("ReplaceAllStringFunc is %q", got)
	}
}

// TestMalformedPatternPanicsAtItsFirstUse, and not before.
func TestMalformedPatternPanicsAtItsFirstUse(t *testing.T) {
	r := New("(")
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	r.MatchString("")
}
