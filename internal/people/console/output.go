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

// ReplaceFile writes a file with a new content. The content goes to a temporary file in the same folder, which is then renamed, so that an
// error leaves the old file. A file whose name ends with .gz is compressed. A device or a pipe is written to
// directly. Errors: bad_input if no file can be there, and those of write.
func ReplaceFile(name string, mode os.FileMode, write func(io.Writer) error) error {
	// A device or a pipe.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		return errors.Join(write(f), f.Close())
	}

	// Open a temporary file. Its name says nothing to the user: an error names the file that was asked for.
	temporary := filepath.Join(filepath.Dir(name), ".btn-"+rand.Text())
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		if pathError := (*os.PathError)(nil); errors.As(err, &pathError) {
			pathError.Path = name // changes err, too
		}
		return fault.Wrap(fault.BadInput, err)
	}

	// Write the content, compressed or not.
	buffered := bufio.NewWriterSize(f, 1<<20)
	if strings.EqualFold(filepath.Ext(name), Zipped) {
		compressor := gzip.NewWriter(buffered)
		err = errors.Join(write(compressor), compressor.Close())
	} else {
		err = write(buffered)
	}

	// Rename the file once it is on the disk, or remove it after an error.
	if err == nil {
		err = errors.Join(buffered.Flush(), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// Bar draws the progress of work on one line of a terminal. A nil *Bar draws nothing.
type Bar struct {
	out     io.Writer
	isDrawn bool
}

// NewBar returns a bar if w is a terminal, else nil.
func NewBar(w io.Writer) *Bar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &Bar{out: w}
}

const barWidth = 30

// Draw draws a bar for done of total between two texts. If the total is not known (0) it draws the texts alone.
func (b *Bar) Draw(before string, done, total float64, after string) {
	if b == nil {
		return
	}
	b.isDrawn = true
	bar := ""
	if total > 0 {
		filled := int(barWidth * min(1, max(0, done/total)))
		bar = "[" + strings.Repeat("#", filled) + strings.Repeat("-", barWidth-filled) + "] "
	}
	fmt.Fprintf(b.out, "\r\x1b[K%s%s%s", before, bar, after)
}

// Clear removes the bar.
func (b *Bar) Clear() {
	if b != nil && b.isDrawn {
		fmt.Fprint(b.out, "\r\x1b[K")
		b.isDrawn = false
	}
}
