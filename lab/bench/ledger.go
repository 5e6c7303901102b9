// A ledger: processor time and memory of many commands, of two versions of btn in turns.

package bench

import (
	"bufio"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
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

// Over reports whether the head takes more than limit times the base, or fails and the base does not.
func (e Entry) Over(limit float64) bool {
	return e.Failed[0] == "" && e.Failed[1] != "" ||
		e.Time() > limit && e.CPU[1]-e.CPU[0] > noticeable || e.Memory() > limit && e.Peak[1]-e.Peak[0] > noticeablePeak
}

// ReadLedger reads a list of commands: arguments of btn, one command per line, with $BTN_DATA for the folder of models. It skips lines that
// begin with #, and those with $BTN_DATA if hasData is false.
func ReadLedger(r io.Reader, hasData bool) ([]string, error) {
	var list []string
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") || !hasData && strings.Contains(line, "$BTN_DATA") {
			continue
		}
		list = append(list, line)
	}
	return list, lines.Err()
}

// Ledger runs every command by both binaries, rounds times in turns, and as often again if the head is over the limit. $BTN_DATA in a
// command stands for the folder data. It calls each with every entry.
func Ledger(
	ctx context.Context, binaries [2]string, commands []string, data string, rounds int, limit float64, each func(Entry),
) error {
	for _, b := range binaries {
		if _, err := os.Stat(b); err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	for _, command := range commands {
		e := Entry{Command: command}
		arguments := strings.Fields(strings.ReplaceAll(command, "$BTN_DATA", data))
		for round := range moreRoundsIfBad * rounds {
			if round >= rounds && !e.Over(limit) {
				break
			}
			for k := range 2 {
				side := (k + round) % 2
				e.take(side, runProcess(ctx, append([]string{binaries[side]}, arguments...), 0))
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

// A LedgerSummary is what a ledger comes to: a row of the history of versions.
type LedgerSummary struct {
	Commands int
	CPU      [2]time.Duration // all commands together, of the base and of the head
	Time     float64          // geometric mean of Entry.Time
	Memory   float64          // geometric mean of Entry.Memory; 0 if the system says no memory of a command
	Worst    Entry            // the entry with the largest Time
}

// Summarise returns the summary of the entries whose two sides both ended with exit code 0. It is the zero value if there is none.
func Summarise(entries []Entry) LedgerSummary {
	var s LedgerSummary
	lnTime, lnMemory := 0.0, 0.0
	for _, e := range entries {
		if e.Failed != [2]string{} {
			continue
		}
		s.Commands++
		for side, cpu := range e.CPU {
			s.CPU[side] += cpu
		}
		lnTime += math.Log(e.Time())
		lnMemory += math.Log(e.Memory())
		if e.Time() > s.Worst.Time() {
			s.Worst = e
		}
	}
	if s.Commands > 0 {
		s.Time, s.Memory = math.Exp(lnTime/float64(s.Commands)), math.Exp(lnMemory/float64(s.Commands))
	}
	return s
}

// HistoryHead is the first row of a history of versions, in CSV. Times are CPU seconds of all commands together, ratios are head to base.
const HistoryHead = "date,base,head,commands,base CPU s,head CPU s,mean ratio of CPU,largest ratio of CPU,its command,mean ratio of memory"

// AppendHistory appends the summary's row to the CSV file at path, which it begins if there is none. base and head name the two versions.
func (s LedgerSummary) AppendHistory(path string, date time.Time, base, head string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	defer file.Close()
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	if end == 0 {
		w.Write(strings.Split(HistoryHead, ","))
	}
	w.Write([]string{
		date.Format(time.DateOnly), base, head, fmt.Sprint(s.Commands),
		fmt.Sprintf("%.1f", s.CPU[0].Seconds()), fmt.Sprintf("%.1f", s.CPU[1].Seconds()),
		fmt.Sprintf("%.3f", s.Time), fmt.Sprintf("%.2f", s.Worst.Time()), s.Worst.Command, fmt.Sprintf("%.3f", s.Memory),
	})
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return file.Close()
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
