package seal

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watched is what a file says, which is read again when it changes. Its methods may be called from any goroutine.
type watched[T any] struct {
	what  string // the file holds: for people
	file  string // "": the value never changes
	parse func(lines []entry) (*T, error)
	log   *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // when the file was looked at last, Unix nanoseconds

	mu    sync.Mutex
	info  os.FileInfo // of the file when it was read last; nil after a failure
	worse bool        // it could not be read since
}

// entry is a line of a file that says something.
type entry struct {
	number int
	text   string
}

// lookEvery is the least time between two looks at a file, unless a message does not verify.
const lookEvery = time.Second

var errNone = errors.New("no keys in it")

// open reads a file for the first time. The log may be nil.
func open[T any](what, file string, parse func([]entry) (*T, error), log *slog.Logger) (*watched[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	w := &watched[T]{what: what, file: file, parse: parse, log: log}
	return w, w.read()
}

// now returns the value, after a look at the file if the last one was a while ago.
func (w *watched[T]) now() *T {
	if w.stale() {
		w.mu.Lock()
		// Whoever finds the last look too old waits for the next one, lest it sign with a key that is gone.
		if w.stale() {
			w.reread()
			w.looked.Store(time.Now().UnixNano())
		}
		w.mu.Unlock()
	}
	return w.value.Load()
}

// stale reports whether the last look at the file was a while ago.
func (w *watched[T]) stale() bool {
	return w.file != "" && time.Now().UnixNano()-w.looked.Load() > int64(lookEvery)
}

// look reads the file again if it has changed. A file that cannot be read leaves the value as it is.
func (w *watched[T]) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reread()
}

// either reports whether the value, or what the file says by now, is such that ok.
func (w *watched[T]) either(ok func(*T) bool) bool {
	before := w.now()
	if ok(before) {
		return true
	}
	// The key may be newer than the last look at the file, which another goroutine may have looked at meanwhile.
	w.look()
	after := w.value.Load()
	return after != before && ok(after)
}

// reread is look for who holds the lock.
func (w *watched[T]) reread() {
	if w.file == "" {
		return
	}
	info, err := os.Stat(w.file)
	if err == nil && w.info != nil && same(info, w.info) {
		return
	}
	if err = w.read(); err != nil {
		if !w.worse {
			w.log.Warn("cannot read "+w.what+" again: the old ones stay", "error", err)
		}
		w.info = nil
		w.worse = true
		return
	}
	w.worse = false
	w.log.Info(w.what + " were read again")
}

func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// read reads the file. Its errors say nothing of what the file holds.
func (w *watched[T]) read() error {
	info, err := os.Stat(w.file)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(w.file)
	if err != nil {
		return err
	}
	value, err := w.parse(lines(string(text)))
	if err != nil {
		return err
	}
	w.info = info
	w.value.Store(value)
	return nil
}

// lines returns the lines of a text that say something, without comments.
func lines(text string) []entry {
	var all []entry
	for n, s := range strings.Split(text, "\n") {
		s, _, _ = strings.Cut(s, "#")
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, entry{n + 1, s})
		}
	}
	return all
}
