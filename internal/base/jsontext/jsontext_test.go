package jsontext

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// shape has a field of each kind.
type shape struct {
	Text   string  `json:"text"`
	Number float64 `json:"number"`
	Count  *uint8  `json:"count"`
	Yes    bool    `json:"yes"`
	List   []inner `json:"list"`
	Embedded
}

// Embedded has fields that are those of shape, too.
type Embedded struct {
	Flag bool `json:"flag"`
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
		`{"flag": 1}`:                  "field flag: a number, where true or false is needed",
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

// TestKeys: a key that comes twice, or differs from a field's only in case, is named with its place. Keys of maps may differ in case.
func TestKeys(t *testing.T) {
	type outer struct {
		shape
		ByName map[string]inner `json:"by_name"`
		Raw    json.RawMessage  `json:"raw"`
	}
	for text, want := range map[string]string{
		`{"text": "a", "text": "b"}`:                              `the key "text" comes twice`,
		`{"text": "a", "Text": "b"}`:                              `the key "Text" is written "text"`,
		`{"TEXT": "a"}`:                                           `the key "TEXT" is written "text"`,
		"{\"list\": [{}, {\"deep\": 1,\n\"deep\": 2}]}":           `line 2: list[1]: the key "deep" comes twice`,
		`{"by_name": {"a": {}, "a": {}}}`:                         `by_name: the key "a" comes twice`,
		`{"by_name": {"a": {"Deep": 1}}}`:                         `by_name.a: the key "Deep" is written "deep"`,
		`{"te\u0078t": "a", "text": "b"}`:                         `the key "text" comes twice`,
		`{"text": "a", "by_name": {"a": {}, "A": {}}, "raw": {}}`: "",
	} {
		err := Strict([]byte(text), &outer{})
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := CheckUniqueKeys([]byte(`{"a": [{"b": 1, "b": 2}]}`)); err == nil || err.Error() != `a[0]: the key "b" comes twice` {
		t.Error(err)
	}
	deep := strings.Repeat("[", 1<<20)
	if err := Strict([]byte(deep), &outer{}); err == nil {
		t.Error("a text of brackets is read")
	}
	if err := CheckUniqueKeys([]byte(deep)); err != nil {
		t.Errorf("no JSON, and none of its keys: %v", err)
	}
}
