package console

// Inputs of commands: files, standard input, either of them compressed with gzip.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/base/zipped"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/pkg/fault"
)

// StandardInput is the name of standard input where a file is asked for.
const StandardInput = "-"

// maxInputBytes is the largest size of an input, after decompression.
const maxInputBytes = 1 << 30

// unlimited is the limit of streams.
const unlimited = math.MaxInt64 - 1

// Opener opens an input by its name. The reader is decompressed and bounded.
type Opener func(name string) (io.ReadCloser, error)

// Opener returns the function that opens a command's inputs. A read returns when ctx ends, also from a terminal or a
// pipe that says nothing.
func (t *Terminal) Opener(ctx context.Context) Opener {
	return func(name string) (io.ReadCloser, error) {
		raw, closeRaw, err := t.openRaw(ctx, name)
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, err)
		}
		if n := sizeOf(raw); n > maxInputBytes {
			closeRaw()
			return nil, fault.New(fault.BadInput, "%s: it has %s, at most %s are read", InputName(name),
				config.FormatBytes(float64(n)), config.FormatBytes(maxInputBytes))
		}
		r, err := decompress(raw, maxInputBytes)
		if err != nil {
			closeRaw()
			return nil, fault.New(CodeOfInput(err), "%s: %w", InputName(name), err)
		}
		return &input{r, closeRaw}, nil
	}
}

// Stream is an input of any length that counts the stored bytes that were read.
type Stream struct {
	input
	Count atomic.Int64 // bytes
}

// Stream opens an input like Opener, but without a bound. size is the size of a file as it is stored, before
// decompression; 0 if it is not known.
func (t *Terminal) Stream(ctx context.Context, name string) (stream *Stream, size int64, err error) {
	raw, closeRaw, err := t.openRaw(ctx, name)
	if err != nil {
		return nil, 0, fault.Wrap(fault.BadInput, err)
	}
	size = sizeOf(raw)
	stream = &Stream{input: input{close: closeRaw}}
	if stream.Reader, err = decompress(&countingReader{raw, &stream.Count}, unlimited); err != nil {
		closeRaw()
		return nil, 0, fault.New(CodeOfInput(err), "%s: %w", InputName(name), err)
	}
	return stream, size, nil
}

// sizeOf returns the size of a file; 0 for other readers.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			return info.Size()
		}
	}
	return 0
}

// countingReader is a reader that adds the number of bytes read to count.
type countingReader struct {
	io.Reader
	count *atomic.Int64
}

// Read reads from the underlying reader, and counts.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count.Add(int64(n))
	return n, err
}

// openRaw opens an input without decompressing it, and returns it with the function that closes it.
func (t *Terminal) openRaw(ctx context.Context, name string) (io.Reader, func() error, error) {
	if name == StandardInput {
		return endWith(ctx, t.In), func() error { return nil }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return endWith(ctx, f), f.Close, nil
	}
	return f, f.Close, nil
}

// endWith returns a reader of r that ends with ctx: a read that is waiting then returns the context's error.
func endWith(ctx context.Context, r io.Reader) io.Reader {
	// A goroutine copies r to a pipe. Closing the pipe ends a read that waits.
	reader, writer := io.Pipe()
	context.AfterFunc(ctx, func() { writer.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(writer, r)
		writer.CloseWithError(err) // nil is the end
	}()
	return reader
}

// InputName returns an input's name for a message.
func InputName(name string) string {
	if name == StandardInput {
		return "standard input"
	}
	return name
}

// CodeOfInput returns the code of an error of an input: cancelled after an interrupt, else bad_input.
func CodeOfInput(err error) fault.Code {
	if errors.Is(err, context.Canceled) {
		return fault.Cancelled
	}
	return fault.BadInput
}

// input is an open input.
type input struct {
	io.Reader
	close func() error
}

// Close closes the underlying file.
func (i *input) Close() error { return i.close() }

// decompress returns a reader of at most maxBytes decompressed bytes of r; more of them are an error with the code
// bad_input. It recognises gzip by the first bytes, and passes on other inputs. An input with a limit may decompress to
// at most zipped.MaxRatio its size; one that is unlimited to any multiple.
func decompress(r io.Reader, maxBytes int64) (io.Reader, error) {
	maxFactor := int64(zipped.MaxRatio)
	if maxBytes >= unlimited {
		maxFactor = 0 // any
	}
	plain, isCompressed, err := zipped.Open(r, maxFactor)
	message := "it has more than "
	if isCompressed {
		message = "it decompresses to more than "
	}
	return &boundedReader{plain, maxBytes, message + config.FormatBytes(float64(maxBytes))}, err
}

// boundedReader is a reader that fails after a number of bytes.
type boundedReader struct {
	io.Reader
	remaining int64  // number of bytes that may still be read
	message   string // text of the error if there are more
}

// Read reads at most one byte more than may be read, so as to distinguish the end of the input from too long an input.
func (b *boundedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > b.remaining+1 {
		p = p[:b.remaining+1]
	}
	n, err := b.Reader.Read(p)
	if b.remaining -= int64(n); b.remaining < 0 {
		return n - 1, fault.New(fault.BadInput, "%s", b.message)
	}
	if err != nil && !errors.Is(err, io.EOF) && fault.CodeOf(err) != fault.BadInput {
		err = fmt.Errorf("reading: %w", err)
	}
	return n, err
}
