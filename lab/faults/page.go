package faults

// The page of results, from all rows there are.

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/lab/bench"
)

// String is a row as a line.
func (r Row) String() string {
	verdict := "good"
	if r.Bad() {
		verdict = fmt.Sprintf("%d lost, %d doubled, %d wrong, %d other", r.Lost, r.Doubled, r.Wrong, r.Other)
	}
	return fmt.Sprintf("%-14s %-7s seed %-4d %4d faults, %5d jobs in %3.0f s; held up %4d; "+
		"recovery p50 %s p99 %s max %s ms; usual p50 %s ms: %s",
		r.Class, r.Servers, r.Seed, r.Faults, r.Jobs, r.Took, r.Held, inMS(quantile(r.Recover, 0.5)), inMS(quantile(r.Recover, 0.99)),
		inMS(quantile(r.Recover, 1)), inMS(r.Usual[0]), verdict)
}

func inMS(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }

// add adds another row's counts and recoveries.
func (r *Row) add(other Row) {
	r.Jobs += other.Jobs
	r.Faults += other.Faults
	r.Lost += other.Lost
	r.Doubled += other.Doubled
	r.Wrong += other.Wrong
	r.Other += other.Other
	r.Recover = append(r.Recover, other.Recover...)
}

// WritePage writes the page beside a file of rows: FILE.md for FILE.csv.
func WritePage(path, versions string) error {
	rows, err := Read(path)
	if err != nil {
		return err
	}
	page := strings.TrimSuffix(path, filepath.Ext(path)) + ".md"
	if versions == "" {
		versions = versionsOf(page)
	}
	file, err := os.Create(page)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriter(file)

	sums, total := map[[2]string]*Row{}, Row{}
	for _, r := range rows {
		key := [2]string{r.Class, r.Servers}
		if sums[key] == nil {
			sums[key] = &Row{}
		}
		sums[key].add(r)
		total.add(r)
	}

	fmt.Fprintf(w, "# Benchmark: faults\n\n")
	fmt.Fprintf(w, "**%d faults over %d jobs: %d lost, %d doubled, %d wrong, %d batches with anything else.**\n\n", total.Faults, total.Jobs,
		total.Lost, total.Doubled, total.Wrong, total.Other)
	loads := make([]float64, len(rows))
	for i, r := range rows {
		loads[i] = r.Load
	}
	slices.Sort(loads)
	fmt.Fprintf(w, "- machine: %s; load %.0f to %.0f, median %.0f: other work ran\n",
		machine(),
		loads[0], loads[len(loads)-1], loads[len(loads)/2])
	fmt.Fprintf(w, "- measured: %s to %s\n", rows[0].Began.UTC().Format(time.DateTime), rows[len(rows)-1].Began.UTC().Format(time.DateTime))
	fmt.Fprintf(w, "%s%s\n", versionsMark, versions)
	fmt.Fprintf(w, "- command: `make faults` (flags in FAULTFLAGS; `btnlab faults --help`); runs add up in [%s](%s)\n\n",
		filepath.Base(path), filepath.Base(path))
	w.WriteString(explanation)

	for _, servers := range []string{"single", "cluster"} {
		var list []*class
		for _, c := range classes {
			if sums[[2]string{c.name, servers}] != nil {
				list = append(list, c)
			}
		}
		if len(list) == 0 {
			continue
		}
		title := map[string]string{"single": "One nats-server", "cluster": "Three nats-servers, streams with three replicas"}[servers]
		fmt.Fprintf(w, "\n## %s\n\n", title)
		w.WriteString("| class | faults | recovery p50, p99, ms |\n|---|--:|--:|\n")
		for _, c := range list {
			s := sums[[2]string{c.name, servers}]
			slices.Sort(s.Recover)
			recovery := "–"
			if len(s.Recover) > 0 {
				recovery = inMS(quantile(s.Recover, 0.5)) + ", " + inMS(quantile(s.Recover, 0.99))
				if c.goal > 0 && quantile(s.Recover, 0.99) > c.goal {
					recovery += " (goal " + inMS(c.goal) + ")"
				}
			}
			name := c.name
			if s.Bad() {
				name += fmt.Sprintf(" (%d lost, %d doubled, %d wrong, %d other)", s.Lost, s.Doubled, s.Wrong, s.Other)
			}
			fmt.Fprintf(w, "| %s: %s | %d | %s |\n", name, c.about, s.Faults, recovery)
		}
	}

	return w.Flush()
}

const explanation = `Two processes of each worker, behind proxies to NATS and Redis, start again 0.1 s after their end. Messages are signed,
except in class versions. Four tenants send 20 jobs a second: exact, learned, sliced, above max_payload (64 KiB here),
of registered models, with deadlines that hold and that do not, cancelled under way, wrong. Faults are drawn from a seed
and overlap; one worker of each role is always left alone.

Every answer is compared bit by bit with a computation in the loading process, except after a passed deadline.
*Doubled*: a second answer, or an announced one that is not the stored one. *Other*: a work queue that is not empty 30 s
after the last answer, or a surviving process with more goroutines, open files or memory. *Recovery*: from the fault (or
the later delivery; of servers, from their return) to the last answer of the jobs with a message in the struck worker; a
job that is hit again counts for the later fault. The goal of p99 is 5 s for faults of workers and 10 s for faults of
servers; the table names it where it is missed.
`

// versionsMark begins the page's line of the servers.
const versionsMark = "- servers: "

// versionsOf returns the versions that an earlier page states.
func versionsOf(page string) string {
	text, _ := os.ReadFile(page)
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, versionsMark); ok {
			return strings.TrimSpace(v)
		}
	}
	return "not known"
}

// machine says where this was.
func machine() string {
	m := bench.ThisMachine()
	m.Load = ""
	return m.String()
}
