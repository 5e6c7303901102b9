// Package nearest finds the names that a misspelt one may stand for.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	mostSuggestions = 3
	mostListed      = 8  // names of a list that are all repeated
	longName        = 80 // bytes of a name that are repeated
)

// Suggest returns the end of an error about an unknown name. It has those of names that are nearest to it, and the whole list if that is
// short. If no name is near, it has the list, or the beginning of a long one. It is empty if there is nothing to say.
func Suggest(name string, names, list []string) string {
	near := nearest(name, names)
	switch {
	case len(near) > 0 && len(list) > 0 && len(list) <= mostListed:
		return ": did you mean " + enumerate(near, "or") + "? There are " + enumerate(list, "and")
	case len(near) > 0:
		return ": did you mean " + enumerate(near, "or") + "?"
	case len(list) > mostListed:
		return fmt.Sprintf(": there are %s, …, %d in all", enumerate(list[:mostListed], ","), len(list))
	case len(list) > 0:
		return ": there are " + enumerate(list, "and")
	}
	return ""
}

// enumerate returns the names in quotes, separated by commas; before the last one stands the word lastSeparator, or a comma if it is ",".
func enumerate(names []string, lastSeparator string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = fmt.Sprintf("%q", Shorten(n))
	}
	if n := len(texts); n > 1 {
		if lastSeparator != "," {
			lastSeparator = " " + lastSeparator
		}
		return strings.Join(texts[:n-1], ", ") + lastSeparator + " " + texts[n-1]
	}
	return texts[0]
}

// nearest returns those of names that differ from name in at most a third of its letters (rounded up), by edit distance without regard to
// case: at most mostSuggestions, the nearest first, equally near ones in their order.
func nearest(name string, names []string) []string {
	if len(name) > longName {
		return nil
	}
	letters := []rune(strings.ToLower(name))
	limit := (len(letters) + 2) / 3 // a third, rounded up
	type candidate struct {
		name     string
		distance int
	}
	var candidates []candidate
	row := make([]int, 0, len(letters)+1) // memory of editDistance
	for _, n := range names {
		if n == "" || len(n) > longName {
			continue
		}
		if d := editDistance(letters, []rune(strings.ToLower(n)), limit, row); d <= limit {
			candidates = append(candidates, candidate{n, d})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var suggestions []string
	for _, c := range candidates[:min(len(candidates), mostSuggestions)] {
		suggestions = append(suggestions, c.name)
	}
	return suggestions
}

// editDistance returns how many letters have to be inserted, deleted or replaced to turn a into b (Levenshtein). If that is more than
// limit, it returns some value above limit. row is memory for len(a)+1 numbers.
func editDistance(a, b []rune, limit int, row []int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	row = row[:0] // row[i] becomes the distance from a[:i] to the part of b before the current letter
	for i := range len(a) + 1 {
		row = append(row, i)
	}
	for j, letterB := range b {
		diagonal := row[0] // of the row before: the distance from a[:i] to b[:j]
		row[0] = j + 1
		least := row[0]
		for i, letterA := range a {
			replaced := diagonal
			if letterA != letterB {
				replaced++
			}
			diagonal = row[i+1]
			row[i+1] = min(replaced, row[i]+1, row[i+1]+1)
			least = min(least, row[i+1])
		}
		if least > limit { // later rows are no less
			return least
		}
	}
	return row[len(a)]
}

// Shorten returns a name for an error message: a name of more than longName bytes is cut, and ends in an ellipsis.
func Shorten(name string) string {
	if len(name) <= longName {
		return name
	}
	return strings.ToValidUTF8(name[:longName], "") + "…"
}
