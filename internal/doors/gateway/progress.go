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
type board struct {
	nc      *nats.Conn
	subject string

	mu   sync.Mutex
	sub  *nats.Subscription
	idle *time.Timer
	jobs map[string][]Progress
	old  map[string][]Progress // the previous generation
}

// listen receives progress from now on.
func (b *board) listen() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub != nil {
		b.idle.Reset(listensFor)
		return nil
	}
	sub, err := b.nc.Subscribe(b.subject, func(m *nats.Msg) {
		var p wire.Progress
		if wire.Decode(m.Data, &p) == nil {
			b.note(&p)
		}
	})
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	b.sub, b.idle = sub, time.AfterFunc(listensFor, b.rest)
	return nil
}

// rest ends listening.
func (b *board) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub != nil {
		b.sub.Unsubscribe()
		b.idle.Stop()
		b.sub = nil
	}
}

// note remembers a report. Where too many jobs are remembered, half of them are forgotten.
func (b *board) note(p *wire.Progress) {
	one := Progress{Stage: p.Stage, Done: p.Done, Total: p.Total, Text: p.Text[:min(len(p.Text), mostText)], Time: p.Time}
	b.mu.Lock()
	defer b.mu.Unlock()
	said, ok := b.jobs[p.Job]
	if !ok {
		said = b.old[p.Job]
		delete(b.old, p.Job)
		if b.jobs == nil || len(b.jobs) >= mostTold/2 {
			b.old, b.jobs = b.jobs, map[string][]Progress{}
		}
	}
	if n := len(said); n > 1 && said[n-1].Stage == one.Stage && one.Text == "" && said[n-1].Text == "" &&
		said[n-2].Stage == one.Stage {
		said = said[:n-1] // the first and the last of a stage are enough
	}
	if len(said) < mostProgress {
		said = append(said, one)
	}
	b.jobs[p.Job] = said
}

// of returns the reports on a job.
func (b *board) of(job string) []Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	said, ok := b.jobs[job]
	if !ok {
		said = b.old[job]
	}
	return append([]Progress{}, said...)
}
