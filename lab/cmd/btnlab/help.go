package main

// Help texts that are too long for a struct tag.

import "github.com/alecthomas/kong"

// helpTexts are the texts that tags name as ${name}.
var helpTexts = kong.Vars{
	"ledger_list":    "The file of commands: arguments of btn, one command per line; $BTN_DATA is the folder of models.",
	"bench_folder":   "Folder of models (*.uai, *.uai.gz, also one folder down), each with its .evid, .PR and .MAR beside it.",
	"bench_cpu":      "Kill runs that take more CPU time, in whole seconds, and draw CPU time in place of wall time; 0: never.",
	"bench_formulas": "The models are weighted formulas (*.cnf, *.cnf.gz), and log10 of their counts is in counts.csv beside them.",
	"bench_filter": "Only models whose name (FOLDER/NAME without .uai, or its last part) matches, e.g. " +
		"'Grids_*'; repeat it for more.",
	"bench_redraw": "Measure nothing: draw the plot of this CSV file of an earlier run again, beside it, up to " +
		"--timeout.",
	"bench_btn": "The btn that answers; without it the one beside this program, or one built from the source " +
		"of this laboratory.",
	"bench_name": "Files are NAME.csv, NAME.md and NAME.svg; without it results.csv, results.md and cactus.svg.",
	"evaluate_experiment": "strength (errors against coupling strength), components (of " +
		"symmetry-cp), time (errors " +
		"while answers grow), calibration (errors " +
		"against stated uncertainty), calibration-of-more, calibration-of-constraints, families (49 families: errors, uncertainties, bounds, " +
		"processor time), large (seven kinds of large models beside annealing), solvable (models that no exact way reaches, of known ln Z), " +
		"learned (two objectives of symmetry-cp) or all.",
	"explain_out": "CSV file of the runs; the picture of the proofs' times lies beside it, FILE.svg for FILE.csv.",
	"families_optima": "Also so many of each of the models whose most probable assignment is asked for: images, radio links, " +
		"warehouses, codes, diagnoses.",
	"faults_class": "Classes of faults in turn; without any all that can be run. A wrong name lists them.",
	"faults_out":   "CSV file that the batches' rows are added to; the page beside it, FILE.md for FILE.csv, is rewritten.",
	"bombs_kinds": "Kinds of bombs: queries, components, contraction, learning, payload, thousand, truncated, regions; all " +
		"without any.",
	"load_models": "Model files, each with its weight in the mix if it is not 1: FILE or FILE=WEIGHT. Without " +
		"any: one random Bayesian network of the size of ALARM.",
	"load_outstanding": "Jobs under way at any time in place of a rate (closed loop): the highest throughput.",
	"load_verify": "Jobs whose answers are computed again in this process and compared bit by bit: a number, " +
		"all, or none.",
	"load_nats":  "Load the workers on this NATS server; without it everything runs in this process.",
	"load_redis": "Without --nats: cache in this Redis and not in the embedded one; 'off' for none.",
	"load_max_bytes": "Without --nats: room for all streams together; without it 4 GiB in memory, " +
		"16 GiB in files. " +
		"Jobs are refused when three quarters of the room for answers are full.",
	"load_chunk_flops": "Approximate number of operations of one task; 0: learn-worker's default, 1: every query and " +
		"component is a task. With --nats: the value of the learn-workers there.",
	"load_record": "Write service times for btnlab simulate here, at a rate at which nothing waits. A closed " +
		"loop then replaces in the same file the cost of a message when all are busy.",
}
