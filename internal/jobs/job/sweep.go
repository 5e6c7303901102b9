package job

import "time"

// LongestRest is the longest time between two looks of a sweeper at a job.
const LongestRest = 30 * time.Second

// Sweep is a sweeper's look at a stored job. Where the job has come to a halt it is summed or started again. Looks go on until
// the job has its answer.
type Sweep struct {
	Age   time.Duration // since the model was stored, or moved to the end of its stream
	After time.Duration // the shortest time between two looks
	Waits bool          // the model waits for reparam-worker
	Many  bool          // there are too many jobs without answer to look at each often
	Full  bool          // a stream is so full that jobs in front of reparam-worker are in the way, too

	asked Ask
	rest  time.Duration
}

// Begin begins the look. Most jobs of an overloaded system wait for reparam-worker: they are looked at rarely, and young ones
// without a question.
func (s *Sweep) Begin() Ask {
	if s.rest = s.After; s.Waits || s.Many {
		s.rest = min(max(s.After, s.Age/4), LongestRest)
	}
	if !s.Waits || s.Age >= 4*s.After {
		s.asked = AskOver
	}
	return s.asked
}

// Reply takes the reply to the last question, and returns the next one.
func (s *Sweep) Reply(yes bool) Ask {
	asked := s.asked
	s.asked = AskNothing
	switch {
	case yes && (asked == AskOver || asked == AskCarry):
		s.rest = 0
	case asked == AskOver && s.Waits:
		s.asked = AskPassed
	case asked == AskOver, asked == AskPassed && (yes || s.Full):
		s.Waits = s.Waits && !yes
		s.asked = AskCarry
	case asked == AskCarry && !s.Waits:
		s.asked = AskUnderWay
	case asked == AskUnderWay && !yes:
		s.asked = AskSum
	case asked == AskSum && !yes:
		s.asked = AskRestart
	}
	return s.asked
}

// Rest is the time until the next look, once this one is over; 0: there is none.
func (s *Sweep) Rest() time.Duration { return s.rest }
