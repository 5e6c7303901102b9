package client

import (
	"errors"
	"slices"
	"testing"
)

// TestReasonsHaveToLast: of looks at a lane a reason is told once it has lasted, and again only after another one.
func TestReasonsHaveToLast(t *testing.T) {
	stage, lane := errors.New("no stage"), errors.New("no lane")
	for _, c := range []struct {
		looks []error
		want  []error
	}{
		{[]error{stage}, nil}, // a worker that was late once
		{[]error{stage, nil, stage}, nil},
		{[]error{stage, stage, stage, stage}, []error{stage}},
		{[]error{lane, lane, nil, lane, lane}, nil},
		{[]error{lane, lane, lane, lane}, []error{lane}},
		{[]error{stage, lane, lane, stage, lane}, nil},
		{[]error{stage, stage, lane, lane, lane, stage, stage}, []error{stage, lane, stage}},
	} {
		var told []error
		q := &waitWatcher{tell: func(err error) { told = append(told, err) }}
		for _, err := range c.looks {
			q.noteLane(err == stage, err)
		}
		if !slices.Equal(told, c.want) {
			t.Errorf("%v: told %v, want %v", c.looks, told, c.want)
		}
	}
}
