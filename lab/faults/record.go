package faults

// Rows of results, which add up over runs.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/lab/bench"
	"github.com/basetensor/basetensor/lab/chart"
)

// Row is one batch.
type Row struct {
	Class   string    `csv:"class"`
	Servers string    `csv:"servers"` // single or cluster
	Seed    uint64    `csv:"seed"`
	Began   time.Time `csv:"began"`
	Took    float64   `csv:"took_s,%.1f"`
	Jobs    int       `csv:"jobs"`
	Faults  int       `csv:"faults"`
	Lost    int       `csv:"lost"`
	Doubled int       `csv:"doubled"`
	Wrong   int       `csv:"wrong"`
	Other   int       `csv:"other"`       // streams not drained, processes that have grown
	Held    int       `csv:"held"`        // jobs that a fault held up
	Again   int       `csv:"again"`       // jobs submitted again because their model was deleted
	Load    float64   `csv:"load,%.1f"`   // of the machine at the end, over a minute; 0: not known
	Usual   times     `csv:"usual_ms"`    // latencies of jobs that no fault held up: p50, p99
	Recover times     `csv:"recovery_ms"` // of faults that held jobs up: the last one's answer

	Problems []string // not written
}

// times are written in whole milliseconds, with spaces.
type times []time.Duration

// MarshalText writes the times.
func (t times) MarshalText() ([]byte, error) {
	words := make([]string, len(t))
	for i, d := range t {
		words[i] = inMS(d)
	}
	return []byte(strings.Join(words, " ")), nil
}

// UnmarshalText reads the times.
func (t *times) UnmarshalText(text []byte) error {
	for word := range strings.FieldsSeq(string(text)) {
		ms, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return err
		}
		*t = append(*t, time.Duration(ms*float64(time.Millisecond)))
	}
	return nil
}

// note fills a row.
func (r *Row) note(b *batch, v *verdict, took time.Duration) {
	r.Took, r.Jobs, r.Lost, r.Doubled, r.Wrong, r.Problems = took.Seconds(), v.jobs, v.lost, v.doubled, v.wrong, v.problems
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
	r.Usual = times{quantile(v.usual, 0.5), quantile(v.usual, 0.99)}
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

// Append adds a row to a file, which gets a head if it is new.
func Append(path string, r Row) error {
	var text bytes.Buffer
	if err := chart.WriteCSV(&text, []Row{r}, false); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if at, err := file.Seek(0, io.SeekEnd); err != nil || at > 0 {
		text.ReadBytes('\n') // the head
	}
	_, err = text.WriteTo(file)
	return errors.Join(err, file.Close())
}

// Read reads a file of Append.
func Read(path string) ([]Row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := chart.ReadCSV[Row](file, chart.Columns[Row]()...)
	if err == nil && len(rows) == 0 {
		err = errors.New("no rows")
	}
	if err != nil {
		return nil, fmt.Errorf("faults: %s: %w", path, err)
	}
	return rows, nil
}
