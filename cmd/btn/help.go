package main

// Help texts that are too long for a struct tag.

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/query"
)

// helpTexts are the texts, and the defaults, that tags name as ${name}.
var helpTexts = kong.Vars{
	"default_accuracy": fmt.Sprint(query.DefaultAccuracy),
	"default_memory":   config.Size(query.DefaultMemory).String(),
	"generate_ising": "An Ising model: E(x) = Σ J x_i x_j + Σ h x_i, x = ±1 (value 0 is −1), h ~ U(−0.1, 0.1), J ~ U(−Δ, Δ) or its absolute " +
		"value.",
	"generate_constraints": "Random constraints: some entries of every factor are 0, for one assignment of all variables none. " +
		"Without more flags clauses of three literals.",
	"generate_random": "Random positive factors of any arity over variables of mixed domains; ln of every entry ~ U(−strength, strength).",
	"generate_leaves": "A balanced binary tree with random tables, and the factor that a third to a half of its leaves are 1. In the " +
		"native format.",
	"generate_latent": "Tables of all pairs of n variables that are functions of few linear statistics, which the file does not say: " +
		"e^(Σ λ s²), with hidden signs, patterns or groups, and with a chain or a grid of pairs that deviate; tables of more variables, " +
		"and of hidden ones.",
	"latent_families": strings.Join(generate.LatentFamilies(), ", "),
	"generate_potts": "Curie–Potts models: symmetric factors over groups of variables of several values, in random fields, that may " +
		"overlap. In the native format.",
	"generate_friends": "Friends and smokers: smoking and cancer among n people, their friendships summed " +
		"out, which leaves one symmetric factor over smoking. In the native format.",
	"infer_nats":    "Submit to the workers on this NATS server; without it everything runs in this process.",
	"infer_verbose": "Of a model with names: print the method of the answer, too. Of others it is always printed.",
	"infer_redis":   "Without --nats: cache decompositions in this Redis and not in the embedded one; 'off' for none.",
	"submit_job":    "Id of the job, [A-Za-z0-9_-]{1,64}; made up without it. The same request under the same id is the same job.",
	"gateway_keys": "File of keys for HTTP: a line has a tenant (* for everybody), a key or sha256:HEX of one, and perhaps " +
		"read-only. Without it no key is asked for.",
	"gateway_host_name": "Name under which the gateway may be asked without keys, beside addresses and localhost.",
	"gateway_tls_cert": "Certificate (PEM, with its chain) that HTTP is served with over TLS; read again at every connection. Without it " +
		"HTTP is not encrypted.",
	"gateway_rate": "Requests of one key a second, twice as many at once; 0 for any number. Without --keys there is no rate.",
	"up_gateway":   "Address that serves HTTP and the page; 'off' for none. Without it 127.0.0.1:8080, or a free port where that is taken.",
	"model_rm": "Digests of models, six digits at least; or names, which go with all their versions, and leave the models; " +
		"TENANT.NAME and TENANT.DIGEST are a tenant's.",
	"model_put_file": "Model file, in any format of docs/reference/formats.md, recognised by contents and name; '-' is standard " +
		"input, .gz is decompressed.",
	"fit_data": "CSV file with a case per row: columns by variable, cells by the value's name, or its position where it has none; " +
		"empty, ?, *, NaN, NA, N/A or null is missing. Rows that are no cases are named and left out. The separator is found; " +
		"'-' is standard input, .gz is decompressed.",
	"fit_weight": "Column of how often a case counts; without it Netica's NumCases, if it is there.",
	"fit_output": "File to write the model to, in the format that its ending says, replaced once it is whole; " +
		"without: standard output, native.",
	"fit_starts": "Starts of EM, of which the most likely end is kept: the first as without, the others with rows drawn by the seeds " +
		"after --seed.",
	"fit_prior": "Model with the same variables, values and parents that counts as --equivalent-size cases drawn from it: a Dirichlet " +
		"prior for every table.",
	"fit_equivalent": "Number of cases that --prior counts as.",
	"fit_update": "File of counts beside the model: those of earlier cases are added, and after the fit it has these cases, too. Without " +
		"missing values that is a fit to all cases together.",
	"fit_forget":   "Share of the counts in --update that stays, from 0 to 1.",
	"fit_held_out": "CSV file of cases whose ln-likelihood under the fitted tables is printed; nothing is learned from them.",
	"fit_seed":     "Begin with rows drawn by this seed, in place of the tables that the model has; 0: with those.",
	"convert_from": "Model file, in any format of docs/reference/formats.md; '-' is standard input, .gz is decompressed.",
	"convert_to": "File to write, in the format that its ending says; one that ends in .gz is compressed, and '-' is " +
		"standard output, for which --to says the format.",
	"model_ref":   "The model: its digest, or six digits of it at least, or a name, alarm or alarm@3.",
	"plan_within": "Planning takes about this long at most, half of it for the exact way; parts without a price by then are marked.",
	"request_model": "Model file: BIF, XMLBIF, XDSL, Hugin NET, DSC, DNE, DSL, PGMX, UAI, CNF, FG, WCSP, CFN or native JSON, recognised by " +
		"contents and name (docs/reference/formats.md); '-' is standard input, and .gz is decompressed, as of all inputs; or, with --nats, " +
		"a model that 'btn model put' registered there: its name (alarm, or a version alarm@3), or digest:HEX, six digits at least.",
	"request_evid": "Evidence: a file, or smoke=yes,xray=abnormal, or 3,-7 of a formula, or a JSON object {\"smoke\": \"yes\", " +
		"\"xray\": [0.2, 0.8]}, by names, or positions where there are none. A file has one of these, or is in either UAI dialect. " +
		"Repeat it to ask several queries in one job. Without it MODEL.evid beside the model is used if there is one; 'none' turns that off.",
	"request_do": "Variables of a Bayesian network that are set from outside, e.g. smoke=no: their own tables are cut out, so that nothing " +
		"follows for their causes.",
	"request_believe": "Posteriors that variables have in the answer, e.g. smoke=0.2/0.8, by Jeffrey's rule. As evidence the same numbers " +
		"are a likelihood, and the posterior is another one.",
	"request_event": "Evidence, as --evid has it, that is an event: also asks for P(event | evidence), by one more query per " +
		"evidence with both. --mar and --joint are of the evidence alone.",
	"request_queries": "File with many queries, a JSON object per line: {\"evidence\": {\"smoke\": \"yes\"}, \"marginals\": true, " +
		"\"targets\": [4], \"joint\": [1, 2], \"event\": {\"5\": 0}, \"mpe\": true, \"map\": [3], \"samples\": 10, \"seed\": 1}, each " +
		"optional, and \"sensitivity\" and \"information\". Results come in the order of the lines, two for a line with an event.",
	"explain_map": "The variables of the assignment, the others summed out (marginal MAP), e.g. smoke,bronc or 3,7,9; where that is " +
		"too wide, the best found and a bound. Without it all variables (MPE), by exact methods only.",
	"sample_count": "Assignments to draw from P(x | evidence), with --seed; with weights where exact draws are more than memory and " +
		"budget hold.",
	"request_accuracy": "truncated, regions, sampled: the stated uncertainty to stop growing at, in nats.",
	"request_joint": "Variables whose joint marginal is asked for as well, e.g. smoke,bronc or 3,7,9: at most 2^20 cells, by " +
		"exact methods only.",
	"ask_utility": "JSON file of what actions are worth by the variable's value, {\"treat\": {\"no\": -5, \"yes\": 10}, " +
		"\"wait\": {\"yes\": -20}}: ranks by the gain of the decision; a value that is not named is worth 0.",
	"cases_file": "CSV file with a case per row: columns by variable, cells by the value's name, or its position where it has none; " +
		"empty, ?, *, NaN, NA, N/A or null is not observed; low|normal is a set, low:0.2|normal:0.8 weights. The separator is found; " +
		"'-' is standard input. Writes a CSV file with a row per case: the posteriors of --target, " +
		"ln P(evidence), and the error of the row.",
	"cases_target": "Variables whose posteriors are asked for, by name or position, comma-separated or repeated; without it " +
		"ln P(evidence) alone.",
	"cases_missing":  "More words for a missing value. A state of the variable with that name wins.",
	"cases_soft":     "Meaning of a cell yes:0.8|no:0.2: a likelihood, or the belief that the posterior becomes.",
	"cases_weight":   "Column of how often a case counts, which is carried over; without it Netica's NumCases, if it is there.",
	"cases_output":   "File to write, in place of standard output. An unfinished one is resumed.",
	"request_target": "Variables whose marginals are asked for, by name or position, comma-separated or repeated; without: see --mar.",
	"sensitivity_of": "The probability P(V = X), e.g. lung=yes. Numbers vary by --range of themselves; rows of conditional probability " +
		"tables are kept at 1.",
	"request_gradients": "The derivatives of ln Z by every number of every factor as well, exactly: they are in the answer's JSON.",
	"up_memory_limit": "Memory limit of this process: messages wait until there is room for their tables. Without it " +
		"GOMEMLIMIT, or the limit of the cgroup.",
	"request_memory": "Memory of the process, above 3GiB; tables may have it without the model and the rest, or, up to 2GiB, all of it.",
	"request_method": "Way to the answer; 'btn methods' says more.",
	"request_set":    "A setting of one method, e.g. learned.components=8; repeated, or with commas. 'btn methods' lists them.",
	"request_budget": "Work to spend at most, planning included: truncated, regions and sampled turn it once into flops, as seconds of one " +
		"core, 60s without it; auto takes the exact way only where that is worth it. Given without --deadline, it is time as well: the job " +
		"ends with its best estimate a fifth later, on a busy machine after twice of it and a second, and of a large model once there is one.",
	"request_deadline": "Answer after this long with the best estimate so far, or give up without one, e.g. 30s. 0 means never.",
	"up_max_bytes":     "Room for all streams together; without it the free room, at most 16 GiB in files and 4 GiB in memory.",
	"up_keep_at_least": "Shortest time that answers are kept: the oldest go earlier than --keep when room is needed, and new jobs are " +
		"refused rather than a younger one is lost; 0: as it is, or 1m.",
	"setup_keep":         "How long models and answers are kept at most; it bounds the longest deadline. 0: as it is, or 24h.",
	"setup_one_consumer": "One consumer for all lanes in place of one per lane: first come, first served; stop running workers first.",
	"setup_backlog":      "Jobs of one lane that may wait before the first stage, more are refused; 0: as it is, or 4096.",
}
