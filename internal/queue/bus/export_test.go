package bus

import "time"

// GetWithin changes the time limit of gets without a deadline, until restore is called.
func GetWithin(d time.Duration) (restore func()) {
	before := getTimeout
	getTimeout = d
	return func() { getTimeout = before }
}

// For tests of the error of a publish.
var (
	PublishError = publishError
	ErrTaken     = errTaken
)
