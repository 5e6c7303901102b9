// Package job decides about a job in an aggregator: state machines without input or output, clock or goroutines.
// Partials, quiet times, looks and replies go in; questions and effects come out. testdata has transcripts.
//
// A Count has the job summed once its partials are there. A Sweep has it taken up again if it has come to a halt.
// Neither decides about the end of a job: the first answer that is stored is the only one, be it a sum, an error, a
// cancel or a deadline.
//
// The count is a hint: whether a job is complete is read from the stream, and only when the count is full, when a
// partial is delivered again, or when no more have come for a while. (Listing on every arrival is quadratic: 1.3 s for
// 256 chunks against 27 ms.)
//
// A partial is acknowledged after a listing that found others missing, or after the answer is stored. So the partial
// that completes a job is held by an aggregator, or delivered again, until the answer is stored, and no count has to
// survive.
package job

import "time"

// Pauses after the last partial before the stored ones are listed although the count is not full: others may have come
// to another aggregator. The pause doubles with every listing that finds the job incomplete.
const (
	FirstPause = 10 * time.Millisecond
	LastPause  = time.Second
	// IdlePause ends the count of an incomplete job: its next partial begins another.
	IdlePause = 30 * time.Second
)

// Question is what a look at the stored messages of a job has to find out or to do next.
type Question struct {
	Ask   Ask
	First int // for AskFirst: the number of first chunks
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

// Look says whether the caller of Partial has to look at the stored partials.
type Look int

const (
	LookNot   Look = iota
	LookEarly      // the first chunks that are counted may suffice for an answer
	LookFull       // every chunk is counted
)

// Effects are what the caller has to do. D is a delivery of a partial.
type Effects[D any] struct {
	Acknowledge []D           // deliveries to acknowledge
	Return      []D           // deliveries to be delivered again, after a failure
	Timer       time.Duration // set the timer to begin a look after that, instead of the time before; 0: leave it
	Forget      bool          // the count is over
}

// Count is the state of a job of several chunks in one aggregator. One look follows the other. Partials may come during
// a look.
type Count[D any] struct {
	chunks     int          // number of chunks of the job
	seenChunks map[int]bool // the chunks that are counted
	ends       []int        // numbers of first chunks with which the job may be answered, in increasing order
	triedFirst int          // the number of first chunks that was tried last, and did not suffice
	held       []D          // deliveries that are not acknowledged and not part of the look under way
	heldSince  time.Time    // when the first of held came
	hasTimer   bool         // a timer was set
	pause      time.Duration

	// The look under way:
	question      Question // the last question
	isFull        bool     // every chunk was counted when it began
	isListedAgain bool     // chunks were gone, and it listed them again
	inLook        []D      // the deliveries that were held when it began
}

// New begins the count of a job of n chunks.
func New[D any](n int) *Count[D] {
	return &Count[D]{chunks: n, seenChunks: map[int]bool{}, pause: FirstPause}
}

// Seen returns the number of chunks that are counted.
func (c *Count[D]) Seen() int { return len(c.seenChunks) }

// Partial counts chunk k, whose values came with the delivery d, and returns whether the caller has to look at what is
// stored. The delivery is held, not acknowledged, unless all chunks are counted now. ends are the numbers of first chunks
// with which the job may be answered. again says that the chunk was delivered before, to another process, so that all
// others may be stored: the pause is short then.
func (c *Count[D]) Partial(k int, ends []int, d D, again bool, now time.Time) (look Look, e Effects[D]) {
	c.ends = ends
	c.seenChunks[k] = true
	if len(c.seenChunks) == c.chunks {
		return LookFull, e
	}
	if len(c.held) == 0 {
		c.heldSince = now
	}
	if again {
		c.pause = FirstPause
	}
	c.held = append(c.held, d)

	// Every partial puts the next look off by the pause, but not for longer than LastPause in all. If it is the only one that is held, a
	// timer that is set may be the long one of an idle count, and is set anew.
	mayPutOff := now.Sub(c.heldSince) < LastPause
	if !c.hasTimer || len(c.held) == 1 || mayPutOff {
		c.hasTimer, e.Timer = true, c.pause
	}
	if c.earlyEnd() > 0 {
		look = LookEarly
	}
	return look, e
}

// earlyEnd returns a number of first chunks, all of which are counted, with which the job may be answered. It is the
// largest one of c.ends if that is larger than the number that was tried last, and 0 otherwise.
func (c *Count[D]) earlyEnd() (largest int) {
	k := 0 // chunks 0 to k-1 are seen
	for _, end := range c.ends {
		for k < end && c.seenChunks[k] {
			k++
		}
		if k < end {
			break
		}
		if end > c.triedFirst {
			largest = end
		}
	}
	return largest
}

// Begin begins a look for the partials that are held by now, and returns its first question. full says that every chunk
// was counted when the look was asked for.
func (c *Count[D]) Begin(full bool) Question {
	c.inLook, c.held = c.held, nil
	c.isFull, c.isListedAgain = full, false
	return c.setQuestion(AskOver)
}

// setQuestion sets and returns the next question.
func (c *Count[D]) setQuestion(ask Ask) Question {
	c.question = Question{Ask: ask}
	if ask == AskFirst {
		c.question.First = c.earlyEnd()
	}
	return c.question
}

// Reply takes the reply to the last question of a look at what is stored of the job, and returns the next question. If the
// reply is Listed, chunks are the chunks that are stored. If the look is over, the next question is AskNothing, and the
// effects are the caller's to carry out.
func (c *Count[D]) Reply(r Reply, chunks map[int]bool) (next Question, e Effects[D]) {
	switch question := c.question; {
	// The look ends, after any question.
	case r == Failed:
		return c.setQuestion(AskNothing), c.finishLook(Effects[D]{Return: c.inLook})
	case r == Yes:
		return c.setQuestion(AskNothing), c.finishLook(Effects[D]{Acknowledge: c.inLook})

	// The job has no answer yet: sum it, try its first chunks, or list what is stored.
	case question.Ask == AskOver && c.isFull:
		return c.setQuestion(AskSum), e
	case question.Ask == AskOver && c.earlyEnd() > 0:
		return c.setQuestion(AskFirst), e
	case question.Ask == AskOver:
		return c.setQuestion(AskList), e
	case question.Ask == AskFirst:
		if r == No { // otherwise one of them is gone, and they may be tried again
			c.triedFirst = question.First
		}
		return c.setQuestion(AskList), e
	case question.Ask == AskList && len(chunks) == c.chunks:
		c.markSeen(chunks)
		return c.setQuestion(AskSum), e
	case question.Ask == AskList: // some are missing
		c.markSeen(chunks)

	// A sum failed. Partials go if a job is started again, and forged ones go when they are read: list again, once.
	case r == Gone && !c.isListedAgain:
		c.isListedAgain = true
		clear(c.seenChunks)
		return c.setQuestion(AskList), e
	case r == Gone: // listed again, and not there to be read: a replica is behind
		return c.setQuestion(AskNothing), c.finishLook(Effects[D]{Return: c.inLook})
	case r == Mixed: // the job was started again, and some of its chunks come anew
		clear(c.seenChunks)
	}
	return c.setQuestion(AskNothing), c.waitForMore()
}

// markSeen counts chunks as seen.
func (c *Count[D]) markSeen(chunks map[int]bool) {
	for k := range chunks {
		c.seenChunks[k] = true
	}
}

// finishLook ends the look with effects, and the count unless partials have come meanwhile. The timer begins a look for
// those.
func (c *Count[D]) finishLook(e Effects[D]) Effects[D] {
	c.inLook = nil
	e.Forget = len(c.held) == 0
	return e
}

// waitForMore ends a look that found the job incomplete. The deliveries of the look are acknowledged. If more have come
// meanwhile, the next look comes after the pause, which doubles with every look; if not, after IdlePause. The count ends
// if no partial has come since the look before.
func (c *Count[D]) waitForMore() Effects[D] {
	e := Effects[D]{Acknowledge: c.inLook, Timer: IdlePause}
	c.pause = min(2*c.pause, LastPause)
	switch {
	case len(c.held) > 0:
		e.Timer = c.pause
	case len(c.inLook) == 0:
		e.Timer, e.Forget = 0, true
	}
	c.inLook = nil
	return e
}

// Held returns the deliveries that are held, which the count gives up because the process ends.
func (c *Count[D]) Held() []D {
	held := c.held
	c.held = nil
	return held
}
