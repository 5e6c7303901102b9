// Package sentence takes out of errors what only programmers know: the names of packages.
package sentence

import "regexp"

// field names the field of a request that an error is about.
const field = `[a-z_]+(?:\[\d+\])*(?:\.[a-z_]+(?:\[\d+\])*)*: `

var (
	// message begins the error of a field of a message, which is called model.
	message = regexp.MustCompile(`^model\.(` + field + `)wire: (?:invalid|malformed) message: `)
	// packages begin an error, perhaps behind the name of a field. What was not found is said behind them. Names that are those of file
	// formats and of methods, too, are not among them.
	packages = regexp.MustCompile(`^(` + field + `)??(?:(?:annealing|beliefs|bp|btn|buckets|bus|client|compiler|contract|contractionorder|` +
		`cutset|descent|exchangeable|learned|minibuckets|mixture|modeljson|pipeline|plan|preprocess|region|reparam|search|structured|` +
		`sumproduct|sweeps|trees|wire): (?:not found: )?)+`)
)

// Text returns an error's text without the names of packages that it begins with: "settings.bond: -1 is not from 0 to 1048576" for
// "model.settings.bond: wire: invalid message: -1 is not from 0 to 1048576".
func Text(text string) string {
	return packages.ReplaceAllString(message.ReplaceAllString(text, "$1"), "$1")
}
