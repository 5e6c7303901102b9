package gateway

// How far jobs are: what their stages said, for those of the last minutes.

import (
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Progress is what a stage said of a job.
type Progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"` // 0: not known
	Text  string `json:"text,omitempty"`
	Time  int64  `json:"time"` // Unix milliseconds
}

// Bounds of what is remembered.
const (
	mostTold     = 4096 // jobs
	mostProgress = 64   // messages of one job
	mostText     = 2048 // bytes of one message's text
)

// listensFor is for how long the board listens after somebody asked for a job.
const listensFor = 10 * time.Minute

// board remembers what stages say of jobs, of those last that said something. It listens while somebody asks for jobs: every job says
// something, and where there are thousands a second nobody should hear it in vain.
type board struct {
	nc      *nats.Conn
	subject string

	mu   sync.Mutex
	sub  *nats.Subscription
	idle *time.Timer
	jobs map[string][]Progress
	old  map[string][]Progress // those of before
}

// listen hears what stages say from now on.
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

// note remembers what was said. Where too many jobs are remembered, half of them are forgotten.
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

// of returns what was said of a job.
func (b *board) of(job string) []Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	said, ok := b.jobs[job]
	if !ok {
		said = b.old[job]
	}
	return append([]Progress{}, said...)
}
