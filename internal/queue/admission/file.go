package admission

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// lookAgain is how often the file is looked at.
const lookAgain = 2 * time.Second

// File is a file of tenants that is read again when it changes.
type File struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	mu      sync.Mutex
	tenants *Tenants
	looked  time.Time // when the file was looked at
	state   string    // size and time of change of the content, or the error of reading it
}

// Open reads a file of tenants; "" is the built-in class for everybody. Errors are bad input.
// Logged are files that changed, and unreadable ones, whose earlier content stays.
func Open(path string, log *slog.Logger) (*File, error) {
	f := &File{path: path, log: log, now: time.Now}
	if path == "" {
		return f, nil
	}
	f.looked = f.now()
	f.state = state(path)
	var err error
	if f.tenants, err = read(path); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	return f, nil
}

// Tenants returns the content of the file. A file that was changed and cannot be read leaves
// everything as it was. Nil is valid: the built-in class.
func (f *File) Tenants() *Tenants {
	if f == nil || f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := f.now(); at.Sub(f.looked) >= lookAgain {
		f.looked = at
		f.reread()
	}
	return f.tenants
}

// reread reads the file if it is not the one that was read last.
func (f *File) reread() {
	is := state(f.path)
	if is == f.state {
		return
	}
	f.state = is
	t, err := read(f.path)
	if err != nil {
		f.log.Error("the file of tenants cannot be read, the earlier one stays", "error", err)
		return
	}
	f.tenants = t
	f.log.Info("the file of tenants has changed", "file", f.path, "classes", len(t.classes), "tenants", len(t.of))
}

func read(path string) (*Tenants, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// state distinguishes contents of a file without reading it.
func state(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), info.Name())
}
