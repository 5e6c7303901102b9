package job

import "time"

// LongestRest is the longest time between two looks of a sweeper at a job.
const LongestRest = 30 * time.Second

// Sweep is the state of a sweeper's look at a stored job. If the job has come to a halt, it is summed or started again.
// Looks are repeated until the job has its answer.
type Sweep struct {
	Age   time.Duration // since the model was stored, or moved to the end of its stream
	After time.Duration // the shortest time between two looks
	Waits bool          // the model waits for reparam-worker
	Many  bool          // there are too many jobs without answer to look at each often
	Full  bool          // a stream is so full that jobs which wait for reparam-worker have to be moved, too

	question Ask           // the last question
	rest     time.Duration // until the next look; 0: there is none
}

// restShare sets the rest of jobs that are looked at rarely: it is their age divided by restShare.
const restShare = 4

// Begin begins the look, sets the rest until the next one, and returns the first question. The rest is After, the
// shortest one, but longer for an old job if the job waits for reparam-worker, as most do in an overloaded system, or
// if there are many jobs. A waiting job that is so young that its rest is still After is not asked about.
func (s *Sweep) Begin() Ask {
	if s.rest = s.After; s.Waits || s.Many {
		s.rest = min(max(s.After, s.Age/restShare), LongestRest)
	}
	isYoung := s.Age < restShare*s.After
	if !s.Waits || !isYoung {
		s.question = AskOver
	}
	return s.question // AskNothing if it was not set
}

// Reply takes the reply to the last question, and returns the next one:
//
//	AskOver       yes: the look is over, and the last
//	              no:  AskPassed if the model waits, else AskCarry
//	AskPassed     yes, or the streams are full: AskCarry; the model waits no more if yes
//	AskCarry      yes: the look is over, and the last; no: AskUnderWay unless the model waits
//	AskUnderWay   no:  AskSum
//	AskSum        no:  AskRestart
//
// Any other reply ends the look.
func (s *Sweep) Reply(yes bool) Ask {
	question := s.question
	s.question = AskNothing
	switch {
	case yes && (question == AskOver || question == AskCarry):
		s.rest = 0
	case question == AskOver && s.Waits:
		s.question = AskPassed
	case question == AskOver, question == AskPassed && (yes || s.Full):
		s.Waits = s.Waits && !yes
		s.question = AskCarry
	case question == AskCarry && !s.Waits:
		s.question = AskUnderWay
	case question == AskUnderWay && !yes:
		s.question = AskSum
	case question == AskSum && !yes:
		s.question = AskRestart
	}
	return s.question
}

// Rest returns the time from the end of this look to the next one, or 0 if there is none.
func (s *Sweep) Rest() time.Duration { return s.rest }
