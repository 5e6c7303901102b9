package message

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// HeaderCost is the header of a task with the flops that it is expected to take, in three digits.
// The payload has them too; the header is read without decoding it.
const HeaderCost = "Btn-Cost"

// HeaderKind is the header of a task with the numeric kind that is to compute it, where its job has
// several. The payload has it too.
const HeaderKind = "Btn-Kind"

// HeaderWork is the header of networks, tasks and partials in which the workers that a job passes
// say, now and then, what messages have cost them lately; see FormatWork.
const HeaderWork = "Btn-Work"

// SmallFlops is the most flops a task may cost to be contracted beside others: about a millisecond
// of work. Its tables have no more entries than it has operations, so all slots together hold tens
// of megabytes.
const SmallFlops = 1e6

// Cost returns the flops that a task's headers say; false: they do not say.
func Cost(h map[string][]string) (float64, bool) {
	v := h[HeaderCost]
	if len(v) == 0 {
		return 0, false
	}
	cost, err := strconv.ParseFloat(v[0], 64)
	return cost, err == nil && cost >= 0 && !math.IsInf(cost, 0)
}

// FormatCost returns the value of HeaderCost.
func FormatCost(flops float64) string { return strconv.FormatFloat(flops, 'g', 3, 64) }

// Work is what messages of one stage have cost one worker process lately. A zero is not known.
type Work struct {
	Seconds float64 // of the process per message, tasks above SmallFlops left out
	Flops   float64 // per second of the process, in tasks above SmallFlops
}

// FormatWork returns the value of HeaderWork: what it said before, and w of a stage. An entry is
// the name of the stage and the two numbers, with spaces; entries are separated by semicolons.
func FormatWork(before, stage string, w Work) string {
	entry := fmt.Sprintf("%s %.3g %.3g", stage, w.Seconds, w.Flops)
	if before == "" {
		return entry
	}
	return before + "; " + entry
}

// mostWork is the length of a value of HeaderWork up to which it is read and passed on.
const mostWork = 256

// ParseWork returns what a value of HeaderWork says by stage. What it cannot read it leaves out.
func ParseWork(value string) map[string]Work {
	if value == "" || len(value) > mostWork {
		return nil
	}
	all := map[string]Work{}
	for entry := range strings.SplitSeq(value, ";") {
		words := strings.Fields(entry)
		if len(words) != 3 {
			continue
		}
		seconds, errS := strconv.ParseFloat(words[1], 64)
		flops, errF := strconv.ParseFloat(words[2], 64)
		if errS == nil && errF == nil && usable(seconds) && usable(flops) {
			all[words[0]] = Work{Seconds: seconds, Flops: flops}
		}
	}
	return all
}

// usable reports whether a number can have been measured.
func usable(x float64) bool { return x >= 0 && x <= 1e18 }
