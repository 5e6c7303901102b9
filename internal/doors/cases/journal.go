package cases

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Journal is an output file that an ended run left, and the next goes on with: its complete rows
// count, a torn last one is cut off. Beside it, in FILE.run, stands the identity of the run, as
// long as it is not finished.
type Journal struct {
	file  *os.File
	run   *os.File
	done  *csv.Reader // the rows that are there; nil once they have been passed
	cells int
	end   int64 // of the last complete row
	size  int64
	rows  int64
}

// runFile is the content of FILE.run.
type runFile struct {
	Run string `json:"run"` // digest of everything that rows depend on, but for the rows of the input
}

// OpenJournal opens an output file, or makes it, for the run with a digest. A file that is there must be of the same unfinished run.
// Errors carry bad_input where it is not, and infrastructure.
func OpenJournal(path, run string) (*Journal, error) {
	j := &Journal{}
	if err := j.open(path, run); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// open opens both files.
func (j *Journal) open(path, run string) error {
	info, statErr := os.Stat(path)
	_, runErr := os.Stat(path + ".run")
	switch {
	case statErr == nil && !info.Mode().IsRegular():
		return fault.New(fault.BadInput, "%s: no regular file: leave -o out to write to standard output", path)
	case statErr == nil && info.Size() > 0 && errors.Is(runErr, os.ErrNotExist):
		return fault.New(fault.BadInput, "%s is there already, and not of an unfinished run: remove it, or name another", path)
	}
	var err error
	if j.run, err = os.OpenFile(path+".run", os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	if err := lock(j.run); err != nil {
		return fault.New(fault.BadInput, "%s is being written by another process", path)
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	if info, err = j.file.Stat(); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	j.size = info.Size()
	if j.size == 0 {
		b, err := json.Marshal(runFile{run})
		if err == nil {
			_, err = j.run.WriteAt(append(b, '\n'), 0)
		}
		if err == nil {
			err = j.run.Truncate(int64(len(b)) + 1)
		}
		return fault.Wrap(fault.Infrastructure, err)
	}
	var was runFile
	if err := json.NewDecoder(j.run).Decode(&was); err != nil {
		return fault.New(fault.BadInput, "%s.run: %w", path, err)
	}
	if was.Run != run {
		return fault.New(fault.BadInput,
			"%s is of an unfinished run with another model, other targets, columns or settings: remove it and %s.run, or name another",
			path, path)
	}
	j.done = csv.NewReader(j.file)
	j.done.FieldsPerRecord = -1
	j.done.ReuseRecord = true
	return nil
}

// begin returns whether the header is there already.
func (j *Journal) begin(header []string) (bool, error) {
	j.cells = len(header)
	row, err := j.next()
	if err != nil || row == nil {
		return false, err
	}
	if !slices.Equal(row, header) {
		return false, fault.New(fault.BadInput, "%s: its header is not of this run", j.file.Name())
	}
	return true, nil
}

// next returns the next row that is there, nil after the last complete one: then the file is cut, and later rows are appended.
func (j *Journal) next() ([]string, error) {
	if j.done == nil {
		return nil, nil
	}
	row, err := j.done.Read()
	at := j.done.InputOffset()
	var parse *csv.ParseError
	switch {
	case err != nil && err != io.EOF && !errors.As(err, &parse):
		return nil, fault.Wrap(fault.Infrastructure, err)
	case err == nil && len(row) == j.cells && j.ended(at):
		j.end = at
		j.rows++
		return row, nil
	case at < j.size:
		return nil, fault.New(fault.BadInput, "%s: row %d is not of this run", j.file.Name(), j.rows)
	}
	j.done = nil
	if err = j.file.Truncate(j.end); err == nil {
		_, err = j.file.Seek(j.end, io.SeekStart)
	}
	return nil, fault.Wrap(fault.Infrastructure, err)
}

// ended reports whether the row that ends at an offset ends with its line.
func (j *Journal) ended(at int64) bool {
	var b [1]byte
	_, err := j.file.ReadAt(b[:], at-1)
	return err == nil && b[0] == '\n'
}

// pass skips a case whose row is there; false says that it has to be written. Rows must belong to the cases.
func (j *Journal) pass(t *Table, c *Case) (bool, error) {
	row, err := j.next()
	if err != nil || row == nil {
		return false, err
	}
	if !t.same(row, c) {
		return false, fault.New(fault.BadInput, "%s: row %d does not belong to row %d of the input: the input is another one",
			j.file.Name(), j.rows-1, c.Number)
	}
	return true, nil
}

// finish ends the run: all rows are there.
func (j *Journal) finish() error {
	row, err := j.next()
	if err != nil {
		return err
	}
	if row != nil {
		return fault.New(fault.BadInput, "%s has more rows than the input", j.file.Name())
	}
	if err := j.file.Sync(); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	return fault.Wrap(fault.Infrastructure, os.Remove(j.run.Name()))
}

// Write appends to the file.
func (j *Journal) Write(b []byte) (int, error) {
	n, err := j.file.Write(b)
	if err != nil {
		err = fault.New(fault.Infrastructure, "writing: %w", err)
	}
	return n, err
}

// Close closes the file; written rows stay.
func (j *Journal) Close() {
	for _, f := range []*os.File{j.file, j.run} {
		if f != nil {
			f.Close()
		}
	}
}
