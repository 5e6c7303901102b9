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

// watched is the value of a file, which is read again when it changes. Its methods may be called from any goroutine.
type watched[T any] struct {
	what  string // the name of the value in logs
	file  string // "": the value never changes
	parse func(lines []entry) (*T, error)
	log   *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // time of the last look at the file, Unix nanoseconds

	mu    sync.Mutex
	info  os.FileInfo // of the file when it was read last; nil after a failure
	worse bool        // it could not be read since
}

// entry is a line of a file, neither empty nor a comment.
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

// now returns the value, after a look at the file if the last one is older than lookEvery.
func (w *watched[T]) now() *T {
	if w.stale() {
		w.mu.Lock()
		// A caller that finds the last look too old waits for the next one, lest it sign with a key that is gone.
		if w.stale() {
			w.reread()
			w.looked.Store(time.Now().UnixNano())
		}
		w.mu.Unlock()
	}
	return w.value.Load()
}

// stale reports whether the last look at the file is older than lookEvery.
func (w *watched[T]) stale() bool {
	return w.file != "" && time.Now().UnixNano()-w.looked.Load() > int64(lookEvery)
}

// look reads the file again if it has changed. A file that cannot be read leaves the value as it is.
func (w *watched[T]) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reread()
}

// either reports whether ok holds for the value, or for a newer one after another look at the file.
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

// reread is look with mu held.
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

// read reads the file. Its errors quote nothing of it.
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

// lines returns the lines of a text without comments and empty ones.
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
