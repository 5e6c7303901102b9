package streams

// The rate of jobs that the streams' room sustains, as docs/explanation/room.md derives it.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
)

// purgeLag is the time from an answer until the job's model may be purged: the sweeper looks at it after 5 s, and the
// keeper at the streams every second.
const purgeLag = 7 * time.Second

// Sustained has what determines the rate that the room of a stream sustains.
type Sustained struct {
	Stream string
	Bytes  int64         // limit of the stream
	Holds  time.Duration // least time for which a message is held
}

// Rate returns the bytes per second that the stream can take without end: (3/4) Bytes / Holds. Then the bytes that may
// not be purged yet stay below 3/4 of the limit, the share at which clients are refused.
func (s Sustained) Rate() float64 { return roomRefused * float64(s.Bytes) / s.Holds.Seconds() }

// SustainedRates returns the rates of the streams that grow with every job, by their present options on the server.
func SustainedRates(ctx context.Context, conn *bus.Conn) ([]Sustained, error) {
	var rates []Sustained
	growing := []string{bus.StreamModel, bus.StreamPartial, bus.StreamAnswer, bus.StreamBlob}
	for _, name := range growing {
		s, err := conn.Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		c := s.CachedInfo().Config
		if c.MaxBytes <= 0 {
			return nil, fault.New(fault.Infrastructure, "pipeline: stream %s has no bound", name)
		}

		// How long a message stays before it may be purged, see watermark.purgeableBefore: a model for its grace, or until
		// it counts as answered; other messages for a margin longer than the model; a blob for the time to renew it besides.
		// An answer stays for its least time, and until its model is purged.
		times := bus.TimesOf(c.Metadata)
		holds := map[string]time.Duration{
			bus.StreamModel:   max(times.Grace, purgeLag),
			bus.StreamPartial: purgeLag + times.Margin,
			bus.StreamAnswer:  max(times.Answers, times.Grace+2*times.Margin),
			bus.StreamBlob:    purgeLag + times.Margin + times.Renew,
		}[name]
		rates = append(rates, Sustained{Stream: name, Bytes: c.MaxBytes, Holds: holds})
	}
	return rates, nil
}

// Reference is the number of bytes that a job is assumed to store in each stream when rates are shown in jobs: a
// request of 8 KiB with a model of its own. (One of 6.6 KiB, a Bayesian network of 37 variables, was measured to store
// 8.7 KiB of blobs and 1.1 KiB each of partials and answers.)
var Reference = map[string]float64{
	bus.StreamModel:   8 << 10,
	bus.StreamPartial: 2 << 10,
	bus.StreamAnswer:  2 << 10,
	bus.StreamBlob:    11 << 10,
}

// SustainedText returns a line with the rate of each stream in bytes, and a last line with the rate in jobs that all of
// them sustain. Reference has the bytes that a job stores in each stream.
func SustainedText(rates []Sustained) string {
	var out strings.Builder
	lowestRate := 0.0 // jobs per second, in the stream that sustains fewest
	firstToFill := "" // that stream

	for _, s := range rates {
		fmt.Fprintf(
			&out, "%-12s %6d MiB, what comes is held for %v: %.1f MiB/s\n",
			s.Stream, s.Bytes>>20, s.Holds, s.Rate()/(1<<20),
		)
		if jobs := s.Rate() / Reference[s.Stream]; firstToFill == "" || jobs < lowestRate {
			lowestRate = jobs
			firstToFill = s.Stream
		}
	}

	fmt.Fprintf(
		&out,
		"sustains about %.0f jobs/s of 8 KiB, each with a model of its own "+
			"(%s is the first to fill)\n",
		lowestRate, firstToFill,
	)
	return out.String()
}
