package scale

import (
	"math"
	"time"
)

// Autoscaler decides how many replicas there should be. It is given times and never asks for them.
type Autoscaler struct {
	Policy
	replicas int
	active   time.Time // when there was work last
	polled   time.Time
	synced   time.Time
	said     []recommendation
	up, down []change
}

type recommendation struct {
	at       time.Time
	replicas int
}

// change is a number of replicas that were added, or taken away.
type change struct {
	at time.Time
	n  int
}

// Step returns the number of replicas from now on, given the metric, which known says is there.
func (a *Autoscaler) Step(now time.Time, metric float64, known bool) int {
	if now.Sub(a.polled) >= a.Poll {
		a.polled = now
		a.keda(now, metric, known)
	}
	// with no replicas the horizontal autoscaler is off
	if now.Sub(a.synced) >= Sync && a.replicas > 0 {
		a.synced = now
		if known {
			a.horizontal(now, metric)
		}
	}
	return a.replicas
}

// keda starts the first replica, and ends what is there when there has been no work for the cooldown.
func (a *Autoscaler) keda(now time.Time, metric float64, known bool) {
	working := known && metric > a.Activation
	if working || !known { // what cannot be asked is no reason to end anything
		a.active = now
	}
	switch {
	case a.replicas < a.Least:
		a.replicas = a.Least
	case a.replicas == 0 && working:
		a.replicas = 1
		a.said, a.up, a.down = nil, nil, nil
		a.synced = now // an autoscaler that begins looks after a period
	case a.replicas > 0 && a.Least == 0 && now.Sub(a.active) >= a.Cooldown:
		a.replicas = 0
	}
}

// horizontal is one look of the horizontal pod autoscaler at a metric of type AverageValue.
func (a *Autoscaler) horizontal(now time.Time, metric float64) {
	current := a.replicas
	want := current
	if ratio := metric / (a.Target * float64(current)); math.Abs(ratio-1) > tolerance {
		want = int(math.Ceil(metric / a.Target))
	}
	want = min(max(want, a.Least, 1), a.Most)

	// the least of what was said within the window counts upwards, the most downwards
	least, most := want, want
	kept := a.said[:0]
	for _, r := range a.said {
		age := now.Sub(r.at)
		if age < a.Up.Window {
			least = min(least, r.replicas)
		}
		if age < a.Down.Window {
			most = max(most, r.replicas)
		}
		if age < max(a.Up.Window, a.Down.Window) {
			kept = append(kept, r)
		}
	}
	a.said = append(kept, recommendation{now, want})
	next := current
	if next < least {
		next = least
	}
	if next > most {
		next = most
	}

	switch {
	case next > current:
		next = min(next, max(a.allowed(now, a.Up, +1), current))
		a.up = append(a.up, change{now, next - current})
	case next < current:
		next = max(next, min(a.allowed(now, a.Down, -1), current))
		a.down = append(a.down, change{now, current - next})
	}
	a.replicas = next
}

// allowed is the farthest number of replicas in a direction that the limits allow.
func (a *Autoscaler) allowed(now time.Time, r Rules, direction int) int {
	farthest := a.replicas
	for _, l := range r.Limits {
		began := float64(a.replicas - changed(a.up, now, l.Period) + changed(a.down, now, l.Period))
		by := float64(l.Value)
		if l.Percent {
			by *= began / 100
		}
		if to := began + float64(direction)*by; direction > 0 {
			farthest = max(farthest, int(math.Ceil(to)))
		} else {
			farthest = min(farthest, max(0, int(to)))
		}
	}
	return farthest
}

// changed sums the changes within a period.
func changed(list []change, now time.Time, period time.Duration) (n int) {
	for _, c := range list {
		if now.Sub(c.at) < period {
			n += c.n
		}
	}
	return n
}
