package streams

// How full the streams are, and how soon they will be full.

import (
	"math"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
)

// arrivalRate estimates how fast messages come into a stream, smoothed over about half a minute.
type arrivalRate struct {
	lastSequence uint64 // of the stream, at lastTime
	lastTime     time.Time
	perSec       float64 // messages per second
}

// rateTimeConstant is the time constant of the smoothing.
const rateTimeConstant = 30 * time.Second

// update takes the stream's last sequence at a time, and returns the new estimate in messages per second. With Δn
// messages in Δt and the time constant τ the estimate becomes r + (1 − e^(−Δt/τ)) (Δn/Δt − r), an exponentially
// weighted mean. If the sequence went back, because the stream was recreated, the estimate stays.
func (r *arrivalRate) update(sequence uint64, at time.Time) float64 {
	if elapsed := at.Sub(r.lastTime); !r.lastTime.IsZero() && elapsed > 0 && sequence >= r.lastSequence {
		weight := 1 - math.Exp(-elapsed.Seconds()/rateTimeConstant.Seconds())
		r.perSec += weight * (float64(sequence-r.lastSequence)/elapsed.Seconds() - r.perSec)
	}
	r.lastSequence = sequence
	r.lastTime = at
	return r.perSec
}

// Room is the room of one stream.
type Room struct {
	Used, Limit float64 // bytes
	Held        float64 // bytes of Used that cannot be purged yet
	// Seconds is the time until clients are refused if nothing more can be purged and jobs come at the present rate; +Inf if
	// no jobs come.
	Seconds float64
}

// measure returns the room of each stream that has a limit. Messages older than the watermark can be purged, and do not
// count as held. Seconds is the time until held messages fill the share roomRefused, at which clients are refused, if
// messages come at the present rate.
func (k *Keeper) measure(states map[string]streamState, mark watermark) map[string]Room {
	if k.rates == nil {
		k.rates = map[string]*arrivalRate{}
	}

	rooms := map[string]Room{}
	for name, s := range states {
		if s.Config.MaxBytes <= 0 {
			continue
		}
		if k.rates[name] == nil {
			k.rates[name] = &arrivalRate{}
		}
		perSec := k.rates[name].update(s.State.LastSeq, s.TimeStamp)
		if name == bus.StreamBlob {
			// Probes, messages that test whether the server stores any, belong to no job: twice their rate is left out.
			perSec = max(0, perSec-2/bus.ProbeEvery.Seconds())
		}

		room := Room{
			Used:    float64(s.State.Bytes),
			Limit:   float64(s.Config.MaxBytes),
			Seconds: math.Inf(1),
		}
		room.Held = room.Used * heldShare(s, mark)

		if perSec > 0 && s.State.Msgs > 0 {
			size := room.Used / float64(s.State.Msgs)
			room.Seconds = max(0, roomRefused*room.Limit-room.Held) / (perSec * size)
		}
		rooms[name] = room
	}
	return rooms
}

// roomRefused is the share of a stream's limit at which clients are refused.
const roomRefused = 0.75

// heldShare returns the share of a stream's messages that are too young to be purged, if they came evenly since the
// first one.
func heldShare(stream streamState, mark watermark) float64 {
	span := mark.askedAt.Sub(stream.State.FirstTime)
	if stream.State.Msgs == 0 || span <= 0 {
		return 0
	}
	return min(1, max(0, float64(mark.askedAt.Sub(mark.purgeableBefore(stream.Config.Name)))/float64(span)))
}
