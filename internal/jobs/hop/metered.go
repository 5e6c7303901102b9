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

// measurement follows one message through the work on it.
type measurement struct {
	loop          *Loop
	message       *Message
	chargeAtStart float64
	waited        time.Duration
}

// startMeasuring begins to measure the work on a message; nil if that is not measured.
func (l *Loop) startMeasuring(d *Message, intake *Intake) *measurement {
	if !intake.MeasuresCost {
		return nil
	}
	d.costHeader = l.Meter.costHeader(usableCosts(d.Raw.Header.Get(message.HeaderWork)), l.Stage)
	return &measurement{loop: l, message: d, chargeAtStart: l.Meter.beginWork(), waited: max(0, time.Since(d.Raw.Stored))}
}

// usableCosts returns a message's statement of costs if it is passed on; one that is too long is not.
func usableCosts(value string) string {
	if len(message.ParseWork(value)) == 0 {
		return ""
	}
	return value
}

// abandon ends the measuring of a message whose handler was given up.
func (m *measurement) abandon() {
	if m != nil {
		m.loop.Meter.endWork(m.chargeAtStart, 0, false)
		m.message.endSpan(Dead, fault.New(fault.Internal, "pipeline: the handler was given up"))
	}
}

// end reports the finished work, or that nothing was done.
func (m *measurement) end(began time.Time, worked bool) {
	if m == nil {
		return
	}
	flops := m.message.Flops
	if !worked {
		flops = 0
	}
	m.loop.Metrics.Worked(m.loop.Stage, Work{
		Waited:  m.waited,
		First:   m.message.Attempt == 1,
		Took:    time.Since(began),
		Tenant:  m.message.Tenant,
		Bytes:   len(m.message.Raw.Data),
		Flops:   flops,
		Charged: m.loop.Meter.endWork(m.chargeAtStart, flops, worked),
		Trace:   m.message.traceID(),
	})
}
