// Package zipped reads inputs that may be compressed with gzip, and stops early at those that decompress to very much.
package zipped

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/basetensor/basetensor/pkg/fault"
)

const (
	// Times is the ratio of decompressed to compressed bytes up to which an input is read, beyond the first Spare bytes. Tables of
	// numbers reach some 50; gzip goes up to 1,032.
	Times = 100
	// Spare is the number of decompressed bytes allowed at any ratio.
	Spare = 64 << 20
)

// Open returns the content of r, decompressed if it begins as gzip does. More decompressed bytes than Spare and times the compressed
// ones are an error with code bad_input; with times 0 there is no bound.
func Open(r io.Reader, times int64) (plain io.Reader, compressed bool, err error) {
	return open(r, times, Spare)
}

func open(r io.Reader, times, spare int64) (plain io.Reader, compressed bool, err error) {
	in := &counter{Reader: r}
	buffered := bufio.NewReaderSize(in, 1<<16)
	magic, err := buffered.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b, 8}) {
		return buffered, false, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, true, fault.Wrap(fault.BadInput, err)
	}
	if times == 0 {
		return unzipped, true, nil
	}
	return &watched{from: unzipped, in: in, times: times, spare: spare}, true, nil
}

// counter counts the bytes read.
type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// watched is a decompressed input that fails where its ratio is too large.
type watched struct {
	from         io.Reader
	in           *counter
	times, spare int64
	at           int64
}

func (w *watched) Read(p []byte) (int, error) {
	if w.at > w.spare+w.times*w.in.n {
		return 0, fault.New(fault.BadInput,
			"it decompresses to more than %v MiB and %d times its size: decompress it first where that is right", float64(w.spare)/(1<<20), w.times)
	}
	n, err := w.from.Read(p)
	w.at += int64(n)
	return n, err
}
