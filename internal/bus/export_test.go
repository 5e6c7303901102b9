package bus

import "time"

// GetWithin changes the bound of gets whose context has no end, until restore is called.
func GetWithin(d time.Duration) (restore func()) {
	before := getWithin
	getWithin = d
	return func() { getWithin = before }
}
