package streams

// How much room there is.

import (
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
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

// Room is what one stream has.
type Room struct {
	Used, Limit float64 // bytes
	Held        float64 // of Used: what cannot go yet
	Seconds     float64 // until clients are refused, if nothing more could go and jobs came as they did; +Inf: none comes
}

// measure says how much room each stream has. What is older than the watermark counts as room.
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
		if name == bus.StreamBlob { // without what is stored for no job
			perSec = max(0, perSec-2/bus.ProbeEvery.Seconds())
		}
		one := Room{Used: float64(s.State.Bytes), Limit: float64(s.Config.MaxBytes), Seconds: math.Inf(1)}
		one.Held = one.Used * heldShare(s, w)
		if perSec > 0 && s.State.Msgs > 0 {
			size := one.Used / float64(s.State.Msgs)
			one.Seconds = max(0, roomRefused*one.Limit-one.Held) / (perSec * size)
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
