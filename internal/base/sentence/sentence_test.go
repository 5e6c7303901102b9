package sentence

import "testing"

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{
			"",
			"",
		},
		{
			"model.settings.bond: wire: invalid message: -1 is not from 0 to 1048576",
			"settings.bond: -1 is not from 0 to 1048576",
		},
		{
			"model.queries[1].evidence.h[0]: wire: invalid message: variable 0 of 3",
			"queries[1].evidence.h[0]: variable 0 of 3",
		},
		{
			"model.deadline_ms: wire: malformed message: at byte 7: a string",
			"deadline_ms: at byte 7: a string",
		},
		{
			`client: bus: not found: no registered model is called "nope"`,
			`no registered model is called "nope"`,
		},
		{
			"client: the job's id is taken by another request: a",
			"the job's id is taken by another request: a",
		},
		{
			"pipeline: the deadline of 1 ms passed",
			"the deadline of 1 ms passed",
		},
		{
			"bus: not found",
			"not found",
		},
		{
			"model: modeljson: version of the format: 2, this program reads 1",
			"model: version of the format: 2, this program reads 1",
		},
		{
			`text: bif: line 2, column 1: "x" is found where '{' is needed`,
			`text: bif: line 2, column 1: "x" is found where '{' is needed`,
		},
		{
			`queries[0].evidence: no variable "client: bus: x"`,
			`queries[0].evidence: no variable "client: bus: x"`,
		},
		{
			"sumproduct: over the memory budget: exact elimination needs 9 bytes of tables",
			"over the memory budget: exact elimination needs 9 bytes of tables",
		},
		{
			"plan: assignments are found exactly only",
			"assignments are found exactly only",
		},
		{
			"exact: out of reach: no order was found",
			"exact: out of reach: no order was found",
		},
		{
			"wire: message too large: 9 bytes, at most 8",
			"message too large: 9 bytes, at most 8",
		},
		{
			"a deadline of 9 ms, jobs are kept for 1s",
			"a deadline of 9 ms, jobs are kept for 1s",
		},
		{
			"pipeline: contract-worker: the ceiling of 1h for one message is reached",
			"contract-worker: the ceiling of 1h for one message is reached",
		},
		{
			"model: modeljson: factor 0 (line 1): tensor: wrong shape: 1 mode, needs 2",
			"model: factor 0 (line 1): tensor: wrong shape: 1 mode, needs 2",
		},
		{
			"client: job \"a b\" is not [A-Za-z0-9_-]{1,64}",
			"job \"a b\" is not [A-Za-z0-9_-]{1,64}",
		},
		{
			"pipeline: the stored request cannot be read any more: wire: unknown version",
			"the stored request cannot be read any more: wire: unknown version",
		},
	} {
		if got := Text(c.text); got != c.want {
			t.Errorf("%q is %q, want %q", c.text, got, c.want)
		}
	}
}
