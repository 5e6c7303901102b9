package message

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// HeaderCost is the header of a task with the flops that it is expected to take, in three digits. The payload has them
// too, but the header is read without decoding it.
const HeaderCost = "Btn-Cost"

// HeaderKind is the header of a task with the numeric kind that is to compute it, where its job has
// several. The payload has it too.
const HeaderKind = "Btn-Kind"

// HeaderWork is the header of networks, tasks and partials with what messages have cost the workers that the job has
// passed; see FormatWork. A worker adds its own cost now and then.
const HeaderWork = "Btn-Work"

// SmallFlops is the largest number of flops of a task that is contracted beside others: about a millisecond of work.
// Its tables have no more entries than it has operations, so all slots together hold tens of megabytes.
const SmallFlops = 1e6

// Cost returns the flops in a task's headers. The result is false if there are none, or no number.
func Cost(h map[string][]string) (float64, bool) {
	v := h[HeaderCost]
	if len(v) == 0 {
		return 0, false
	}
	cost, err := strconv.ParseFloat(v[0], 64)
	return cost, err == nil && cost >= 0 && !math.IsInf(cost, 0)
}

// FormatCost returns the value of HeaderCost for a number of flops.
func FormatCost(flops float64) string { return strconv.FormatFloat(flops, 'g', 3, 64) }

// Work is what messages of one stage have cost one worker process lately. 0 means unknown.
type Work struct {
	Seconds float64 // seconds of the process per message, except tasks above SmallFlops
	Flops   float64 // flops per second of the process, in tasks above SmallFlops
}

// FormatWork returns the value of HeaderWork that adds the work of a stage to an earlier value. An entry is the name of
// the stage and the two numbers, with spaces; entries are separated by semicolons.
func FormatWork(earlier, stage string, work Work) string {
	entry := fmt.Sprintf("%s %.3g %.3g", stage, work.Seconds, work.Flops)
	if earlier == "" {
		return entry
	}
	return earlier + "; " + entry
}

// maxWork is the length up to which a value of HeaderWork is read and passed on.
const maxWork = 256

// ParseWork returns the work by stage in a value of HeaderWork. It leaves out entries that it cannot read.
func ParseWork(value string) map[string]Work {
	if value == "" || len(value) > maxWork {
		return nil
	}
	work := map[string]Work{}
	for entry := range strings.SplitSeq(value, ";") {
		words := strings.Fields(entry)
		if len(words) != 3 {
			continue
		}
		seconds, secondsErr := strconv.ParseFloat(words[1], 64)
		flops, flopsErr := strconv.ParseFloat(words[2], 64)
		if secondsErr == nil && flopsErr == nil && isMeasurable(seconds) && isMeasurable(flops) {
			work[words[0]] = Work{Seconds: seconds, Flops: flops}
		}
	}
	return work
}

// isMeasurable reports whether x can be the result of a measurement.
func isMeasurable(x float64) bool { return x >= 0 && x <= 1e18 }
