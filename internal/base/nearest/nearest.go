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

// Suggest is the end of an error about a name: the nearest of the names, and the list if it is short; without a near name the list, or
// its beginning.
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

func enumerate(names []string, last string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = fmt.Sprintf("%q", Short(n))
	}
	if n := len(texts); n > 1 {
		if last != "," {
			last = " " + last
		}
		return strings.Join(texts[:n-1], ", ") + last + " " + texts[n-1]
	}
	return texts[0]
}

// nearest returns the names at the least edit distance, letters of either case alike: at most mostSuggestions, the nearest first, then in
// their order, none that differs in more than a third of the letters, rounded up.
func nearest(name string, names []string) []string {
	if len(name) > longName {
		return nil
	}
	want := []rune(strings.ToLower(name))
	most := (len(want) + 2) / 3
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	row := make([]int, 0, len(want)+1)
	for _, n := range names {
		if n == "" || len(n) > longName {
			continue
		}
		if d := distance(want, []rune(strings.ToLower(n)), most, row); d <= most {
			near = append(near, candidate{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range near[:min(len(near), mostSuggestions)] {
		out = append(out, c.name)
	}
	return out
}

// distance returns the letters to insert, delete or replace to turn a into b, or a value above most where there are more. row is memory
// for len(a)+1 numbers.
func distance(a, b []rune, most int, row []int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	row = row[:0]
	for i := range len(a) + 1 {
		row = append(row, i)
	}
	for j, c := range b {
		diagonal := row[0]
		row[0] = j + 1
		least := row[0]
		for i, r := range a {
			replaced := diagonal
			if r != c {
				replaced++
			}
			diagonal = row[i+1]
			row[i+1] = min(replaced, row[i]+1, row[i+1]+1)
			least = min(least, row[i+1])
		}
		if least > most {
			return least
		}
	}
	return row[len(a)]
}

// Short is a name as errors repeat it: not the whole of a long one.
func Short(name string) string {
	if len(name) <= longName {
		return name
	}
	return strings.ToValidUTF8(name[:longName], "") + "…"
}
