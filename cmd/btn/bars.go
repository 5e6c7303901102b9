package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/pkg/query"
)

// Posteriors by name, as bars.

const (
	longestBar = 30
	mostShown  = 16 // values of a variable that are all shown; of more only the most probable
	fewShown   = 8
	mostName   = 48 // letters of a name
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

// bar is a probability as a bar of eighths of a letter; only the bar of 0 is empty.
func bar(p float64) string {
	eighths := int(math.Round(p * longestBar * 8))
	if p > 0 {
		eighths = max(eighths, 1)
	}
	eighths = min(max(eighths, 0), longestBar*8)
	text := strings.Repeat("█", eighths/8)
	if remainder := eighths % 8; remainder > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[remainder-1])
	}
	return text
}

// writeBars writes the marginals by name, a line per value. Of an observed variable, and of one that an exact answer leaves a single
// value, there is that value alone.
func writeBars(b *strings.Builder, posteriors []query.Posterior, observed map[int]bool, exact bool) {
	nameWidth, stateWidth := 0, 0
	for _, m := range posteriors {
		nameWidth = max(nameWidth, utf8.RuneCountInString(shown(m.Name)))
		for x := range m.P {
			stateWidth = max(stateWidth, utf8.RuneCountInString(shown(query.Label(m.States, x))))
		}
	}
	for _, m := range posteriors {
		if x := soleValue(m.P); x >= 0 && (exact || observed[m.Variable]) {
			word := "certain"
			if observed[m.Variable] {
				word = "observed"
			}
			fmt.Fprintf(b, "%-*s  %-*s  %s\n", nameWidth, shown(m.Name), stateWidth, shown(query.Label(m.States, x)), word)
			continue
		}
		values := make([]int, len(m.P))
		for x := range values {
			values[x] = x
		}
		if len(values) > mostShown {
			slices.SortStableFunc(values, func(x, y int) int { return cmp.Compare(m.P[y], m.P[x]) })
			values = values[:fewShown]
		}
		for k, x := range values {
			name := ""
			if k == 0 {
				name = shown(m.Name)
			}
			text := fmt.Sprintf("%-*s  %-*s  %.6f %s", nameWidth, name, stateWidth, shown(query.Label(m.States, x)), m.P[x], bar(m.P[x]))
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		if hidden := len(m.P) - len(values); hidden > 0 {
			fmt.Fprintf(b, "%*s  and %d less probable values\n", nameWidth, "", hidden)
		}
	}
}

// soleValue returns the only value with a probability above 0; -1: there are several, or none.
func soleValue(p []float64) int {
	sole := -1
	for x, probability := range p {
		if probability <= 0 {
			continue
		}
		if sole >= 0 {
			return -1
		}
		sole = x
	}
	return sole
}

// An integer follows from its logarithm where that has the digits for it: ln Z has a relative error of some 2^-50, so Z ≤ 10^10 has an
// absolute one well below wholeSlack, and a weighted count is as near to an integer by chance only.
const (
	mostWhole  = 1e10
	wholeSlack = 1e-12
)

// wholeCount returns the integer that an exact Z is, and whether it is one.
func wholeCount(lnZ float64) (int64, bool) {
	z := math.Exp(lnZ)
	n := math.Round(z)
	return int64(n), z <= mostWhole && n >= 1 && math.Abs(z-n) <= wholeSlack*n*math.Max(1, lnZ)
}
