package bus

import (
	"slices"
	"strconv"
	"strings"
)

// Versions of nats-server.
var (
	minVersion     = []int{2, 14, 3} // the first with the timers and conditions of publishes that this program uses
	durableVersion = []int{2, 14, 6} // the first that keeps what it acknowledges: nats-server #8475
)

// NotDurable says what a server with an old version may do.
const NotDurable = "before 2.14.6 a power cut can lose acknowledged messages, even with sync_interval: always"

// ServerVersion parses a version of nats-server, such as v2.14.6. usable is true if a server of this version has what this
// program needs. keeps is true if it does not lose acknowledged messages in a power cut. known is false if text is no
// version of three numbers.
func ServerVersion(text string) (usable, keeps, known bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
	var numbers []int
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false, false, false
		}
		numbers = append(numbers, n)
	}
	return slices.Compare(numbers, minVersion) >= 0, slices.Compare(numbers, durableVersion) >= 0, len(numbers) == 3
}
