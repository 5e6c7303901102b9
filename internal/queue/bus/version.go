package bus

import (
	"slices"
	"strconv"
	"strings"
)

// Versions of nats-server.
var (
	oldest  = []int{2, 14, 3} // for timers and the conditions of publishes
	durable = []int{2, 14, 6} // nats-server #8475
)

// NotDurable says what a server with an old version may do.
const NotDurable = "before 2.14.6 a power cut can lose acknowledged messages, even with sync_interval: always"

// ServerVersion reports whether a version of nats-server has what this program needs, and keeps what it acknowledges. known is false for
// a text that is no version.
func ServerVersion(said string) (usable, keeps, known bool) {
	said, _, _ = strings.Cut(strings.TrimPrefix(said, "v"), "-")
	var v []int
	for part := range strings.SplitSeq(said, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false, false, false
		}
		v = append(v, n)
	}
	return slices.Compare(v, oldest) >= 0, slices.Compare(v, durable) >= 0, len(v) == 3
}
