package job

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the transcripts again")

// script plays a transcript: lines that begin with "> " are events, the lines below each what follows from it.
type script struct {
	c     *Count[string]
	sweep *Sweep // under way; nil: none is
	now   time.Time
	again int
}

var (
	asks    = [...]string{"nothing more", "over?", "first %d?", "list", "sum", "passed?", "carry", "under way?", "start again"}
	replies = map[string]Reply{"failed": Failed, "yes": Yes, "no": No, "gone": Gone, "mixed": Mixed}
)

// play carries out one event, and tells its effects.
func (s *script) play(t *testing.T, event string) (told []string) {
	words := strings.Fields(event)
	number := func(at int) int {
		n, err := strconv.Atoi(words[at])
		if err != nil {
			t.Fatalf("%q: %v", event, err)
		}
		return n
	}
	tell := func(e Effects[string]) {
		if len(e.Acknowledge) > 0 {
			told = append(told, "acknowledge "+strings.Join(e.Acknowledge, " "))
		}
		if len(e.Return) > 0 {
			told = append(told, "return "+strings.Join(e.Return, " "))
		}
		if e.Timer > 0 {
			told = append(told, "quiet in "+e.Timer.String())
		}
		if e.Forget {
			told = append(told, "forget")
		}
	}
	asked := func(q Question) {
		text := asks[q.Ask]
		if q.Ask == AskFirst {
			text = fmt.Sprintf(text, q.First)
		}
		told = append(told, text)
	}
	switch words[0] {
	case "job": // job 4 ends 2 3: of so many chunks
		s.c = New[string](number(1))
		for k := 3; k < len(words); k++ {
			s.c.ends = append(s.c.ends, number(k))
		}
	case "partial": // partial 0 [again]
		s.again++
		look, e := s.c.Partial(number(1), s.c.ends, fmt.Sprintf("%s#%d", words[1], s.again), len(words) > 2, s.now)
		told = append(told, [...]string{"hold", "hold, look", "look, all are counted"}[look])
		tell(e)
	case "after": // after 2s
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(d)
	case "look": // look [full]
		asked(s.c.Begin(len(words) > 1))
	case "stored": // stored 0 1 3
		ks := map[int]bool{}
		for k := 1; k < len(words); k++ {
			ks[number(k)] = true
		}
		next, e := s.c.Reply(Listed, ks)
		asked(next)
		tell(e)
	case "sweep": // sweep 12s [waits] [many] [full]: of a job of that age, by a sweeper that rests for 5s at least
		age, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		s.sweep = &Sweep{
			Age: age, After: 5 * time.Second,
			Waits: slices.Contains(words, "waits"), Many: slices.Contains(words, "many"), Full: slices.Contains(words, "full"),
		}
		told = s.swept(s.sweep.Begin())
	default:
		if s.sweep != nil {
			return s.swept(s.sweep.Reply(words[0] == "yes"))
		}
		r, ok := replies[words[0]]
		if !ok {
			t.Fatalf("no event %q", event)
		}
		next, e := s.c.Reply(r, nil)
		asked(next)
		tell(e)
	}
	return told
}

// swept tells the next question of a sweep, or its end.
func (s *script) swept(ask Ask) []string {
	if ask != AskNothing {
		return []string{asks[ask]}
	}
	rest := s.sweep.Rest()
	s.sweep = nil
	if rest == 0 {
		return []string{"nothing more", "acknowledge"}
	}
	return []string{"nothing more", "look again in " + rest.String()}
}

// TestAJobIsStartedAgainWhereNothingElseHelps: whatever the replies are, a sweep ends, acknowledges only a job that has its answer or was
// moved, and starts only one again that is past reparam-worker, not under way, and not summed.
func TestAJobIsStartedAgainWhereNothingElseHelps(t *testing.T) {
	for bits := range 1 << 12 {
		bit := func(k int) bool { return bits>>k&1 > 0 }
		s := &Sweep{Age: time.Duration(bits) * time.Second, After: 5 * time.Second, Waits: bit(0), Many: bit(1), Full: bit(2)}
		waits, said := s.Waits, map[Ask]bool{}
		asked := 0
		for ask := s.Begin(); ask != AskNothing; asked++ {
			if _, twice := said[ask]; twice {
				t.Fatalf("%b: %s is asked twice", bits, asks[ask])
			}
			if ask == AskRestart && (waits && !said[AskPassed] || said[AskOver] || said[AskCarry] || said[AskUnderWay] || said[AskSum]) {
				t.Errorf("%b: started again after %v", bits, said)
			}
			said[ask] = bit(3 + asked)
			ask = s.Reply(said[ask])
		}
		if ends := said[AskOver] || said[AskCarry]; ends != (s.Rest() == 0) || s.Rest() > LongestRest {
			t.Errorf("%b: rests for %v after %v", bits, s.Rest(), said)
		}
	}
}

// TestTranscripts plays testdata. To write the effects again: go test ./internal/jobs/job -update
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{now: time.Unix(0, 0)}
			var out []string
			for _, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
				switch event, ok := strings.CutPrefix(line, "> "); {
				case ok:
					out = append(out, line)
					out = append(out, s.play(t, event)...)
				case line == "" || strings.HasPrefix(line, "#"):
					out = append(out, line)
				}
			}
			got := strings.Join(out, "\n") + "\n"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(raw) {
				t.Errorf("got:\n%s", got)
			}
		})
	}
}

// world is a job with its stored partials, and two aggregators, each of which may end at any time.
type world struct {
	t        *testing.T
	random   *rand.Rand
	faults   bool
	n        int
	stored   map[int]bool
	answered bool
	pending  []int // deliveries to come, by chunk
	by       [2]aggregator
	looking  bool     // deliveries come meanwhile
	after    []func() // looks that wait
}

// aggregator has deliveries by number; a number is of one chunk.
type aggregator struct {
	count *Count[int]
	timer bool
	held  map[int]int
}

// TestEveryJobIsAnswered: partials in any sequence at two aggregators, that end at any time, deliveries again, looks, failures, jobs that
// are started again, and partials of several runs. Once faults end, deliveries and timers lead to the answer and settle every delivery;
// none comes again by itself while its aggregator lives.
func TestEveryJobIsAnswered(t *testing.T) {
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(30, seed))
		w := &world{t: t, random: random, faults: true, n: 2 + random.IntN(4), stored: map[int]bool{}}
		for at := range w.by {
			w.end(at)
		}
		for range 40 {
			k, at := random.IntN(w.n), random.IntN(2)
			switch event := random.IntN(10); {
			case event == 0:
				w.end(at)
			case event == 1 && !w.answered: // the job is started again
				delete(w.stored, k)
			case event < 4:
				w.quiet(at)
			case event < 7:
				w.store(k)
			case len(w.pending) > 0:
				w.deliver(at)
			}
		}
		w.faults = false
		for k := range w.n {
			w.store(k)
		}
		for round := 0; !w.answered || len(w.pending)+len(w.by[0].held)+len(w.by[1].held) > 0; round++ {
			if round > 100 {
				t.Fatalf("seed %d: answered %v, stored %v, to come %v, held %v", seed, w.answered, w.stored, w.pending, w.by)
			}
			if at := random.IntN(2); len(w.pending) > 0 && random.IntN(2) == 0 {
				w.deliver(at)
			} else {
				w.quiet(at)
			}
		}
	}
}

// store stores the partial of a chunk, unless it is there.
func (w *world) store(k int) {
	if !w.stored[k] {
		w.stored[k] = true
		w.pending = append(w.pending, k)
	}
}

// end ends an aggregator: its deliveries come again.
func (w *world) end(at int) {
	for _, k := range w.by[at].held {
		w.pending = append(w.pending, k)
	}
	w.by[at] = aggregator{count: New[int](w.n), held: map[int]int{}}
}

func (w *world) quiet(at int) {
	if w.by[at].timer {
		w.by[at].timer = false
		w.inTurn(func() { w.look(at, false) })
	}
}

// inTurn begins looks one after the other.
func (w *world) inTurn(look func()) {
	w.after = append(w.after, look)
	if !w.looking {
		for len(w.after) > 0 {
			look, w.after = w.after[0], w.after[1:]
			look()
		}
	}
}

// deliver hands a delivery to an aggregator.
func (w *world) deliver(at int) {
	i := w.random.IntN(len(w.pending))
	k := w.pending[i]
	w.pending = slices.Delete(w.pending, i, i+1)
	var ends []int
	if w.n > 3 {
		ends = []int{2, w.n - 1}
	}
	number := w.random.Int()
	look, e := w.by[at].count.Partial(k, ends, number, w.random.IntN(2) == 0, time.Unix(int64(w.random.IntN(5)), 0))
	if look != LookFull {
		w.by[at].held[number] = k
	}
	w.effects(at, e)
	switch look {
	case LookEarly:
		w.inTurn(func() { w.look(at, false) })
	case LookFull:
		w.inTurn(func() {
			if !w.look(at, true) {
				w.pending = append(w.pending, k)
			}
		})
	}
}

// look answers the questions of a look; false: it failed.
func (w *world) look(at int, full bool) bool {
	w.looking = true
	defer func() { w.looking = false }()
	count := w.by[at].count
	q := count.Begin(full)
	for range 10 {
		if len(w.pending) > 0 && w.random.IntN(3) == 0 {
			w.deliver(at)
		}
		r, listed := Yes, map[int]bool(nil)
		switch {
		case w.faults && w.random.IntN(6) == 0:
			r = Failed
		case q.Ask == AskOver && !w.answered:
			r = No
		case q.Ask == AskFirst && w.random.IntN(2) == 0:
			r = No
		case q.Ask == AskList:
			r, listed = Listed, maps.Clone(w.stored)
		case q.Ask == AskSum && len(w.stored) < w.n:
			r = Gone
		case q.Ask == AskSum && w.faults && w.random.IntN(4) == 0:
			r = Mixed
			delete(w.stored, w.random.IntN(w.n))
		}
		for k := range q.First {
			if q.Ask == AskFirst && !w.stored[k] {
				r = Gone
			}
		}
		w.answered = w.answered || r == Yes
		next, e := count.Reply(r, listed)
		w.effects(at, e)
		if next.Ask == AskNothing {
			return r != Failed && r != Gone
		}
		q = next
	}
	w.t.Fatal("a look has no end")
	return false
}

func (w *world) effects(at int, e Effects[int]) {
	by := &w.by[at]
	for _, number := range slices.Concat(e.Acknowledge, e.Return) {
		if _, ok := by.held[number]; !ok {
			w.t.Fatal("a delivery is settled that is not held")
		}
	}
	for _, number := range e.Return {
		w.pending = append(w.pending, by.held[number])
		delete(by.held, number)
	}
	for _, number := range e.Acknowledge {
		delete(by.held, number)
	}
	by.timer = by.timer || e.Timer > 0
	if e.Forget {
		if len(by.held) > 0 {
			w.t.Fatalf("forgotten with %v", by.held)
		}
		w.end(at)
	}
}
