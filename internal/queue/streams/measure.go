package streams

// The room of the streams.

import (
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
)

// rate estimates how fast messages come into a stream, smoothed over about half a minute.
type rate struct {
	sequence uint64 // last of the stream
	at       time.Time
	perSec   float64 // messages
}

// rateOver is the time constant of the smoothing.
const rateOver = 30 * time.Second

// see adds the stream's last sequence at a time, and returns the estimate in messages per second.
// It is the exponentially weighted mean r ← r + (1 − e^(−Δt/τ)) (Δn/Δt − r). A sequence that went
// back, as of a recreated stream, begins a new interval.
func (r *rate) see(sequence uint64, at time.Time) float64 {
	if past := at.Sub(r.at); !r.at.IsZero() && past > 0 && sequence >= r.sequence {
		weight := 1 - math.Exp(-past.Seconds()/rateOver.Seconds())
		r.perSec += weight * (float64(sequence-r.sequence)/past.Seconds() - r.perSec)
	}
	r.sequence = sequence
	r.at = at
	return r.perSec
}

// Room is the room of one stream.
type Room struct {
	Used, Limit float64 // bytes
	Held        float64 // bytes of Used that cannot be purged yet
	// until clients are refused if nothing more could be purged and jobs came as they do; +Inf:
	// none comes
	Seconds float64
}

// measure returns the room of each stream. Messages older than the watermark count as room.
func (k *Keeper) measure(spaces map[string]space, w watermark) map[string]Room {
	if k.rates == nil {
		k.rates = map[string]*rate{}
	}

	rooms := map[string]Room{}
	for name, s := range spaces {
		if s.Config.MaxBytes <= 0 {
			continue
		}
		if k.rates[name] == nil {
			k.rates[name] = &rate{}
		}
		perSec := k.rates[name].see(s.State.LastSeq, s.TimeStamp)
		if name == bus.StreamBlob {
			// Probes belong to no job: twice their rate is left out.
			perSec = max(0, perSec-2/bus.ProbeEvery.Seconds())
		}

		one := Room{
			Used:    float64(s.State.Bytes),
			Limit:   float64(s.Config.MaxBytes),
			Seconds: math.Inf(1),
		}
		one.Held = one.Used * heldShare(s, w)

		if perSec > 0 && s.State.Msgs > 0 {
			size := one.Used / float64(s.State.Msgs)
			one.Seconds = max(0, roomRefused*one.Limit-one.Held) / (perSec * size)
		}
		rooms[name] = one
	}
	return rooms
}

// roomRefused is the share of a stream's limit at which clients are refused.
const roomRefused = 0.75

// heldShare returns the share of a stream that is younger than the watermark of purging, if
// messages came evenly.
func heldShare(s space, w watermark) float64 {
	span := w.asked.Sub(s.State.FirstTime)
	if s.State.Msgs == 0 || span <= 0 {
		return 0
	}
	return min(1, max(0, float64(w.asked.Sub(w.frees(s.Config.Name)))/float64(span)))
}
