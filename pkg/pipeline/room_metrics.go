package pipeline

// How much room there is, for people: in metrics, and in a line of /readyz.

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/prometheus/client_golang/prometheus"
)

// rate is how fast bytes come into a stream, smoothed over about half a minute.
type rate struct {
	sequence uint64
	at       time.Time
	perSec   float64 // messages
}

const rateOver = 30 * time.Second

// see takes the stream's last sequence at a time.
func (r *rate) see(sequence uint64, at time.Time) float64 {
	if past := at.Sub(r.at); !r.at.IsZero() && past > 0 && sequence >= r.sequence {
		weight := 1 - math.Exp(-past.Seconds()/rateOver.Seconds())
		r.perSec += weight * (float64(sequence-r.sequence)/past.Seconds() - r.perSec)
	}
	r.sequence, r.at = sequence, at
	return r.perSec
}

// room is what one stream has.
type room struct {
	used, limit float64 // bytes
	held        float64 // of used: what cannot go yet
	seconds     float64 // until clients are refused, if nothing more could go and jobs came as they did; +Inf: none comes
}

// measure says how much room each stream has. What is older than the watermark counts as room.
func (k *keeper) measure(spaces map[string]space, w watermark) map[string]room {
	if k.rates == nil {
		k.rates = map[string]*rate{}
	}
	rooms := map[string]room{}
	for name, s := range spaces {
		if s.Config.MaxBytes <= 0 {
			continue
		}
		if k.rates[name] == nil {
			k.rates[name] = &rate{}
		}
		perSec := k.rates[name].see(s.State.LastSeq, s.TimeStamp)
		if name == bus.StreamBlob { // without what is stored for no job
			perSec = max(0, perSec-2/bus.ProbeEvery.Seconds())
		}
		one := room{used: float64(s.State.Bytes), limit: float64(s.Config.MaxBytes), seconds: math.Inf(1)}
		one.held = one.used * heldShare(s, w)
		if perSec > 0 && s.State.Msgs > 0 {
			size := one.used / float64(s.State.Msgs)
			one.seconds = max(0, roomRefused*one.limit-one.held) / (perSec * size)
		}
		rooms[name] = one
	}
	return rooms
}

// roomRefused is the part of a stream at which clients are refused.
const roomRefused = 0.75

// heldShare is which part of a stream is younger than what may go, if it came evenly.
func heldShare(s space, w watermark) float64 {
	span := w.asked.Sub(s.State.FirstTime)
	if s.State.Msgs == 0 || span <= 0 {
		return 0
	}
	return min(1, max(0, float64(w.asked.Sub(w.frees(s.Config.Name)))/float64(span)))
}

// roomMetrics shows the rooms that a keeper measured last.
type roomMetrics struct {
	mu    sync.Mutex
	rooms map[string]room
}

var (
	roomSeconds = prometheus.NewDesc("basetensor_room_seconds",
		"Seconds until clients are refused if nothing more could go and jobs came at the present rate.", []string{"stream"}, nil)
	roomBytes = prometheus.NewDesc("basetensor_room_bytes",
		"Bytes of a stream: used, held (of these, what cannot go yet) and limit.", []string{"stream", "what"}, nil)
)

// Describe sends the descriptions; prometheus calls it.
func (m *roomMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- roomSeconds
	to <- roomBytes
}

// Collect sends the values; prometheus calls it.
func (m *roomMetrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, r := range m.rooms {
		to <- prometheus.MustNewConstMetric(roomSeconds, prometheus.GaugeValue, r.seconds, name)
		for what, bytes := range map[string]float64{"used": r.used, "held": r.held, "limit": r.limit} {
			to <- prometheus.MustNewConstMetric(roomBytes, prometheus.GaugeValue, bytes, name, what)
		}
	}
}

// room takes what a keeper measured.
func (m *Metrics) room(rooms map[string]room) {
	if m == nil {
		return
	}
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	m.rooms.rooms = rooms
}

// Room says in a line for how long the streams have room at the present rate; empty where no aggregator of this process knows.
func (m *Metrics) Room() string {
	m.rooms.mu.Lock()
	defer m.rooms.mu.Unlock()
	if len(m.rooms.rooms) == 0 {
		return ""
	}
	least, where := math.Inf(1), ""
	for name, r := range m.rooms.rooms {
		if r.seconds < least || r.seconds == least && name < where {
			least, where = r.seconds, name
		}
	}
	if math.IsInf(least, 1) {
		return "room: no jobs come"
	}
	return fmt.Sprintf("room: %.0f s at the present rate if nothing were answered (%s)", least, where)
}
