package console

// Outputs of commands: files that are there once they are whole, and progress on a terminal.

import (
	"bufio"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
	"golang.org/x/term"
)

// Replace writes a file beside its place and moves it there, so that an error leaves the old file; .gz is compressed. What is no regular
// file, a device or a pipe, is written to as it is. Errors: bad_input for a place where no file can be, and write's.
func Replace(name string, mode os.FileMode, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		return errors.Join(write(f), f.Close())
	}
	part := filepath.Join(filepath.Dir(name), ".btn-"+rand.Text())
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		if of := (*os.PathError)(nil); errors.As(err, &of) {
			of.Path = name // the other one says nothing to anybody
		}
		return fault.Wrap(fault.BadInput, err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	if strings.EqualFold(filepath.Ext(name), Zipped) {
		z := gzip.NewWriter(out)
		err = errors.Join(write(z), z.Close())
	} else {
		err = write(out)
	}
	if err == nil {
		err = errors.Join(out.Flush(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// Bar draws the progress of work on one line of a terminal. A nil *Bar draws nothing.
type Bar struct {
	out   io.Writer
	drawn bool
}

// NewBar returns a bar if w is a terminal, else nil: nothing of the kind when piped.
func NewBar(w io.Writer) *Bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Bar{out: w}
}

const barWidth = 30

// Draw draws the finished part of a total between two texts; the texts alone where the total is not known, 0.
func (b *Bar) Draw(before string, done, total float64, after string) {
	if b == nil {
		return
	}
	b.drawn = true
	bar := ""
	if total > 0 {
		filled := int(barWidth * min(1, max(0, done/total)))
		bar = "[" + strings.Repeat("#", filled) + strings.Repeat("-", barWidth-filled) + "] "
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s%s%s", before, bar, after)
}

// Clear removes the bar.
func (b *Bar) Clear() {
	if b != nil && b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.drawn = false
	}
}
