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
	// MaxRatio is the ratio of decompressed to compressed bytes up to which an input is read, beyond the first FreeBytes bytes. Tables of
	// numbers reach some 50; gzip goes up to 1,032.
	MaxRatio = 100
	// FreeBytes is the number of decompressed bytes allowed at any ratio.
	FreeBytes = 64 << 20
)

// Open returns the content of r, decompressed if it begins as gzip does. Reading it fails with code bad_input after more bytes than
// FreeBytes and times the compressed ones. If times is 0 there is no bound.
func Open(r io.Reader, times int64) (plain io.Reader, isCompressed bool, err error) {
	return openWithSpare(r, times, FreeBytes)
}

// openWithSpare returns the content of r, decompressed if it begins as gzip does. If times is not 0, reading it fails after more bytes than
// spare and times the compressed ones.
func openWithSpare(r io.Reader, times, spare int64) (plain io.Reader, isCompressed bool, err error) {
	compressed := &countingReader{Reader: r}
	buffered := bufio.NewReaderSize(compressed, 1<<16)
	begin, err := buffered.Peek(3) // as long as gzipMagic
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	gzipMagic := []byte{0x1f, 0x8b, 8} // two bytes, and the method deflate
	if !bytes.Equal(begin, gzipMagic) {
		return buffered, false, nil
	}
	unzipped, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, true, fault.Wrap(fault.BadInput, err)
	}
	if times == 0 {
		return unzipped, true, nil
	}
	return &boundedReader{plain: unzipped, compressed: compressed, times: times, spare: spare}, true, nil
}

// countingReader counts the bytes read through it.
type countingReader struct {
	io.Reader
	count int64
}

// Read reads from the wrapped reader and counts the bytes.
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.count += int64(n)
	return n, err
}

// boundedReader is a decompressed input. Reading it fails after more than spare + times · compressed bytes.
type boundedReader struct {
	plain        io.Reader
	compressed   *countingReader // below plain
	times, spare int64
	count        int64 // decompressed bytes read
}

// Read reads decompressed bytes. It returns an error if too many were read already for the compressed bytes that they took.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.count > b.spare+b.times*b.compressed.count {
		return 0, fault.New(fault.BadInput,
			"it decompresses to more than %v MiB and %d times its size: decompress it first where that is right", float64(b.spare)/(1<<20), b.times)
	}
	n, err := b.plain.Read(p)
	b.count += int64(n)
	return n, err
}
