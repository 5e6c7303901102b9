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

// mostBytes is the largest size of an input, after decompression.
const mostBytes = 1 << 30

// streamed is the limit of streams: none.
const streamed = math.MaxInt64 - 1

// Opener opens an input by its name. The reader is decompressed and bounded.
type Opener func(name string) (io.ReadCloser, error)

// Opener returns the Opener of a command's inputs. Reading ends with ctx, also from a terminal or a
// pipe that says nothing.
func (t *Terminal) Opener(ctx context.Context) Opener {
	return func(name string) (io.ReadCloser, error) {
		raw, closeRaw, err := t.raw(ctx, name)
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, err)
		}
		if n := sizeOf(raw); n > mostBytes {
			closeRaw()
			return nil, fault.New(fault.BadInput, "%s: it has %s, at most %s are read", Called(name),
				config.FormatBytes(float64(n)), config.FormatBytes(mostBytes))
		}
		r, err := plain(raw, mostBytes)
		if err != nil {
			closeRaw()
			return nil, fault.New(CodeOfInput(err), "%s: %w", Called(name), err)
		}
		return &input{r, closeRaw}, nil
	}
}

// Stream is an input of any length, with the number of stored bytes that were read.
type Stream struct {
	input
	Count atomic.Int64 // bytes
}

// Stream opens an input as Opener does, without a bound. size is the stored size of a file; 0 where it is not known.
func (t *Terminal) Stream(ctx context.Context, name string) (s *Stream, size int64, err error) {
	raw, closeRaw, err := t.raw(ctx, name)
	if err != nil {
		return nil, 0, fault.Wrap(fault.BadInput, err)
	}
	size = sizeOf(raw)
	s = &Stream{input: input{close: closeRaw}}
	if s.Reader, err = plain(&counted{raw, &s.Count}, streamed); err != nil {
		closeRaw()
		return nil, 0, fault.New(CodeOfInput(err), "%s: %w", Called(name), err)
	}
	return s, size, nil
}

// sizeOf is the size of a file, 0 for other readers.
func sizeOf(r io.Reader) int64 {
	if f, ok := r.(*os.File); ok {
		if info, err := f.Stat(); err == nil {
			return info.Size()
		}
	}
	return 0
}

// counted counts the bytes read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

// Read reads, and counts.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// raw opens the bytes as they are stored.
func (t *Terminal) raw(ctx context.Context, name string) (io.Reader, func() error, error) {
	if name == StandardInput {
		return until(ctx, t.In), func() error { return nil }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return until(ctx, f), f.Close, nil
	}
	return f, f.Close, nil
}

// until is r up to the end of ctx: a read that waits returns then, with the context's error.
func until(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err) // nil is the end
	}()
	return out
}

// Called is an input's name in a sentence.
func Called(name string) string {
	if name == StandardInput {
		return "standard input"
	}
	return name
}

// CodeOfInput is bad_input for everything but an interrupt.
func CodeOfInput(err error) fault.Code {
	if errors.Is(err, context.Canceled) {
		return fault.Cancelled
	}
	return fault.BadInput
}

// input is an open one.
type input struct {
	io.Reader
	close func() error
}

func (i *input) Close() error { return i.close() }

// plain decompresses gzip, recognised by its first bytes, and passes on other inputs. More bytes
// than most are an error with code bad_input. A stream may decompress to any multiple of its size,
// other inputs to zipped.Times.
func plain(r io.Reader, most int64) (io.Reader, error) {
	times := int64(zipped.Times)
	if most >= streamed {
		times = 0
	}
	in, compressed, err := zipped.Open(r, times)
	more := "it has more than "
	if compressed {
		more = "it decompresses to more than "
	}
	return &bounded{in, most, more + config.FormatBytes(float64(most))}, err
}

// bounded is a reader that fails after so many bytes.
type bounded struct {
	io.Reader
	left int64
	more string // the error if there are more
}

// Read reads at most one byte more than is left, to distinguish the end from too much.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, fault.New(fault.BadInput, "%s", b.more)
	}
	if err != nil && !errors.Is(err, io.EOF) && fault.CodeOf(err) != fault.BadInput {
		err = fmt.Errorf("reading: %w", err)
	}
	return n, err
}
