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

// printable returns a name as a terminal may have it: one line of bounded length.
func printable(name string) string {
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

// drawBar returns a probability as a bar with a resolution of an eighth of a letter. Only the bar of 0 is empty.
func drawBar(p float64) string {
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

// writeBars writes marginals by name, a line with a bar for each value. A variable with one possible value has one line
// without a bar, if it is observed or the answer is exact.
func writeBars(b *strings.Builder, posteriors []query.Posterior, isObserved map[int]bool, isExact bool) {
	nameWidth, stateWidth := 0, 0
	for _, m := range posteriors {
		nameWidth = max(nameWidth, utf8.RuneCountInString(printable(m.Name)))
		for x := range m.P {
			stateWidth = max(stateWidth, utf8.RuneCountInString(printable(query.Label(m.States, x))))
		}
	}
	for _, m := range posteriors {
		// a variable with one value
		if x := soleValue(m.P); x >= 0 && (isExact || isObserved[m.Variable]) {
			word := "certain"
			if isObserved[m.Variable] {
				word = "observed"
			}
			fmt.Fprintf(b, "%-*s  %-*s  %s\n", nameWidth, printable(m.Name), stateWidth, printable(query.Label(m.States, x)), word)
			continue
		}

		// a bar for each value, or for the most probable ones
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
				name = printable(m.Name)
			}
			text := fmt.Sprintf("%-*s  %-*s  %.6f %s", nameWidth, name, stateWidth, printable(query.Label(m.States, x)), m.P[x], drawBar(m.P[x]))
			b.WriteString(strings.TrimRight(text, " ") + "\n")
		}
		if hidden := len(m.P) - len(values); hidden > 0 {
			fmt.Fprintf(b, "%*s  and %d less probable values\n", nameWidth, "", hidden)
		}
	}
}

// soleValue returns the only value with a probability above 0; −1 if there are several, or none.
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

// wholeCount returns Z as an integer, and whether it is one. lnZ has to be exact.
func wholeCount(lnZ float64) (int64, bool) {
	z := math.Exp(lnZ)
	n := math.Round(z)
	isWhole := z <= mostWhole && n >= 1 && math.Abs(z-n) <= wholeSlack*n*math.Max(1, lnZ)
	return int64(n), isWhole
}
