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
	"completion_shell": "The shell: bash, zsh or fish.",
	"show_within":      "Time to predict the cost of questions. Parts that are not predicted by then are marked.",
	"generate_domain":  "Number of values of every variable, each with couplings and fields of its own. 0: two, as in the Ising model.",
	"generate_rank":    "Number of statistics, patterns, groups or products, up to 6. 0: one or two, as the structure needs.",
	"generate_noise":   "Standard deviation of further random couplings of all pairs, times the root of the number of variables.",
	"sensitivity_range": "Each number is varied by this share of itself. The other numbers of its row of probabilities change, so that the " +
		"sum stays 1.",
	"show_nats":            "NATS server of a registered model.",
	"default_accuracy":     fmt.Sprint(query.DefaultAccuracy),
	"default_memory":       config.Size(query.DefaultMemory).String(),
	"generate_ising":       "An Ising model on a grid or another graph: random couplings from −Δ to Δ, random fields from −0.1 to 0.1.",
	"generate_constraints": "Random constraints that have a solution. Without flags they are clauses of three literals.",
	"generate_random":      "Random positive tables over variables with different numbers of values.",
	"generate_leaves":      "A balanced binary tree with random tables, of whose leaves a third to a half are 1. In the native format.",
	"generate_latent":      "Tables of all pairs that hide a simple structure, to test whether it is found.",
	"latent_families":      strings.Join(generate.LatentFamilies(), ", "),
	"generate_potts": "Curie–Potts models: groups of variables whose factor depends on the number of times each value occurs. In " +
		"the native format.",
	"generate_friends": "Friends and smokers: smoking and cancer among n people, with all friendships summed out. In the native format.",
	"infer_nats":       "Let the workers on this NATS server compute. Without it everything runs in this process.",
	"infer_verbose":    "Also print the method and its cost. Models without names always show them.",
	"infer_redis": "Without --nats: cache results in this Redis, or nowhere if it is 'off'. Without this flag the cache is inside " +
		"the process.",
	"submit_job": "Id of the job: up to 64 letters, digits, - and _; without it one is made up. The same request with the same id " +
		"is the same job.",
	"gateway_keys": "File of keys for clients, a line each: the tenant (* for all), then the key or sha256:HEX of it, then perhaps " +
		"read-only. Without it no key is needed.",
	"gateway_host_name": "Host name by which clients may address this server when no keys are needed. Addresses and localhost are " +
		"always accepted.",
	"gateway_tls_cert": "Certificate chain (PEM) for HTTPS, read again at every connection. Without it HTTP is not encrypted.",
	"gateway_rate": "Requests that one key may make in a second, with bursts of twice as many; 0 for any number. Without --keys " +
		"there is no limit.",
	"up_gateway": "Address for HTTP and the page, or 'off'. Without it 127.0.0.1:8080, or a free port if that is taken.",
	"model_rm": "Digests of models (at least six digits), or names, which leave their models. TENANT.NAME and TENANT.DIGEST are a " +
		"tenant's.",
	"model_put_file": "Model file in any format of docs/reference/formats.md; '-' reads standard input.",
	"fit_data": "CSV file with a case per row and a column per variable; '-' reads standard input. docs/how-to/fit.md says how " +
		"missing values are written.",
	"fit_weight": "Column with the number of times that a row counts. Without it the column NumCases, as Netica writes it, if " +
		"there is one.",
	"fit_output": "Write the model to this file, in the format of its ending. Without it: standard output, native format.",
	"fit_starts": "Run EM this many times and keep the most likely result. The first run starts as usual, the others with random tables.",
	"fit_prior": "Model with the same variables, values and parents that serves as a prior. It counts as --equivalent-size cases " +
		"drawn from it.",
	"fit_equivalent": "Number of cases that --prior counts as.",
	"fit_update": "File of counts: those of earlier fits are read from it and added, and those of this fit are stored. Without " +
		"missing values that is a fit to all cases together.",
	"fit_forget":   "Share of the counts in --update that is kept, from 0 to 1.",
	"fit_held_out": "CSV file of other cases, whose ln-likelihood under the result is printed. Nothing is learned from them.",
	"fit_seed":     "Start with random tables, drawn by this seed. 0: start with the tables of the model.",
	"convert_from": "Model file in any format of docs/reference/formats.md; '-' reads standard input.",
	"convert_to":   "File to write, in the format of its ending; .gz is compressed. '-' is standard output, in the format that --to names.",
	"model_ref":    "The model: a name (alarm, or a version alarm@3), or at least six digits of its digest.",
	"plan_within":  "Time to predict the cost. Parts that are not predicted by then are marked.",
	"request_model": "Model file in any format of docs/reference/formats.md; '-' reads standard input. With --nats also a " +
		"registered model: a name, alarm or alarm@3, or digest:HEX.",
	"request_evid": "Observations: smoke=yes,xray=abnormal, a JSON object, or a file; repeated, each is a query of its own. " +
		"Without it MODEL.evid is read if it is there, but for --evid none.",
	"request_do": "Variables of a Bayesian network that are set from outside, e.g. smoke=no. Their own tables are cut out, so that " +
		"nothing follows for their causes.",
	"request_believe": "Posteriors that variables have in the answer, e.g. smoke=0.2/0.8 (Jeffrey's rule). As evidence the same " +
		"numbers are a likelihood.",
	"request_event":   "Also compute the probability of this event given the evidence. It is written like --evid.",
	"request_queries": "File of queries, a JSON object per line, as docs/how-to/questions.md describes them.",
	"explain_map": "Find the best values of these variables, the others summed out (marginal MAP), e.g. smoke,bronc. Where that is " +
		"too expensive, the answer is the best that was found, with a bound.",
	"sample_count":     "Number of assignments to draw. Where exact draws are too expensive they have weights.",
	"request_accuracy": "Estimates stop once their stated uncertainty is as small as this, in nats.",
	"request_joint": "Also compute the joint distribution of these variables, e.g. smoke,bronc. It has 2^20 entries at most, and " +
		"needs an exact method.",
	"ask_utility": "Rank by the gain of a decision: JSON file with the utility of each action by value, {\"treat\": {\"no\": -5, " +
		"\"yes\": 10}}. Utilities that are not given are 0.",
	"cases_file": "CSV file with a case per row and a column per variable; '-' reads standard input. docs/how-to/cases.md says how " +
		"missing and uncertain values are written.",
	"cases_target":  "Variables whose probabilities are written, separated by commas. Without it ln P(evidence) alone is written.",
	"cases_missing": "Further words that stand for a missing value. A value of the variable with the same name wins.",
	"cases_soft":    "Meaning of a cell yes:0.8|no:0.2: a likelihood, or the belief that the posterior becomes.",
	"cases_weight": "Column with the number of times that a row counts, which is copied. Without it the column NumCases, as Netica " +
		"writes it, if there is one.",
	"cases_output": "Write to this file in place of standard output. The same command again completes an unfinished file.",
	"request_target": "Compute the probabilities of these variables, given by name or position, separated by commas. --mar is for " +
		"all of them.",
	"sensitivity_of": "The probability to examine, as VARIABLE=VALUE: lung=yes.",
	"request_gradients": "Also compute the derivatives of ln Z by every number of the model, exactly. They are in the JSON of the " +
		"answer.",
	"up_memory_limit": "Memory limit of this process: messages wait until there is room for their tables. Without it GOMEMLIMIT, " +
		"or the limit of the cgroup.",
	"request_memory": "Memory for tables: plans that need more are not taken. Above 3GiB it is for the whole process, the model " +
		"included.",
	"request_method": "Method of computation; 'btn methods' describes them.",
	"request_set":    "Setting of a method, e.g. learned.components=8; several are separated by commas. 'btn methods' lists them.",
	"request_budget": "Work of an estimate, in seconds of one processor; without it 60s. Without --deadline the job ends soon " +
		"after this time, with its best estimate.",
	"request_deadline": "End after this time with the best estimate so far, or with an error if there is none, e.g. 30s. 0: no deadline.",
	"up_max_bytes":     "Storage of all streams together. Without it the free space, at most 16 GiB on disk and 4 GiB in memory.",
	"up_keep_at_least": "Answers are kept this long even when storage is short: then new jobs are refused. 0: as it is, on a new " +
		"server 1m.",
	"setup_keep": "Models and answers are kept no longer than this, and deadlines are no longer. 0: as it is, on a new server 24h.",
	"setup_one_consumer": "Serve jobs of all lanes in the sequence of their arrival, by one consumer in place of one per lane. " +
		"Stop all workers first.",
	"setup_backlog": "Jobs of a lane that may wait; more are refused. 0: as it is, on a new server 4096.",
}
