package stage

// Stage names, as they appear in errors, logs, metrics and timings.
const (
	StageReparam   = "reparam-worker"
	StageLearn     = "learn-worker"
	StageContract  = "contract-worker"
	StageAggregate = "aggregator"
)

// Names returns all four, in the order in which a job passes them.
func Names() []string { return []string{StageReparam, StageLearn, StageContract, StageAggregate} }
