package wire

import (
	"crypto/sha256"
	"strconv"

	"github.com/basetensor/basetensor/internal/form"
)

// Prefix begins every subject of version 1.
const Prefix = "btn.v1."

// Lanes is the number of lanes: a consumer can select by subject only, so tenants are spread over
// lanes from the start.
const Lanes = 16

// InferSubject is where a request gets its answer as the reply.
const InferSubject = Prefix + "infer"

// Lane returns the lane of a tenant, 0 ≤ lane < Lanes: the first byte of its name's SHA-256, modulo
// Lanes. (The low bits of a multiplicative hash such as FNV depend on the low bits of the letters
// only: names fall into few lanes.)
func Lane(tenant string) int {
	sum := sha256.Sum256([]byte(tenant))
	return int(sum[0]) % Lanes
}

// ModelSubject returns the subject on which a request is published. The job's id must be valid: see ValidJob.
func ModelSubject(lane int, job string) string {
	return Prefix + "model." + strconv.Itoa(lane) + "." + job
}

// AnswerSubject returns the subject on which a job's answer is stored.
func AnswerSubject(job string) string { return Prefix + "answer." + job }

// DoneSubject returns the subject on which a job's answer is republished when it is stored.
func DoneSubject(job string) string { return Prefix + "done." + job }

// ProgressSubject returns the subject of a job's progress.
func ProgressSubject(job string) string { return Prefix + "progress." + job }

// CancelSubject returns the subject on which a job is cancelled.
func CancelSubject(job string) string { return Prefix + "cancel." + job }

// ValidJob reports whether id is a job's id: [A-Za-z0-9_-]{1,64}, or an owner's name, a dot and such an id. Further
// dots and wildcards would break the subjects.
func ValidJob(id string) bool { return form.IsJob(id) }
