package gateway

// Progress of jobs: the messages of their stages, for the jobs of the last minutes.

import (
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Progress is the message of a stage about a job.
type Progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"` // 0: not known
	Text  string `json:"text,omitempty"`
	Time  int64  `json:"time"` // Unix milliseconds
}

// Bounds of the remembered progress.
const (
	mostTold     = 4096 // jobs
	mostProgress = 64   // messages of one job
	mostText     = 2048 // bytes of one message's text
)

// listensFor is for how long the board listens after somebody asked for a job.
const listensFor = 10 * time.Minute

// board remembers the progress of the jobs last reported on. It listens while somebody asks for
// jobs: every job reports, and thousands of reports a second should not be received in vain.
type progressBoard struct {
	nc      *nats.Conn
	subject string // of progress, with wildcards

	mu   sync.Mutex
	sub  *nats.Subscription    // nil: it does not listen
	idle *time.Timer           // ends listening
	jobs map[string][]Progress // by job, what its stages reported
	old  map[string][]Progress // of jobs that were not heard of since jobs was begun; dropped when jobs is full again
}

// listen receives progress from now on, until it has not been called for listensFor.
func (b *progressBoard) listen() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub != nil {
		b.idle.Reset(listensFor)
		return nil
	}
	sub, err := b.nc.Subscribe(b.subject, func(m *nats.Msg) {
		var p wire.Progress
		if wire.Decode(m.Data, &p) == nil {
			b.add(&p)
		}
	})
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	b.sub, b.idle = sub, time.AfterFunc(listensFor, b.stop)
	return nil
}

// stop ends listening.
func (b *progressBoard) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub != nil {
		b.sub.Unsubscribe()
		b.idle.Stop()
		b.sub = nil
	}
}

// add remembers a report. It keeps two generations of jobs: if the new one is full, it becomes the old one, and the
// jobs of the old one are forgotten.
func (b *progressBoard) add(p *wire.Progress) {
	report := Progress{Stage: p.Stage, Done: p.Done, Total: p.Total, Text: p.Text[:min(len(p.Text), mostText)], Time: p.Time}
	b.mu.Lock()
	defer b.mu.Unlock()

	// The job's reports so far, moved to the new generation, b.jobs, if they are in the old one.
	reports, ok := b.jobs[p.Job]
	if !ok {
		reports = b.old[p.Job]
		delete(b.old, p.Job)
		if b.jobs == nil || len(b.jobs) >= mostTold/2 {
			b.old, b.jobs = b.jobs, map[string][]Progress{}
		}
	}

	// of a stage's reports without text, one after the other, the first and the last are enough: the new one replaces the last
	if n := len(reports); n > 1 {
		areOfOneStage := reports[n-2].Stage == report.Stage && reports[n-1].Stage == report.Stage
		if areOfOneStage && report.Text == "" && reports[n-1].Text == "" {
			reports = reports[:n-1]
		}
	}
	if len(reports) < mostProgress {
		reports = append(reports, report)
	}
	b.jobs[p.Job] = reports
}

// reportsOf returns the reports on a job.
func (b *progressBoard) reportsOf(job string) []Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	reports, ok := b.jobs[job]
	if !ok {
		reports = b.old[job]
	}
	return append([]Progress{}, reports...)
}
