// A ledger: processor time and memory of many commands, of two versions of btn in turns.

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Entry is one command of a ledger. Its figures are the least of all rounds, of the base and of the head.
type Entry struct {
	Command string
	CPU     [2]time.Duration // user and system, all threads
	Peak    [2]int64         // bytes of the largest resident set; 0: the system does not say
	Failed  [2]string        // the reason of a run that did not end with exit code 0
}

// Time returns the ratio of processor times, head to base.
func (e Entry) Time() float64 { return float64(e.CPU[1]) / float64(max(e.CPU[0], 1)) }

// Memory returns the ratio of peak memories, head to base.
func (e Entry) Memory() float64 { return float64(e.Peak[1]) / float64(max(e.Peak[0], 1)) }

// Two runs of the same binary differ by up to these.
const (
	noticeable      = 30 * time.Millisecond
	noticeablePeak  = 16 << 20
	moreRoundsIfBad = 2 // times the rounds, for a command that is over the limit
)

// Over reports whether the head takes more than most times the base, or fails where the base does not.
func (e Entry) Over(most float64) bool {
	return e.Failed[0] == "" && e.Failed[1] != "" ||
		e.Time() > most && e.CPU[1]-e.CPU[0] > noticeable || e.Memory() > most && e.Peak[1]-e.Peak[0] > noticeablePeak
}

// ReadLedger reads a list of commands: arguments of btn, one command per line, with $BTN_DATA for the folder of models. Lines that begin
// with # say nothing, and those with $BTN_DATA are left out where data is empty.
func ReadLedger(r io.Reader, data string) ([]string, error) {
	var list []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") || data == "" && strings.Contains(line, "$BTN_DATA") {
			continue
		}
		list = append(list, strings.ReplaceAll(line, "$BTN_DATA", data))
	}
	return list, lines.Err()
}

// Ledger runs every command by both binaries, rounds times in turns, and again where the head is over the limit most. It calls each with
// every entry.
func Ledger(ctx context.Context, binaries [2]string, commands []string, rounds int, most float64, each func(Entry)) error {
	for _, b := range binaries {
		if _, err := os.Stat(b); err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	for _, command := range commands {
		e := Entry{Command: command}
		for round := range moreRoundsIfBad * rounds {
			if round >= rounds && !e.Over(most) {
				break
			}
			for k := range 2 {
				side := (k + round) % 2
				e.take(side, runProcess(ctx, append([]string{binaries[side]}, strings.Fields(command)...), 0))
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		each(e)
	}
	return nil
}

// take adds a run of one side.
func (e *Entry) take(side int, p process) {
	if p.Ending != endedAlone || p.Reason != "exit status 0" {
		e.Failed[side] = p.Reason
	}
	if e.CPU[side] == 0 || p.CPU < e.CPU[side] {
		e.CPU[side] = p.CPU
	}
	if e.Peak[side] == 0 || p.Peak < e.Peak[side] {
		e.Peak[side] = p.Peak
	}
}

// String returns a row of a table in Markdown: CPU seconds and MiB of both, their ratios, and failures.
func (e Entry) String() string {
	failed := ""
	for side, name := range []string{"base", "head"} {
		if e.Failed[side] != "" {
			failed += fmt.Sprintf(" %s: %s", name, e.Failed[side])
		}
	}
	return fmt.Sprintf("| `%s` | %.3f | %.3f | %.2f | %d | %d | %.2f |%s |", escapeCell(e.Command),
		e.CPU[0].Seconds(), e.CPU[1].Seconds(), e.Time(), e.Peak[0]>>20, e.Peak[1]>>20, e.Memory(), failed)
}

// LedgerHead is the head of the table of entries.
const LedgerHead = "| btn | base CPU s | head CPU s | ratio | base MiB | head MiB | ratio | |\n|---|--:|--:|--:|--:|--:|--:|---|"
