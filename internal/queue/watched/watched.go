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

	value    atomic.Pointer[T]
	lastLook atomic.Int64 // time of the last look at the file, Unix nanoseconds

	mu         sync.Mutex
	info       os.FileInfo // of the file when it was read last; nil after a failure
	failedLast bool        // the last attempt to read the file failed, and was logged
}

// lookEvery is the least time between two looks at a file, unless Reload or HoldsNowOrAfterReload asks for one.
const lookEvery = time.Second

// Open reads and parses the file at path, and returns the value that watches it. what is the plural name of the value
// in log lines, for instance "keys". Errors quote nothing of the file if the errors of parse do not. The log may be
// nil.
func Open[T any](what, path string, parse func(text string) (T, error), log *slog.Logger) (*File[T], error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	f := &File[T]{what: what, path: path, parse: parse, log: log}
	f.lastLook.Store(time.Now().UnixNano())
	return f, f.load()
}

// Fixed returns a value that never changes.
func Fixed[T any](value T) *File[T] {
	f := &File[T]{}
	f.value.Store(&value)
	return f
}

// Value returns the value. It first reads the file again if the file has changed and the last look at it is older than
// lookEvery. If the file cannot be read, the old value stays.
func (f *File[T]) Value() T { return *f.current() }

// current returns a pointer to the value that Value returns. It is another pointer after the file was read again.
func (f *File[T]) current() *T {
	if f.isStale() {
		f.mu.Lock()
		// Another goroutine may have looked while this one waited for the mutex. Callers wait for that look instead of using
		// the old value, lest they sign with a key that is gone.
		if f.isStale() {
			f.reloadIfChanged()
			f.lastLook.Store(time.Now().UnixNano())
		}
		f.mu.Unlock()
	}
	return f.value.Load()
}

// isStale reports whether the last look at the file is older than lookEvery.
func (f *File[T]) isStale() bool {
	return f.path != "" && time.Now().UnixNano()-f.lastLook.Load() > int64(lookEvery)
}

// Reload reads the file again if it has changed, however recent the last look is.
func (f *File[T]) Reload() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reloadIfChanged()
}

// HoldsNowOrAfterReload reports whether ok returns true for the current value. If not, it looks at the file again, and tries a changed
// value too.
func (f *File[T]) HoldsNowOrAfterReload(ok func(T) bool) bool {
	current := f.current()
	if ok(*current) {
		return true
	}
	// The file may be newer than the last look at it, and another goroutine may have looked meanwhile.
	f.Reload()
	reloaded := f.value.Load()
	return reloaded != current && ok(*reloaded)
}

// reloadIfChanged reads the file again if its time, size or identity differ from those at the last read. The caller
// holds mu. A failure is logged once, until a read succeeds.
func (f *File[T]) reloadIfChanged() {
	if f.path == "" {
		return
	}
	info, err := os.Stat(f.path)
	if err == nil && f.info != nil && isSameFile(info, f.info) {
		return
	}
	if err = f.load(); err != nil {
		if !f.failedLast {
			f.log.Warn("cannot read "+f.what+" again: the old ones stay", "error", err)
		}
		f.info = nil // so that the next look reads the file whether it has changed or not
		f.failedLast = true
		return
	}
	f.failedLast = false
	f.log.Info(f.what + " were read again")
}

// isSameFile reports whether a and b describe one file with the same content, judged by time and size.
func isSameFile(a, b os.FileInfo) bool {
	return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
}

// load reads and parses the file, and stores its value and its description. On an error nothing is stored.
func (f *File[T]) load() error {
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
	Number int // 1 for the first line
	Text   string
}

// Lines returns the lines of text with comments and surrounding space cut off. A comment goes from # to the end of a
// line. Lines that are empty then are left out.
func Lines(text string) []Line {
	var lines []Line
	for n, s := range strings.Split(text, "\n") {
		s, _, _ = strings.Cut(s, "#")
		if s = strings.TrimSpace(s); s != "" {
			lines = append(lines, Line{n + 1, s})
		}
	}
	return lines
}
