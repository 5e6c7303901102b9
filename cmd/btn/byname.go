package main

// Texts of the stages, which know positions alone, with names.

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// position is a variable as stages write it, x_3 or variable 3, perhaps with its value, x_3 = 1. What has names has them in quotes.
var position = regexp.MustCompile(`(^|[^"\w])(?:x_|variable )(\d+)\b(?: = (\d+)\b)?`)

// byName replaces the positions of variables and values in a text by their names, where the model has some.
func byName(l *factorgraph.Labels, text string) string {
	if l == nil || !l.Named() {
		return text
	}
	return position.ReplaceAllStringFunc(text, func(found string) string {
		parts := position.FindStringSubmatch(found)
		v, err := strconv.Atoi(parts[2])
		if err != nil || v >= len(l.Domains()) {
			return found
		}
		name := fmt.Sprintf("%s%q", parts[1], l.OfVariable(v))
		x, err := strconv.Atoi(parts[3])
		if parts[3] == "" || err != nil || x >= l.Domains()[v] {
			return name
		}
		return fmt.Sprintf("%s = %q", name, l.OfValue(v, x))
	})
}
