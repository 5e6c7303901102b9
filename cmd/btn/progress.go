package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// progressBar draws the state of a job on one line of a terminal. A nil *progressBar draws nothing.
type progressBar struct {
	out   io.Writer
	drawn bool
}

// newProgressBar returns a bar if w is a terminal, else nil: nothing of the kind when piped.
func newProgressBar(w io.Writer) *progressBar {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progressBar{out: w}
}

const barWidth = 30

// update draws the stage and the number of its finished chunks.
func (p *progressBar) update(stage string, done, total int) {
	if p == nil {
		return
	}
	p.drawn = true
	if total <= 0 {
		fmt.Fprintf(p.out, "\r\x1b[K%s …", stage)
		return
	}
	filled := min(barWidth, barWidth*done/total)
	fmt.Fprintf(p.out, "\r\x1b[K%s [%s%s] %d/%d",
		stage, strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), done, total)
}

// share draws the finished part of a total, 0 for one that is not known, after a text.
func (p *progressBar) share(text string, done, total float64) {
	if p == nil {
		return
	}
	p.drawn = true
	if total <= 0 {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	part := min(1, done/total)
	filled := int(part * barWidth)
	fmt.Fprintf(p.out, "\r\x1b[K[%s%s] %.0f %% %s",
		strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), 100*part, text)
}

// clear removes the bar.
func (p *progressBar) clear() {
	if p != nil && p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.drawn = false
	}
}
