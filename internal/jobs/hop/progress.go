package hop

import (
	"time"

	"github.com/basetensor/basetensor/pkg/wire"
)

// Progress publishes to subscribers that a stage has done so many of the total steps of a job.
func (l *Jobs) Progress(job, stage string, done, total int) {
	l.ProgressText(job, stage, done, total, "")
}

// ProgressText is Progress with a text.
func (l *Jobs) ProgressText(job, stage string, done, total int, text string) {
	p := &wire.Progress{
		Job:   job,
		Stage: stage,
		Done:  int64(done),
		Total: int64(total),
		Text:  text,
		Time:  time.Now().UnixMilli(),
	}
	if b, err := wire.Encode(p); err == nil {
		l.Bus.Conn.NC.Publish(wire.ProgressSubject(job), b)
	}
}
