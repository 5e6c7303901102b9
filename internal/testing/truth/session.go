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

// Session runs cases and reports.
type Session struct {
	Out     io.Writer // violations as they are found
	Folder  string    // for reproducers; empty: they are not written
	Workers int
	Limits  Limits

	mu        sync.Mutex
	written   map[string]int // reproducers by class
	hung      atomic.Int32
	Reproduce string // a command that takes a reproducer's path, for the report
}

const (
	// maxHangs ends a session: every hang keeps a processor.
	maxHangs = 4
	// maxWritten bounds the reproducers of one class.
	maxWritten = 20
	// shrinkTries bounds the work on one reproducer.
	shrinkTries = 400
)

// Source draws case i, and its truth where enumeration is not the way to it; else nil.
type Source func(i uint64) (*Case, []Truth)

// Random draws the cases of a profile.
func Random(p modeltest.Profile, seed uint64) Source {
	return func(i uint64) (*Case, []Truth) { return Draw(p, seed, i), nil }
}

// Structured draws the cases of all families.
func Structured(seed uint64) Source {
	return func(i uint64) (*Case, []Truth) { return DrawFamily(seed, i) }
}

// OfFamily draws the cases of one family; nil if there is none of that name.
func OfFamily(seed uint64, family string) Source {
	place := slices.Index(Families, family)
	if place < 0 {
		return nil
	}
	return func(i uint64) (*Case, []Truth) { return DrawFamily(seed, i*uint64(len(Families))+uint64(place)) }
}

// Cases runs cases 0 to n−1 and counts them in y.
func (s *Session) Cases(n uint64, draw Source, y *Tally) {
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
				running := s.mark(w, c)
				s.One(c, truth, y)
				_ = os.Remove(running)
			}
		})
	}
	wg.Wait()
}

// mark writes down which case a worker is at: the file that is left after a crash of the whole
// process.
func (s *Session) mark(worker int, c *Case) string {
	path := filepath.Join(s.Folder, fmt.Sprintf("running-%d.txt", worker))
	if s.Folder != "" {
		_ = os.WriteFile(path, []byte(c.Name+"\n"), 0o644)
	}
	return path
}

// One runs a case, counts it, and reports its violations. A truth of nil is found by enumeration.
func (s *Session) One(c *Case, truth []Truth, y *Tally) []Violation {
	small := truth == nil
	if small {
		truth = Solve(c.Model, c.Queries)
	}
	o := Run(c, s.Limits)
	if o.Hung {
		s.hung.Add(1)
	}
	found := Check(c, truth, o)
	s.mu.Lock()
	y.Count(c, truth, o, found)
	s.mu.Unlock()
	if len(found) > 0 {
		s.report(c, found, small)
	}
	return found
}

// report writes the first violation of a case, minimised where it is small.
func (s *Session) report(c *Case, found []Violation, small bool) {
	class := found[0].Class
	key := fmt.Sprintf("%s, %s", class, c.Settings.Method)
	s.mu.Lock()
	if s.written == nil {
		s.written = map[string]int{}
	}
	s.written[key]++
	write := s.Folder != "" && s.written[key] <= maxWritten
	s.mu.Unlock()

	path := ""
	if write {
		if small && class != DidNotReturn {
			c, found = s.shrunk(c, found)
		}
		path = s.write(c, found[0])
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	v := found[0]
	first, _, _ := strings.Cut(v.Detail, "\n")
	fmt.Fprintf(s.Out, "%s: query %d: %s: %s [method %s, maps %s, cores %s, memory %d, no_exact %v]\n", c.Name,
		v.Query, v.Class, first,
		c.Settings.Method, c.Settings.Maps, c.Settings.Cores, c.Settings.Memory, c.Settings.NoExact)
	if path != "" {
		fmt.Fprintf(s.Out, "    %s\n", path)
	}
}

// shrunk is the minimised case with its violations.
func (s *Session) shrunk(c *Case, found []Violation) (*Case, []Violation) {
	class := found[0].Class
	breaks := func(n *Case) []Violation {
		all := Check(n, Solve(n.Model, n.Queries), Run(n, s.Limits))
		return slices.DeleteFunc(all, func(v Violation) bool { return v.Class != class })
	}
	small := Shrink(c, shrinkTries, func(n *Case) bool { return len(breaks(n)) > 0 })
	if again := breaks(small); len(again) > 0 {
		return small, again
	}
	return c, found
}

// write keeps a case with its violations.
func (s *Session) write(c *Case, v Violation) string {
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
