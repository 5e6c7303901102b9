package costs

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"github.com/basetensor/basetensor/internal/models/words"
	"github.com/basetensor/basetensor/pkg/uai"
)

// The kinds of tokens.
type kind int

const (
	endToken   kind = iota // the end of the file, or an error
	openToken              // { or [
	closeToken             // } or ]
	wordToken              // a word, between quotes or not
)

// lexer reads the tokens of a CFN file. Commas and colons separate as blanks do, and a line that begins with # is a
// comment.
type lexer struct {
	in    *words.Scanner
	kind  kind   // of the current token
	text  string // of the current token
	line  int    // of the current token
	isKey bool   // whether a colon follows the current word
}

// advance reads the next token into kind, text, line and isKey. At the end of the file, or after an error, kind is
// endToken.
func (l *lexer) advance() {
	l.kind, l.text, l.isKey = endToken, "", false
	for {
		b, ok := l.in.Peek()
		if !ok {
			l.in.TakeByte() // keeps an error of the reader
			return
		}
		if words.IsSpace(b) || b == ',' || b == ':' {
			l.in.TakeByte()
			continue
		}
		l.in.BeginWord()
		l.line = l.in.Line
		switch {
		case b == '#' && l.in.OpensLine:
			l.skipComment()
			continue
		case b == '{' || b == '[':
			l.kind = openToken
		case b == '}' || b == ']':
			l.kind = closeToken
		case b == '"':
			l.readQuoted()
			l.noteColon()
			return
		default:
			l.readBare()
			l.noteColon()
			return
		}
		l.text = string(b)
		l.in.TakeByte()
		return
	}
}

// skipComment passes the rest of the line.
func (l *lexer) skipComment() {
	for {
		if b, ok := l.in.TakeByte(); !ok || b == '\n' {
			return
		}
	}
}

// readQuoted reads a word between quotes.
func (l *lexer) readQuoted() {
	l.in.TakeByte()
	l.readUntil(func(b byte) bool { return b == '"' })
	if _, ok := l.in.TakeByte(); !ok {
		l.in.FailInput(uai.ErrSyntax, "a quote without end")
	}
}

// readBare reads a word without quotes.
func (l *lexer) readBare() {
	l.readUntil(func(b byte) bool {
		return words.IsSpace(b) || b == ',' || b == ':' || b == '{' || b == '}' || b == '[' || b == ']' || b == '"'
	})
}

// readUntil reads a word up to the first byte for which isEnd is true, which stays unread.
func (l *lexer) readUntil(isEnd func(byte) bool) {
	var word []byte
	for {
		b, ok := l.in.Peek()
		if !ok || isEnd(b) {
			break
		}
		if word = append(word, b); len(word) > words.MaxWord {
			l.in.FailInput(uai.ErrSyntax, "a word of more than %d characters: %q…", words.MaxWord, word[:20])
			return
		}
		l.in.TakeByte()
	}
	l.kind, l.text = wordToken, string(word)
	if !utf8.Valid(word) { // a name in Latin-1; the other words of the file may be UTF-8
		l.text, _ = charmap.ISO8859_1.NewDecoder().String(l.text) // of any bytes
	}
}

// noteColon sets isKey: whether a colon follows the word, after blanks if any.
func (l *lexer) noteColon() {
	b, ok := l.in.Peek()
	for ok && (b == ' ' || b == '\t') {
		l.in.TakeByte()
		b, ok = l.in.Peek()
	}
	l.isKey = b == ':'
}
