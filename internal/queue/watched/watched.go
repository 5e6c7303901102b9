// Package watched has files of keys and limits that people change while a process runs: it reads them again.
package watched

import (
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// File is the value of a file, which is read again when it changes. Its methods may be called from any goroutine.
type File[T any] struct {
	what  string // the name of the value in logs
	path  string // "": the value never changes
	parse func(text string) (T, error)
	log   *slog.Logger

	value  atomic.Pointer[T]
	looked atomic.Int64 // time of the last look at the file, Unix nanoseconds

	mu    sync.Mutex
	info  os.FileInfo // of the file when it was read last; nil after a failure
	worse bool        // it could not be read since
}

// lookEvery is the least time between two looks at a file, unless Either asks for one.
const lookEvery = time.Second

// Open reads a file for the first time. Its value has the name what in logs. Errors quote nothing of the file, if those of parse do not.
// The log may be nil.
func Open[T any](what, path string, parse func(text string) (T, error), log *slog.Logger) (*File[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File[T]{what: what, path: path, parse: parse, log: log}
	f.looked.Store(time.Now().UnixNano())
	return f, f.read()
}

// Fixed returns a value that never changes.
func Fixed[T any](value T) *File[T] {
	f := &File[T]{}
	f.value.Store(&value)
	return f
}

// Now returns the value, after a look at the file if the last one is older than lookEvery. A file that cannot be read leaves the
// value as it is.
func (f *File[T]) Now() T { return *f.now() }

func (f *File[T]) now() *T {
	if f.stale() {
		f.mu.Lock()
		// A caller that finds the last look too old waits for the next one, lest it sign with a key that is gone.
		if f.stale() {
			f.reread()
			f.looked.Store(time.Now().UnixNano())
		}
		f.mu.Unlock()
	}
	return f.value.Load()
}

// stale reports whether the last look at the file is older than lookEvery.
func (f *File[T]) stale() bool {
	return f.path != "" && time.Now().UnixNano()-f.looked.Load() > int64(lookEvery)
}

// Look reads the file again if it has changed.
func (f *File[T]) Look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread()
}

// Either reports whether ok holds for the value, or for a newer one after another look at the file.
func (f *File[T]) Either(ok func(T) bool) bool {
	before := f.now()
	if ok(*before) {
		return true
	}
	// The file may be newer than the last look at it, and another goroutine may have looked meanwhile.
	f.Look()
	after := f.value.Load()
	return after != before && ok(*after)
}

// reread is Look with mu held.
func (f *File[T]) reread() {
	if f.path == "" {
		return
	}
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && same(info, f.info) {
		return
	}
	if err = f.read(); err != nil {
		if !f.worse {
			f.log.Warn("cannot read "+f.what+" again: the old ones stay", "error", err)
		}
		f.info = nil
		f.worse = true
		return
	}
	f.worse = false
	f.log.Info(f.what + " were read again")
}

func same(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// read reads the file.
func (f *File[T]) read() error {
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	value, err := f.parse(string(text))
	if err != nil {
		return err
	}
	f.info = info
	f.value.Store(&value)
	return nil
}

// Line is a line of a file, neither empty nor a comment.
type Line struct {
	Number int
	Text   string
}

// Lines returns the lines of a text, without comments after # and empty ones.
func Lines(text string) []Line {
	var all []Line
	for n, s := range strings.Split(text, "\n") {
		s, _, _ = strings.Cut(s, "#")
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, Line{n + 1, s})
		}
	}
	return all
}
