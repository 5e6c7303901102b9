package truth

// A session: many cases on all processors, with their violations written down.

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
)

// Session runs many cases and reports their violations. A reproducer is a file with a case that has a violation.
type Session struct {
	Out     io.Writer // violations are printed to it as they are found
	Folder  string    // of reproducers; empty: they are not written
	Workers int       // cases that run at a time
	Limits  Limits    // of each case

	mu        sync.Mutex     // guards written, Out and the tallies
	written   map[string]int // violations by class and method, as many as were reported
	hung      atomic.Int32   // cases that hung
	Reproduce string         // a command that takes the path of a reproducer, for the report
}

const (
	// maxHangs is the number of hanging cases after which a session ends, since each keeps a processor busy.
	maxHangs = 4
	// maxWritten is the largest number of reproducers that are written for one class of violations and method.
	maxWritten = 20
	// shrinkTries is the largest number of smaller cases that are tried to minimise a reproducer.
	shrinkTries = 400
)

// Source draws case i and its truth. The truth is nil if it is to be found by enumeration.
type Source func(i uint64) (*Case, []Truth)

// Random returns the source of cases with small random models whose numbers are of this profile.
func Random(p modeltest.Profile, seed uint64) Source {
	return func(i uint64) (*Case, []Truth) { return Draw(p, seed, i), nil }
}

// Structured returns the source of cases of all Families in turn.
func Structured(seed uint64) Source {
	return func(i uint64) (*Case, []Truth) { return DrawFamily(seed, i) }
}

// OfFamily returns the source of cases of one of the Families, or nil if none has this name.
func OfFamily(seed uint64, family string) Source {
	index := slices.Index(Families, family)
	if index < 0 {
		return nil
	}
	return func(i uint64) (*Case, []Truth) { return DrawFamily(seed, i*uint64(len(Families))+uint64(index)) }
}

// RunCases runs cases 0 to n−1 of a source, on all workers of the session, and counts them in tally. It ends early after maxHangs hangs.
func (s *Session) RunCases(n uint64, draw Source, tally *Tally) {
	var next atomic.Uint64
	var wg sync.WaitGroup
	for w := range s.Workers {
		wg.Go(func() {
			for s.hung.Load() < maxHangs {
				i := next.Add(1) - 1
				if i >= n {
					return
				}
				c, truth := draw(i)
				marker := s.markRunning(w, c)
				s.RunCase(c, truth, tally)
				_ = os.Remove(marker)
			}
		})
	}
	wg.Wait()
}

// markRunning writes the name of the case that a worker runs to a file, and returns its path. After a crash of the whole process that file
// is left.
func (s *Session) markRunning(worker int, c *Case) string {
	path := filepath.Join(s.Folder, fmt.Sprintf("running-%d.txt", worker))
	if s.Folder != "" {
		_ = os.WriteFile(path, []byte(c.Name+"\n"), 0o644)
	}
	return path
}

// RunCase runs a case, counts it in tally, reports its violations and returns them. If truth is nil, it is found by enumeration.
func (s *Session) RunCase(c *Case, truth []Truth, tally *Tally) []Violation {
	isEnumerable := truth == nil
	if isEnumerable {
		truth = Solve(c.Model, c.Queries)
	}
	o := Run(c, s.Limits)
	if o.Hung {
		s.hung.Add(1)
	}
	violations := Check(c, truth, o)
	s.mu.Lock()
	tally.Count(c, truth, o, violations)
	s.mu.Unlock()
	if len(violations) > 0 {
		s.report(c, violations, isEnumerable)
	}
	return violations
}

// report prints the first violation of a case, and writes a reproducer unless there are enough of its kind. If isEnumerable, the case is
// minimised first.
func (s *Session) report(c *Case, violations []Violation, isEnumerable bool) {
	class := violations[0].Class
	key := fmt.Sprintf("%s, %s", class, c.Settings.Method)

	// Is a reproducer still wanted?
	s.mu.Lock()
	if s.written == nil {
		s.written = map[string]int{}
	}
	s.written[key]++
	isWanted := s.Folder != "" && s.written[key] <= maxWritten
	s.mu.Unlock()

	path := ""
	if isWanted {
		if isEnumerable && class != DidNotReturn {
			c, violations = s.minimise(c, violations)
		}
		path = s.writeReproducer(c, violations[0])
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	v := violations[0]
	firstLine, _, _ := strings.Cut(v.Detail, "\n")
	fmt.Fprintf(s.Out, "%s: query %d: %s: %s [method %s, maps %s, cores %s, memory %d, no_exact %v]\n", c.Name,
		v.Query, v.Class, firstLine,
		c.Settings.Method, c.Settings.Maps, c.Settings.Cores, c.Settings.Memory, c.Settings.NoExact)
	if path != "" {
		fmt.Fprintf(s.Out, "    %s\n", path)
	}
}

// minimise returns the smallest case it finds that has a violation of the same class as the first one of c, and its violations of that
// class. If the smaller case has none when it is run again, it returns c.
func (s *Session) minimise(c *Case, violations []Violation) (*Case, []Violation) {
	class := violations[0].Class
	sameViolations := func(n *Case) []Violation {
		all := Check(n, Solve(n.Model, n.Queries), Run(n, s.Limits))
		return slices.DeleteFunc(all, func(v Violation) bool { return v.Class != class })
	}
	smallest := Shrink(c, shrinkTries, func(n *Case) bool { return len(sameViolations(n)) > 0 })
	if again := sameViolations(smallest); len(again) > 0 {
		return smallest, again
	}
	return c, violations
}

// writeReproducer writes a case to NAME.json and a violation of it to NAME.txt. It returns the path of the former, or a message if that
// fails.
func (s *Session) writeReproducer(c *Case, v Violation) string {
	text, err := json.Marshal(c)
	path := filepath.Join(s.Folder, c.Name+".json")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o644)
	}
	if err == nil {
		note := fmt.Sprintf("%s\nquery %d: %s: %s\n%s %s\n",
			c.Name, v.Query, v.Class, v.Detail, s.Reproduce, path)
		err = os.WriteFile(strings.TrimSuffix(path, ".json")+".txt", []byte(note), 0o644)
	}
	if err != nil {
		return fmt.Sprintf("not written: %v", err)
	}
	return path
}
