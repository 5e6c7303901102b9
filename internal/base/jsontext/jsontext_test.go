package jsontext

import (
	"encoding/json"
	"errors"
	"testing"
)

// shape has a field of each kind.
type shape struct {
	Text   string  `json:"text"`
	Number float64 `json:"number"`
	Count  *uint8  `json:"count"`
	Yes    bool    `json:"yes"`
	List   []inner `json:"list"`
}

type inner struct {
	Deep json.Number `json:"deep"`
}

// TestWords: errors are in words of JSON, with line and field.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"text": 7}`:                  "field text: a number, where a string is needed",
		"{\n\"number\": \"x\"}":        "line 2: field number: a string, where a number is needed",
		`{"count": 300}`:               "field count: 300, where an integer in range is needed",
		`{"yes": []}`:                  "field yes: a list, where true or false is needed",
		`{"list": {}}`:                 "field list: an object, where a list is needed",
		`{"list": [{"deep": "x"}]}`:    "a number is needed",
		`{"list": [{"shallow": "x"}]}`: `unknown field "shallow"`,
		`[]`:                           "a list, where an object is needed",
		"{\n\"text\": ":                "line 2: it ends in the middle",
		``:                             "it ends in the middle",
		`{"text" 7}`:                   "invalid character '7' after object key",
		"{}\n{}":                       "line 2: something follows the end of the JSON value",
	} {
		if err := Strict([]byte(text), &shape{}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Strict([]byte(`{"text": "x", "list": [{"deep": 7}]}`), &shape{}); err != nil {
		t.Error(err)
	}
	if own := errors.New("own"); Explain(nil, own) != own || Explain(nil, nil) != nil {
		t.Error("another error is changed")
	}
}
