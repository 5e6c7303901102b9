package message

import (
	"reflect"
	"strings"
	"testing"
)

func TestCost(t *testing.T) {
	for value, want := range map[string]float64{"0": 0, "12": 12, FormatCost(123456): 123000, "2.5e+09": 2.5e9} {
		if got, says := Cost(map[string][]string{HeaderCost: {value}}); !says || got != want {
			t.Errorf("%q costs %v (%v), want %v", value, got, says, want)
		}
	}
	for _, value := range []string{"", "-1", "NaN", "+Inf", "1e400", "much"} {
		if got, says := Cost(map[string][]string{HeaderCost: {value}}); says {
			t.Errorf("%q costs %v", value, got)
		}
	}
	if _, says := Cost(nil); says {
		t.Error("no header, and a cost")
	}
}

func TestWork(t *testing.T) {
	value := FormatWork("", "a", Work{Seconds: 0.00125})
	value = FormatWork(value, "b", Work{Seconds: 2, Flops: 3.5e9})
	want := map[string]Work{"a": {Seconds: 0.00125}, "b": {Seconds: 2, Flops: 3.5e9}}
	if got := ParseWork(value); !reflect.DeepEqual(got, want) {
		t.Errorf("%q is %v, want %v", value, got, want)
	}
	for _, bad := range []string{"a", "a 1", "a x 1", "a NaN 1", "a -1 1", "a 1e300 1", "a 1 1 1", strings.Repeat(value+";", 20)} {
		if got := ParseWork(bad); len(got) != 0 {
			t.Errorf("%q is %v", bad, got)
		}
	}
	if got := ParseWork("nonsense; b 2 3"); !reflect.DeepEqual(got, map[string]Work{"b": {2, 3}}) {
		t.Errorf("beside nonsense: %v", got)
	}
}
