// Package job decides about a job in an aggregator: state machines without input or output, clock or goroutines. Partials, quiet
// times, looks and replies go in; questions and effects come out. testdata has transcripts.
//
// A Count sums the job once its partials are there. A Sweep takes it up again where it has come to a halt. Of the end of a job
// neither decides: the first answer that is stored is the only one, be it a sum, an error, a cancel or a deadline.
//
// The count is a hint: whether a job is complete is read from the stream, and only when the count is full, when a partial is
// delivered again, or when no more have come for a while. (Listing on every arrival is quadratic: 1.3 s for 256 chunks against
// 27 ms.)
//
// A partial is acknowledged after a listing that found others missing, or after the answer is stored. So the partial that
// completes a job is held by an aggregator, or delivered again, until the answer is stored, and no count has to survive.
package job

import "time"

// Pauses after the last partial before the stored ones are listed although the count is not full: others may have come to
// another aggregator. The pause doubles with every listing that finds the job incomplete.
const (
	FirstPause = 10 * time.Millisecond
	LastPause  = time.Second
	// IdlePause ends the count of an incomplete job: its next partial begins another.
	IdlePause = 30 * time.Second
)

// Question is the next one of a look at what is stored of a job.
type Question struct {
	Ask   Ask
	First int // of AskFirst: the number of chunks
}

// Ask is a question about a job, or something to be done about it.
type Ask int

const (
	AskNothing Ask = iota // the look is over
	AskOver               // has the job its answer? Yes, No
	AskFirst              // answer it by its first chunks, if they suffice: Yes, No, Gone
	AskList               // which chunks are stored? Listed
	AskSum                // answer it by all chunks: Yes, Gone, Mixed; of a sweeper if all are stored: yes, no

	// Of a sweeper, each with yes or no:
	AskPassed   // has it a partial, so that reparam-worker is done with it?
	AskCarry    // move it to the end of the streams, if it is in the way
	AskUnderWay // does a message of it wait, or is one in work?
	AskRestart  // start it again from its model, or end it, if its deadline has passed
)

// Reply is the kind of a reply. Failed may follow any question.
type Reply int

const (
	Failed Reply = iota
	Yes
	No
	Listed
	Gone  // a chunk that was counted or listed is not there
	Mixed // chunks of several runs: all but one run's are deleted
)

// Look is whether a partial makes its caller look at what is stored.
type Look int

const (
	LookNot Look = iota
	LookEarly
	LookFull // every chunk is counted
)

// Effects are what the caller has to do. D is a delivery of a partial.
type Effects[D any] struct {
	Acknowledge []D
	Return      []D           // to be delivered again, after a failure
	Timer       time.Duration // until Quiet, in place of the time before; 0: as it is
	Forget      bool          // the count is over
}

// Count is the state of a job of several chunks in one aggregator. Looks come one after the other; partials may come meanwhile.
type Count[D any] struct {
	n     int
	seen  map[int]bool
	ends  []int // the job may be answered with so many first chunks, in increasing order
	tried int   // the number of first chunks that were tried last, and did not suffice
	held  []D
	since time.Time // when the first of held came
	timed bool      // a timer was set
	pause time.Duration

	// Of the look under way:
	asked  Question
	full   bool
	again  bool // chunks were gone, and listed again
	looked []D  // held when it began
}

// New begins the count of a job of n chunks.
func New[D any](n int) *Count[D] { return &Count[D]{n: n, seen: map[int]bool{}, pause: FirstPause} }

// Seen is the number of chunks counted.
func (c *Count[D]) Seen() int { return len(c.seen) }

// Partial counts chunk k of a job that ends allow to answer early. It is held unless it fills the count. One that is delivered
// again was in another process: the others may all be stored.
func (c *Count[D]) Partial(k int, ends []int, d D, again bool, now time.Time) (look Look, e Effects[D]) {
	c.ends = ends
	c.seen[k] = true
	if len(c.seen) == c.n {
		return LookFull, e
	}
	if len(c.held) == 0 {
		c.since = now
	}
	if again {
		c.pause = FirstPause
	}
	c.held = append(c.held, d)
	if !c.timed || len(c.held) == 1 || now.Sub(c.since) < LastPause {
		c.timed, e.Timer = true, c.pause
	}
	if c.end() > 0 {
		look = LookEarly
	}
	return look, e
}

// end is the largest number of first chunks, all of them seen, that may suffice and has not been tried; 0 for none.
func (c *Count[D]) end() (most int) {
	k := 0 // chunks 0 to k-1 are seen
	for _, end := range c.ends {
		for k < end && c.seen[k] {
			k++
		}
		if k < end {
			break
		}
		if end > c.tried {
			most = end
		}
	}
	return most
}

// Begin begins a look, about the partials that are held by now. full: every chunk was counted when it was asked for.
func (c *Count[D]) Begin(full bool) Question {
	c.looked, c.held = c.held, nil
	c.full, c.again = full, false
	return c.ask(AskOver)
}

func (c *Count[D]) ask(a Ask) Question {
	c.asked = Question{Ask: a}
	if a == AskFirst {
		c.asked.First = c.end()
	}
	return c.asked
}

// Reply takes the reply to the last question, with the chunks of Listed, and returns the next one. The effects are those of the
// look's end.
func (c *Count[D]) Reply(r Reply, chunks map[int]bool) (next Question, e Effects[D]) {
	switch asked := c.asked; {
	case r == Failed:
		return c.ask(AskNothing), c.settled(Effects[D]{Return: c.looked})
	case r == Yes:
		return c.ask(AskNothing), c.settled(Effects[D]{Acknowledge: c.looked})
	case asked.Ask == AskOver && c.full:
		return c.ask(AskSum), e
	case asked.Ask == AskOver && c.end() > 0:
		return c.ask(AskFirst), e
	case asked.Ask == AskOver:
		return c.ask(AskList), e
	case asked.Ask == AskFirst:
		if r == No {
			c.tried = asked.First
		}
		return c.ask(AskList), e
	case asked.Ask == AskList:
		for k := range chunks {
			c.seen[k] = true
		}
		if len(chunks) == c.n {
			return c.ask(AskSum), e
		}
	case r == Gone && !c.again: // a job that is started again begins with no partials, and forged ones go when they are read
		c.again = true
		clear(c.seen)
		return c.ask(AskList), e
	case r == Gone: // listed, and not there to be read: a replica is behind
		return c.ask(AskNothing), c.settled(Effects[D]{Return: c.looked})
	case r == Mixed:
		clear(c.seen)
	}
	return c.ask(AskNothing), c.incomplete()
}

// settled ends the count, unless partials have come meanwhile: their timer settles them.
func (c *Count[D]) settled(e Effects[D]) Effects[D] {
	c.looked = nil
	e.Forget = len(c.held) == 0
	return e
}

// incomplete waits for more partials. A job without any since the last look is forgotten.
func (c *Count[D]) incomplete() Effects[D] {
	e := Effects[D]{Acknowledge: c.looked, Timer: IdlePause}
	c.pause = min(2*c.pause, LastPause)
	switch {
	case len(c.held) > 0:
		e.Timer = c.pause
	case len(c.looked) == 0:
		e.Timer, e.Forget = 0, true
	}
	c.looked = nil
	return e
}

// Held takes the deliveries that are held: the process ends.
func (c *Count[D]) Held() []D {
	held := c.held
	c.held = nil
	return held
}
