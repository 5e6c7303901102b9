package pull

import (
	"testing"
	"time"
)

// TestAnIdlePullerSleeps until a request counts as lost; where there is something to look at it wakes in a moment, for heartbeats in time.
func TestAnIdlePullerSleeps(t *testing.T) {
	at := time.Unix(1000, 0)
	const beat, moment = 500 * time.Millisecond, hoardFor / 2
	for name, c := range map[string]struct {
		change func(p *puller)
		want   time.Duration
	}{
		"idle":                {func(*puller) {}, 3*time.Second + 1},
		"one slot is taken":   {func(p *puller) { p.inWork = 1 }, 3*time.Second + 1},
		"all slots are taken": {func(p *puller) { p.inWork = 2 }, moment},
		"lanes are looked at": {func(p *puller) { p.asksInTurn = true }, moment},
		"a lane is not asked": {func(p *puller) { p.lanes[1].requested = 0 }, moment},
		"a message waits":     {func(p *puller) { p.lanes[0].waiting = make([]held, 1) }, moment},
		"one waits patiently": {func(p *puller) { p.intake.HoldsMessages, p.lanes[0].waiting = true, make([]held, 1) },
			beat - 100*time.Millisecond},
		"a request is overdue": {func(p *puller) { p.lanes[1].lostAt = at.Add(-time.Second) }, moment},
	} {
		p := &puller{turns: turns{intake: Intake{Heartbeat: beat}, slots: 2}}
		for k := range 2 {
			p.lanes = append(p.lanes, &lane{requested: 1, lostAt: at.Add(time.Duration(3+k) * time.Second)})
		}
		c.change(p)
		if got := p.sleepTime(at, at.Add(-100*time.Millisecond)); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
