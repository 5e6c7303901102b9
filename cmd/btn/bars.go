package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Posteriors by name, as bars.

const (
	longestBar = 30
	mostShown  = 16 // values of a variable that are all shown; of more only the most probable
	fewShown   = 8
	mostName   = 28 // letters of a name
)

// shown is a name as a terminal may have it: one line, of bounded length.
func shown(name string) string {
	name = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return '�'
		}
		return r
	}, name)
	if letters := []rune(name); len(letters) > mostName {
		return string(letters[:mostName-1]) + "…"
	}
	return name
}

// padded fills a text up to a width in letters.
func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// bar is a probability as a bar of eighths of a letter; only the bar of 0 is empty.
func bar(p float64) string {
	eighths := int(math.Round(p * longestBar * 8))
	if p > 0 {
		eighths = max(eighths, 1)
	}
	eighths = min(max(eighths, 0), longestBar*8)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}

// writeBars writes the marginals by name, a line per value.
func writeBars(b *strings.Builder, r *btn.Result, n query.Names) {
	variable, state := 0, 0
	for i, row := range r.Marginals {
		v := r.MarginalOf(i)
		variable = max(variable, utf8.RuneCountInString(shown(n.Variable(v))))
		for x := range row {
			state = max(state, utf8.RuneCountInString(shown(n.Value(v, x))))
		}
	}
	for i, row := range r.Marginals {
		v := r.MarginalOf(i)
		values := make([]int, len(row))
		for x := range values {
			values[x] = x
		}
		if len(values) > mostShown {
			slices.SortStableFunc(values, func(x, y int) int { return cmp.Compare(row[y], row[x]) })
			values = values[:fewShown]
		}
		for k, x := range values {
			name := ""
			if k == 0 {
				name = shown(n.Variable(v))
			}
			text := fmt.Sprintf("%s  %s  %.6f %s", padded(name, variable), padded(shown(n.Value(v, x)), state), row[x], bar(row[x]))
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		if rest := len(row) - len(values); rest > 0 {
			fmt.Fprintf(b, "%s  and %d less probable values\n", padded("", variable), rest)
		}
	}
}
