package faults

// Rows of results, which add up over runs.

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/lab/bench"
)

// Row is one batch.
type Row struct {
	Class   string
	Servers string // single or cluster
	Seed    uint64
	Began   time.Time
	Took    time.Duration
	Jobs    int
	Faults  int
	Lost    int
	Doubled int
	Wrong   int
	Other   int             // streams not drained, processes that have grown
	Held    int             // jobs that a fault held up
	Again   int             // jobs submitted again because their model was deleted
	Recover []time.Duration // of faults that held jobs up: the last one's answer
	Load    float64         // of the machine at the end, over a minute; 0: not known
	Usual   []time.Duration // latencies of jobs that no fault held up: p50, p99

	Problems []string // not written
}

// note fills a row.
func (r *Row) note(b *batch, v *verdict, took time.Duration) {
	r.Took, r.Jobs, r.Lost, r.Doubled, r.Wrong, r.Problems = took, v.jobs, v.lost, v.doubled, v.wrong, v.problems
	r.Other = len(v.problems) - v.lost - v.doubled - v.wrong
	for _, s := range b.strikes {
		if s.void {
			continue
		}
		r.Faults++
		r.Held += s.held
		if took, held := v.recoveries[s]; held {
			r.Recover = append(r.Recover, took)
			if took > longRecovery {
				b.log("%s, seed %d: %s: recovered after %v: %s", r.Class, r.Seed, s.what, took, v.last[s])
			}
		}
	}
	for _, j := range b.l.list {
		r.Again += j.again
	}
	r.Load, _ = strconv.ParseFloat(bench.ThisMachine().Load, 64)
	slices.Sort(r.Recover)
	slices.Sort(v.usual)
	r.Usual = []time.Duration{quantile(v.usual, 0.5), quantile(v.usual, 0.99)}
}

// longRecovery is the recovery time that is reported at once.
const longRecovery = 4 * time.Second

// Bad reports whether something was wrong.
func (r Row) Bad() bool { return r.Lost+r.Doubled+r.Wrong+r.Other > 0 }

// quantile of sorted values: the least that so many do not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

var head = []string{
	"class", "servers", "seed", "began", "took_s", "jobs", "faults", "lost", "doubled", "wrong", "other", "held", "again", "load",
	"usual_ms", "recovery_ms",
}

// Append adds a row to a file, which gets a head if it is new.
func Append(path string, r Row) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	w := csv.NewWriter(file)
	if at, err := file.Seek(0, io.SeekEnd); err == nil && at == 0 {
		w.Write(head)
	}
	w.Write([]string{
		r.Class, r.Servers, strconv.FormatUint(r.Seed, 10), r.Began.UTC().Format(time.RFC3339),
		strconv.FormatFloat(r.Took.Seconds(), 'f', 1, 64), strconv.Itoa(r.Jobs), strconv.Itoa(r.Faults), strconv.Itoa(r.Lost),
		strconv.Itoa(r.Doubled), strconv.Itoa(r.Wrong), strconv.Itoa(r.Other), strconv.Itoa(r.Held), strconv.Itoa(r.Again),
		strconv.FormatFloat(r.Load, 'f', 1, 64),
		texts(r.Usual), texts(r.Recover),
	})
	w.Flush()
	return w.Error()
}

// texts are times in milliseconds, with spaces.
func texts(list []time.Duration) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 0, 64)
	}
	return strings.Join(words, " ")
}

// Read reads a file of Append.
func Read(path string) ([]Row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("faults: %s: %w", path, errors.Join(err, errors.New("no rows")))
	}
	if !slices.Equal(lines[0], head) {
		return nil, fmt.Errorf("faults: %s has the columns %v, not %v", path, lines[0], head)
	}
	var rows []Row
	for i, cells := range lines[1:] {
		r := Row{Class: cells[0], Servers: cells[1]}
		var bad error
		number := func(at int) int {
			n, err := strconv.Atoi(cells[at])
			bad = errors.Join(bad, err)
			return n
		}
		times := func(at int) (list []time.Duration) {
			for word := range strings.FieldsSeq(cells[at]) {
				ms, err := strconv.ParseFloat(word, 64)
				bad = errors.Join(bad, err)
				list = append(list, time.Duration(ms*float64(time.Millisecond)))
			}
			return list
		}
		r.Seed = uint64(number(2))
		r.Jobs, r.Faults, r.Lost, r.Doubled, r.Wrong = number(5), number(6), number(7), number(8), number(9)
		r.Other, r.Held, r.Again = number(10), number(11), number(12)
		r.Usual, r.Recover = times(14), times(15)
		var err error
		if r.Load, err = strconv.ParseFloat(cells[13], 64); err != nil {
			bad = errors.Join(bad, err)
		}
		if r.Began, err = time.Parse(time.RFC3339, cells[3]); err != nil {
			bad = errors.Join(bad, err)
		}
		if s, err := strconv.ParseFloat(cells[4], 64); err == nil {
			r.Took = time.Duration(s * float64(time.Second))
		}
		if bad != nil {
			return nil, fmt.Errorf("faults: %s, row %d: %w", path, i+1, bad)
		}
		rows = append(rows, r)
	}
	return rows, nil
}
