package hop

import (
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Work describes the processing of a message that is counted as its stage's proper work.
type Work struct {
	Waited          time.Duration // from its storage in the stream to its delivery; meaningful if IsFirstDelivery
	IsFirstDelivery bool          // this was its first delivery
	Duration        time.Duration // from its delivery until its output was stored
	Tenant          string        // the tenant whose work it was
	Bytes           int           // size of the message
	Flops           float64       // expected flops of finished work
	Charged         float64       // seconds of this process, see Meter
	Trace           string        // id of the trace; "" if nobody records one
}

// measurement follows one message through the work on it. The methods of a nil one do nothing.
type measurement struct {
	loop          *Loop
	message       *Message
	chargeAtStart float64       // result of Meter.beginWork
	waited        time.Duration // from the message's storage to its delivery
}

// startMeasuring begins to measure the work on a message. It returns nil if the intake's messages are not measured.
func (l *Loop) startMeasuring(d *Message, intake *Intake) *measurement {
	if !intake.MeasuresCost {
		return nil
	}
	d.costHeader = l.Meter.costHeader(usableCosts(d.Raw.Header.Get(message.HeaderWork)), l.Stage)
	return &measurement{loop: l, message: d, chargeAtStart: l.Meter.beginWork(), waited: max(0, time.Since(d.Raw.Stored))}
}

// usableCosts returns a message's statement of costs if it can be parsed, and "" otherwise. One that is too long
// cannot.
func usableCosts(value string) string {
	if len(message.ParseWork(value)) == 0 {
		return ""
	}
	return value
}

// abandon ends the measurement of a message whose handler was given up.
func (m *measurement) abandon() {
	if m != nil {
		m.loop.Meter.endWork(m.chargeAtStart, 0, false)
		m.message.endSpan(Dead, fault.New(fault.Internal, "pipeline: the handler was given up"))
	}
}

// end reports the finished work, and ends its charge. worked is false if nothing was done: then the message has no
// flops, and does not count in the mean cost of messages.
func (m *measurement) end(began time.Time, worked bool) {
	if m == nil {
		return
	}
	flops := m.message.Flops
	if !worked {
		flops = 0
	}
	m.loop.Metrics.Worked(m.loop.Stage, Work{
		Waited:          m.waited,
		IsFirstDelivery: m.message.Attempt == 1,
		Duration:        time.Since(began),
		Tenant:          m.message.Tenant,
		Bytes:           len(m.message.Raw.Data),
		Flops:           flops,
		Charged:         m.loop.Meter.endWork(m.chargeAtStart, flops, worked),
		Trace:           m.message.traceID(),
	})
}
