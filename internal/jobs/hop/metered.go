package hop

import (
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Work describes a message that was a stage's proper work.
type Work struct {
	Waited  time.Duration // from when the stream stored it to its delivery; of a first delivery
	First   bool          // this was its first delivery
	Took    time.Duration // from its delivery until its output was stored
	Tenant  string        // whose work it was
	Bytes   int           // of the message
	Flops   float64       // as they were expected, of work that came to an end
	Charged float64       // seconds of this process, see Meter
	Trace   string        // id of the trace; "" where nobody records one
}

// metered follows one message through the work on it.
type metered struct {
	l      *Loop
	d      *Message
	begun  float64
	waited time.Duration
}

// metered begins to measure the work on a message; nil if that is not measured.
func (l *Loop) metered(d *Message, in *Intake) *metered {
	if !in.Metered {
		return nil
	}
	d.stamp = l.Meter.stamp(passable(d.Raw.Header.Get(message.HeaderWork)), l.Stage)
	return &metered{l: l, d: d, begun: l.Meter.begin(), waited: max(0, time.Since(d.Raw.Stored))}
}

// passable returns a message's statement of costs if it is passed on; one that is too long is not.
func passable(value string) string {
	if len(message.ParseWork(value)) == 0 {
		return ""
	}
	return value
}

// abandon ends the measuring of a message whose handler was given up.
func (m *metered) abandon() {
	if m != nil {
		m.l.Meter.end(m.begun, 0, false)
		m.d.left(Dead, fault.New(fault.Internal, "pipeline: the handler was given up"))
	}
}

// end reports the finished work, or that nothing was done.
func (m *metered) end(began time.Time, worked bool) {
	if m == nil {
		return
	}
	flops := m.d.Flops
	if !worked {
		flops = 0
	}
	m.l.Metrics.Worked(m.l.Stage, Work{
		Waited:  m.waited,
		First:   m.d.Attempt == 1,
		Took:    time.Since(began),
		Tenant:  m.d.Tenant,
		Bytes:   len(m.d.Raw.Data),
		Flops:   flops,
		Charged: m.l.Meter.end(m.begun, flops, worked),
		Trace:   m.d.traceID(),
	})
}
