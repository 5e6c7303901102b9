// Package nightly says what tests do under make nightly (BTN_NIGHTLY=1) beyond make test: more rounds of what is drawn at random, and
// all of the reference models.
package nightly

import "os"

// On reports whether this is the long check.
func On() bool { return os.Getenv("BTN_NIGHTLY") != "" }

// Rounds returns few for make test, many for make nightly.
func Rounds(few, many int) int {
	if On() {
		return many
	}
	return few
}
