package gateway

// Requests for answers: in JSON, or a model file as the body with the query in the address.

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// readInfer reads the body of a request for answers: JSON, or a model file with the query in the address.
func (c *call) readInfer() (in Infer, err error) {
	text := bytes.TrimSpace(c.body)
	kind, _, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	isJSON := err == nil && kind == "application/json"

	// a query in JSON
	isQuery := !isModel(text) && (isJSON || len(text) == 0 || text[0] == '{')
	if isQuery {
		if !isJSON {
			return in, refuse(http.StatusUnsupportedMediaType, fault.BadInput,
				"the content type of a request has to be application/json, not %.80q; a body in another one is a model file",
				c.request.Header.Get("Content-Type"))
		}
		if err := c.reserveBytes(int64(countElements(c.body)) * bytesOfElement); err != nil {
			return in, err
		}
		if err := jsontext.Strict(c.body, &in); err != nil {
			return in, badRequest("body: %w", err)
		}
		return in, in.takeModelName()
	}

	// a model file
	in.Text = string(c.body)
	return in, in.setFromAddress(c.request.URL.Query())
}

// bytesOfElement is what the longest element of a list takes in memory, a query, beside its text: twice its size while the list grows.
var bytesOfElement = 2 * int64(reflect.TypeFor[Query]().Size())

// countElements counts the elements of all lists that are fields of a JSON object. Their memory is bounded by their
// number, since a query {} takes two hundred times its text.
func countElements(text []byte) (n int) {
	depth := 0        // brackets and braces that are open; 2 within a field of the object
	isInList := false // whether that field is a list
	isInQuotes := false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case isInQuotes && b == '\\':
			i++ // the next byte ends no quotes
		case b == '"':
			isInQuotes = !isInQuotes
		case isInQuotes:
		case b == '[' || b == '{':
			if depth++; depth == 2 {
				isInList = b == '['
			}
			if depth == 2 && isInList {
				n++ // the first element
			}
		case b == ']' || b == '}':
			depth--
		case b == ',' && depth == 2 && isInList:
			n++
		}
	}
	return n
}

// isModel reports whether a text is a model: JSON with a basetensor_model, or no JSON at all.
func isModel(text []byte) bool {
	if len(text) == 0 || text[0] == '[' || text[0] == '"' {
		return false
	}
	if text[0] != '{' {
		return !json.Valid(text)
	}
	var head struct {
		Version json.RawMessage `json:"basetensor_model"`
	}
	return json.Unmarshal(text, &head) == nil && head.Version != nil
}

// takeModelName takes a string in the place of a model as the name of a registered model.
func (in *Infer) takeModelName() error {
	if len(in.Model) == 0 || in.Model[0] != '"' {
		return nil
	}
	if in.ModelName != "" {
		return badRequest("model and model_name both name a registered model: one is enough")
	}
	err := json.Unmarshal(in.Model, &in.ModelName)
	in.Model = nil
	if err == nil && in.ModelName == "" {
		return badRequest("model: the name of a registered model is empty")
	}
	return err
}

// parameters are the parameters, beside evidence, in the address of a request with a model file as its body.
var parameters = map[string]func(in *Infer, value string) error{
	"format": func(in *Infer, value string) error { in.Format = value; return nil },
	"job":    func(in *Infer, value string) error { in.Job = value; return nil },
	"tenant": func(in *Infer, value string) error { in.Tenant = value; return nil },
	"method": func(in *Infer, value string) error { in.Settings.Method = query.Method(value); return nil },
	"target": func(in *Infer, value string) error {
		in.Targets = append(in.Targets, named.Variable(value))
		return nil
	},
	"marginals": func(in *Infer, value string) (err error) { in.Marginals, err = parseBool(value); return err },
	"mpe":       func(in *Infer, value string) (err error) { in.MPE, err = parseBool(value); return err },
	"best": func(in *Infer, value string) (err error) {
		if in.Best, err = strconv.Atoi(value); err != nil {
			return errors.New("a whole number is needed")
		}
		return nil
	},
	"async": func(in *Infer, value string) (err error) { in.Async, err = parseBool(value); return err },
}

// parseBool reads true or false, as strconv.ParseBool does.
func parseBool(value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		err = errors.New("true or false is needed")
	}
	return b, err
}

// setFromAddress sets a query from the parameters in the address. It asks for all posteriors, unless they have target
// or mpe. The parameter evidence may be there several times; parameters has the functions that set the others.
func (in *Infer) setFromAddress(given url.Values) error {
	in.Marginals = !given.Has("target") && !given.Has("mpe")
	evidence := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set := parameters[name]
		if set == nil && name != "evidence" {
			return badRequest("the address has %.80q: a model file as the body takes evidence, %s", name,
				strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
		}
		for _, value := range given[name] {
			variable, state, ok := strings.Cut(value, "=") // if it is evidence
			_, isObserved := evidence[variable]
			switch {
			case set != nil:
				if err := set(in, value); err != nil {
					return badRequest("%s is %.80q: %w", name, value, err)
				}
			case !ok || variable == "":
				return badRequest("evidence is %.80q: VARIABLE=VALUE is needed, once for each", value)
			case isObserved:
				return badRequest("evidence: %.80q is observed twice", variable)
			default:
				evidence[variable] = state
			}
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	b, err := json.Marshal(evidence)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	return json.Unmarshal(b, &in.Evidence)
}
