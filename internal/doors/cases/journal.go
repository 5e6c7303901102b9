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

// Journal is an output file that a run goes on with after an earlier one was interrupted: its complete rows stay, and a
// torn last row is cut off. FILE.run beside it has the identity of the run as long as it is not finished.
type Journal struct {
	file     *os.File    // the output
	run      *os.File    // FILE.run
	existing *csv.Reader // reads the rows that the file had; nil once all of them were read
	cells    int         // of a row
	end      int64       // the offset behind the last complete row that was read
	size     int64       // of the file when it was opened
	rows     int64       // that were read, with the header
}

// runFile is the content of FILE.run.
type runFile struct {
	Run string `json:"run"` // digest of everything that rows depend on, but for the rows of the input
}

// OpenJournal opens an output file, or makes it, for a run with this digest. An existing file has to be of the same
// run, and unfinished, else the error carries bad_input. Other errors carry infrastructure.
func OpenJournal(path, run string) (*Journal, error) {
	j := &Journal{}
	if err := j.open(path, run); err != nil {
		j.Close()
		return nil, err
	}
	return j, nil
}

// open opens the output and FILE.run, and writes or checks the identity of the run.
func (j *Journal) open(path, run string) error {
	if err := j.openFiles(path); err != nil {
		return err
	}
	info, err := j.file.Stat()
	if err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	j.size = info.Size()
	if j.size == 0 {
		return j.writeIdentity(run)
	}
	if err := j.checkIdentity(path, run); err != nil {
		return err
	}
	j.existing = csv.NewReader(j.file)
	j.existing.FieldsPerRecord = -1 // any number: nextRow checks it
	j.existing.ReuseRecord = true
	return nil
}

// openFiles opens the output and FILE.run, or makes them, and keeps other processes from FILE.run by a lock. An output with rows must
// have a FILE.run already.
func (j *Journal) openFiles(path string) (err error) {
	info, statErr := os.Stat(path)
	_, runErr := os.Stat(path + ".run")
	switch {
	case statErr == nil && !info.Mode().IsRegular():
		return fault.New(fault.BadInput, "%s: no regular file: leave -o out to write to standard output", path)
	case statErr == nil && info.Size() > 0 && errors.Is(runErr, os.ErrNotExist):
		return fault.New(fault.BadInput, "%s is there already, and not of an unfinished run: remove it, or name another", path)
	}
	if j.run, err = os.OpenFile(path+".run", os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	if err := lock(j.run); err != nil {
		return fault.New(fault.BadInput, "%s is being written by another process", path)
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	return nil
}

// writeIdentity writes the digest of the run to FILE.run, in the place of anything there.
func (j *Journal) writeIdentity(run string) error {
	b, err := json.Marshal(runFile{run})
	if err == nil {
		_, err = j.run.WriteAt(append(b, '\n'), 0)
	}
	if err == nil {
		err = j.run.Truncate(int64(len(b)) + 1) // an earlier digest may have been longer
	}
	return fault.Wrap(fault.Infrastructure, err)
}

// checkIdentity returns an error if FILE.run has another digest than that of the run.
func (j *Journal) checkIdentity(path, run string) error {
	var earlier runFile
	if err := json.NewDecoder(j.run).Decode(&earlier); err != nil {
		return fault.New(fault.BadInput, "%s.run: %w", path, err)
	}
	if earlier.Run != run {
		return fault.New(fault.BadInput,
			"%s is of an unfinished run with another model, other targets, columns or settings: remove it and %s.run, or name another",
			path, path)
	}
	return nil
}

// beginRows reports whether the file has the header already. Another header is an error. It is called before nextRow, which needs the
// header's number of cells.
func (j *Journal) beginRows(header []string) (bool, error) {
	j.cells = len(header)
	row, err := j.nextRow()
	if err != nil || row == nil {
		return false, err
	}
	if !slices.Equal(row, header) {
		return false, fault.New(fault.BadInput, "%s: its header is not of this run", j.file.Name())
	}
	return true, nil
}

// nextRow returns the next row that the file has. After the last complete row it returns nil, and the file is cut
// there, so that later rows are appended.
func (j *Journal) nextRow() ([]string, error) {
	if j.existing == nil {
		return nil, nil
	}
	row, err := j.existing.Read()
	end := j.existing.InputOffset()
	var parse *csv.ParseError
	isComplete := err == nil && len(row) == j.cells && j.endsLine(end)
	switch {
	case err != nil && err != io.EOF && !errors.As(err, &parse): // it could not be read
		return nil, fault.Wrap(fault.Infrastructure, err)
	case isComplete:
		j.end = end
		j.rows++
		return row, nil
	case end < j.size: // a wrong row that others follow is not torn
		return nil, fault.New(fault.BadInput, "%s: row %d is not of this run", j.file.Name(), j.rows)
	}

	// the end of the file, or a torn row there: cut it off, and append from here on
	j.existing = nil
	if err = j.file.Truncate(j.end); err == nil {
		_, err = j.file.Seek(j.end, io.SeekStart)
	}
	return nil, fault.Wrap(fault.Infrastructure, err)
}

// endsLine reports whether the byte before an offset is the end of a line.
func (j *Journal) endsLine(offset int64) bool {
	var b [1]byte
	_, err := j.file.ReadAt(b[:], offset-1)
	return err == nil && b[0] == '\n'
}

// skipCase reports whether the file has the row of a case already. A row of another case is an error.
func (j *Journal) skipCase(t *Table, c *Case) (bool, error) {
	row, err := j.nextRow()
	if err != nil || row == nil {
		return false, err
	}
	if !t.isRowOf(row, c) {
		return false, fault.New(fault.BadInput, "%s: row %d does not belong to row %d of the input: the input is another one",
			j.file.Name(), j.rows-1, c.Number)
	}
	return true, nil
}

// finish ends the run, whose rows are all there: it removes FILE.run.
func (j *Journal) finish() error {
	row, err := j.nextRow()
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
