"""The English catalogue: one sentence a code. `{name}` is a parameter, quoted for the format it goes into."""

ENGLISH: dict[str, str] = {
    # --- merging shards
    "merge-plans": "the shards belong to different plans: {digests}; give shards of one plan only",
    "merge-conflict": "two shards disagree about {fact} {key}; give only one of them, or run that leg again",
    # --- backends and workers
    "artifact-missing": "{path} is not there; check the path of the artifact and the step that makes it",
    "artifact-unreadable": "{path} cannot be read: {reason}",
    "artifact-no-path": "{stage}: backend {backend} needs the path of a file; set path",
    "backend-unknown": "there is no backend {backend}; known are: {known}",
    "backend-import": "backend {backend} cannot be imported from {target}: {reason}",
    "session-closed": "{stage}: the session was closed before sample {sample}",
    "feed-missing": (
        '{stage}, sample {sample}: input "{name}" is not fed; give the sample a tensor of that name, or map the '
        "name under inputs"
    ),
    "feed-unknown": '{stage}, sample {sample}: "{name}" is no input of the model, which has: {known}',
    "feed-dtype": (
        '{stage}, sample {sample}: "{name}" is {found}, the model wants {wanted}; store the sample as {wanted}'
    ),
    "feed-shape": (
        '{stage}, sample {sample}: "{name}" is {found}, the model wants {wanted}; store the sample in that shape'
    ),
    "onnx-damaged": "{path} is no whole ONNX file: it is empty, cut off or something else; export or copy it again",
    "onnx-external-missing": (
        "{path} keeps weights in {location}, which is not in {folder}; put both files into one folder"
    ),
    "onnx-external-short": (
        "{path} keeps weights in {location}, which has {bytes} bytes where {wanted} are needed; copy it again"
    ),
    "onnx-external-outside": (
        '{path} keeps weights in "{location}", which is outside of its folder; save the model again with its '
        "weights beside it"
    ),
    "onnx-vendor-operator": (
        '{path}: node "{node}" is a {operator} of "{domain}", which needs the vendor\'s runtime; give this stage '
        "another backend or a recording"
    ),
    "onnx-unknown-domain": (
        '{path}: node "{node}" is a {operator} of "{domain}", which neither ONNX Runtime nor the model defines; '
        "give its library under custom-ops"
    ),
    "onnx-tap-unknown": "{path} has no tensor {taps} in its main graph; taps are names of node outputs",
    "ort-level": "{stage}: there is no optimisation level {level}; known are: {known}",
    "ort-provider": "{stage}: this ONNX Runtime has no {provider}; available are: {available}",
    "ort-provider-failed": (
        "{stage}: ONNX Runtime could not start {provider} and would have used another one; check its driver and "
        "libraries"
    ),
    "ort-library": "{stage}: operator library {path} cannot be loaded: {reason}",
    "ort-refused": "{stage}: ONNX Runtime refuses {path}: {reason}",
    "ort-refused-node": '{stage}: ONNX Runtime refuses {path} at node "{node}" ({operator}): {reason}',
    "ort-run": '{stage}, sample {sample}: ONNX Runtime failed at node "{node}" ({operator}): {reason}',
    "ort-odd-outputs": (
        "{stage}: {outputs} cannot be compared and are left out: their type is no tensor of numbers that numpy has"
    ),
    "recording-output-missing": (
        "{stage}: signature.json lists {outputs}, which {path} does not hold; recorded are: {recorded}"
    ),
    "recording-tap-missing": "{stage}: {taps} were not recorded in {path}; recorded are: {recorded}",
    "recording-sample-missing": (
        "{stage}: {path} has no sample {sample} among its {count}; record the stage again with all samples"
    ),
    "recording-incomplete": (
        "{stage}, sample {sample}: {path} lacks {outputs}, which its first sample has; record it again"
    ),
    "signature-no-json": "{path} is no JSON: {reason}",
    "signature-form": '{path} must be an object with the one key "outputs", an object of outputs by name',
    "signature-output": '{path}: the entry of "{output}" must be an object',
    "signature-key": (
        '{path}: "{output}" has {key}: {found}; keys are scales (numbers above 0), zero_points (integers), axis '
        "(integer or null) and step (number above 0 or null)"
    ),
    "signature-no-scales": '{path}: "{output}" has zero_points without scales; add the scales',
    "signature-lengths": (
        '{path}: "{output}" has {scales} scales and {zero_points} zero_points; give one zero point, or one for '
        "each scale"
    ),
    "signature-no-axis": '{path}: "{output}" has {scales} scales and no axis; say along which axis they run',
    "signature-axis": '{path}: "{output}" has {scales} scales along axis {axis}, where the tensor is {length} long',
    "worker-start": "{stage}: {command} cannot be started: {reason}; check the interpreter of the stage",
    "worker-died": (
        "{stage}: the worker of {command} ended at {doing} with exit code {exit_code}; its last words: {tail}"
    ),
    "worker-silent": (
        "{stage}: the worker of {command} did not answer within {seconds} s at {doing}; its last words: {tail}"
    ),
    "worker-nonsense": (
        "{stage}: the worker of {command} answered {found}, which is not the protocol; does the interpreter "
        "print to stdout by itself? Its last words: {tail}"
    ),
    "worker-protocol": (
        "{stage}: the worker of {command} speaks protocol {found}, {wanted} is wanted; the script is not of this "
        "driftgate"
    ),
    "worker-over": "{stage}: the worker of {command} failed before and cannot go on",
    "worker-package": "{stage}: {command} has no {package}: {reason}; install it there or name another interpreter",
    "worker-raised": "{stage}: the worker of {command} raised at {doing}: {reason}; its last words: {tail}",
    "torch-either": "{stage}: give either load (module:function) or path (a TorchScript file)",
    "torch-weights-alone": "{stage}: weights need load (module:function), which makes the module they go into",
    "torch-load-form": '{stage}: load is "{load}", wanted is module:function',
    "torch-load-raised": "{stage}: {load} raised {reason}; its last words: {tail}",
    "torch-load-type": "{stage}: {load} returned a {found}, wanted is a torch.nn.Module",
    "torch-weights-pickled": (
        "{stage}: {path} holds more than tensors, which is never loaded; save it again with "
        "torch.save(model.state_dict(), path) ({reason})"
    ),
    "torch-weights-damaged": (
        "{stage}: {path} holds no state dict: {reason}; save it again with torch.save(model.state_dict(), path)"
    ),
    "torch-weights-shapes": "{stage}: the weights of {path} have other shapes than the module: {mismatches}",
    "torch-weights-keys": (
        "{stage}: the weights of {path} do not fit the module; missing: {missing}; unexpected: {unexpected}"
    ),
    "torch-inputs-unnamed": (
        "{stage}: forward takes *{parameter}; give its inputs names, for example in a wrapper that load returns"
    ),
    "torch-device": "{stage}: device {device} cannot be used: {reason}",
    "torch-output-type": (
        "{stage}: output {output} is a {found}; only tensors, numbers and nests of them can be compared"
    ),
    "torch-output-twice": "{stage}: two outputs or taps are called {output}; rename one in a wrapper that load returns",
    "torch-tap-unknown": "{stage}: the module has no submodule {taps}; taps are names of model.named_modules()",
    "torch-tap-silent": "{stage}: {taps} took no part in forward and cannot be tapped",
    "torchscript-taps": "{stage}: TorchScript cannot be tapped ({taps}); use load instead of path",
    "torchscript-refused": "{stage}: torch refuses {path}: {reason}",
    "torchscript-no-zip": "{path} is no TorchScript file; write it with torch.jit.save, or use load (module:function)",
    "torchscript-state-dict": (
        "{path} holds weights or a pickled module and no TorchScript; use load (module:function) with weights: {path}"
    ),
    "state-no-inputs": "{stage}: state needs a model with inputs; a recording has none",
    "state-output-unknown": '{stage}: state names the output "{name}", the model has: {known}',
    "state-input-unknown": '{stage}: state names the input "{name}", the model has: {known}',
    "state-input-twice": "{stage}: state gives one input two outputs: {names}",
    "state-unranked": (
        "{stage}: neither this stage nor another one tells the shapes of {names}, so sequences cannot be told "
        "from constants; use a recording or run the sequence inside of the model"
    ),
    "state-not-given": "{stage}, sample {sample}: the model did not give the state {names}",
    "state-shape-completed": (
        "{stage}: the state starts from zeros, dynamic dimensions taken as 1: {inputs}; put the state into the "
        "samples if it starts otherwise"
    ),
    "sequence-rank": (
        '{stage}, sample {sample}: "{name}" is {found}; wanted is a sequence {wanted}, or the same without its '
        "first dimension as a constant"
    ),
    "sequence-lengths": "{stage}, sample {sample}: the sequences must have one length above 0, found are {lengths}",
    "sequence-shapes": (
        '{stage}, sample {sample}: "{name}" changes its shape between steps: {shapes}; such an output cannot be '
        "stacked over time"
    ),
    # --- samples and files
    "samples-names": "{path}: the names {names} are not UTF-8; rename these files",
    "samples-changed": "these samples are not what {manifest} has: {ids}; put the old data back or make the manifest again",
    "sample-feeds": "sample {sample} has the tensors {found}, the samples before it have {wanted}; all samples need the same",
    "plan-tampered": "results {path}: the plan of {subject} does not have the digest that the document states; it was changed after it was written",
    "labels-absent": "labels {path} cannot be read: {reason}",
    "labels-count": "labels {path} has {found} labels for {wanted} samples; give each sample one, or name the samples in `ids`",
    "labels-columns": "labels {path} has the columns {columns}; wanted: id and label",
    "labels-value": "labels {path}, line {line}: {value} is no number of a class; give an integer",
    "labels-format": "labels {path} has an ending that is not known; wanted: {wanted}",
    "labels-garbled": "labels {path} cannot be understood: {reason}; wanted: .npz with `labels` (and `ids`), or .csv with the columns id and label",
    "labels-kind": "labels {path}: `labels` is {dtype} of shape {shape}; wanted: integers of shape (samples,) or (samples, rows)",
    "labels-missing": "labels {path} has none for the samples {samples}; add them or take the samples out of the manifest",
    "labels-twice": "labels {path} names a sample twice; keep one",
    "manifest-absent": "sample manifest {path} cannot be read: {reason}; make it with `driftgate samples`",
    "manifest-garbled": "sample manifest {path} is no JSON: {reason}; make it again with `driftgate samples`",
    "manifest-invalid": "sample manifest {path} is wrong at {where}: {reason}; make it again with `driftgate samples`",
    "sample-changed": "sample {sample} is not what the plan has: its tensors changed since, or raw and runtime are not those that the manifest was made of; put the old data back or make the manifest again",
    "samples-differ": "raw has {raw} samples and runtime has {runtime}; both must hold the same ids, these are on one side only: {ids}",
    "samples-extra": "these samples are not in {manifest}: {ids}; make the manifest again to take them in",
    "samples-lost": "these samples of {manifest} are not in the data: {ids}; bring them back or make the manifest again",
    "samples-none": "there is no sample at all; give at least one",
    "folder-not-written": "folder {path} cannot be written: {reason}; nothing was kept there",
    "results-absent": "results {path} cannot be read: {reason}",
    "results-garbled": "results {path} is no JSON: {reason}; run the leg again",
    "results-invalid": "results {path} is wrong at {where}: {reason}; run the leg again",
    "results-other": "{path} is not a document of the schema {wanted}",
    "results-version": "results {path} has version {found}, this driftgate reads version {wanted}; use the driftgate that wrote it, or a newer one",
    "facts-garbled": "facts {path} cannot be read: {reason}; run the leg again",
    "facts-length": "facts of {path} do not fit: {link} {output} has not as many rows as samples; run the leg again",
    "facts-missing": "facts.npz lacks the table {table} that results.json names; both files must be of one run",
    "facts-table": "table {table} of facts.npz has shape {shape}, which no version 1 table has; both files must be of one run",
    "tensors-missing": (
        "{path} is not there; give a stacked .npz, a folder of <id>.npz, or a folder of <id>/<tensor>.npy"
    ),
    "tensors-kind": (
        "{path} holds no tensors that can be read; give a stacked .npz, a folder of <id>.npz, or a folder of "
        "<id>/<tensor>.npy"
    ),
    "tensors-empty": "{path} holds no sample; check the step that writes it",
    "tensors-mixed": "{path} has both .npz files and folders of .npy files; keep one of the two",
    "tensors-unreadable": "{path} cannot be read: {reason}",
    "tensor-pickled": (
        '{path}: "{tensor}" holds Python objects, which are never loaded; save it again as numbers, for example '
        "np.asarray(values, dtype=np.float32)"
    ),
    "tensor-no-numbers": (
        '{path}: "{tensor}" is of type {dtype}, wanted are numbers (float, integer or bool); save it again as such'
    ),
    "tensor-damaged": '{path}: "{tensor}" is damaged: {reason}; write or copy the file again',
    "npz-damaged": "{path} is no whole .npz file: {reason}; write or copy it again",
    "npz-stranger": '{path} holds "{member}", which is no array; save it again with np.savez',
    "stack-scalar": "{path}: {tensors} have no axis for the samples; stack the samples on axis 0",
    "stack-unequal": "{path}: the arrays hold different numbers of samples: {lengths}; stack the same samples in each",
    "samples-hollow": "{path}: there is no .npy file in the folders of {samples}; write these samples again",
    "sample-unknown": "{path} has no sample {sample} among its {count}: {ids}",
    "file-not-written": "{path} cannot be written ({reason}); give a folder that can be written to",
    # --- settings
    "config-absent": "configuration {path} cannot be read: {reason}; write one with `driftgate init`, or name it with -c",
    "config-encoding": "configuration {path} is not UTF-8: {reason}",
    "config-no-yaml": "{path}:{line}: no YAML: {reason}",
    "config-not-mapping": "{path}: wanted keys with values (version, subjects, …), found something else",
    "config-key-twice": "{path}:{line}: key {key} stands twice; keep one",
    "config-unknown-key": "{path}:{line}: {where} has the unknown key {key}; `driftgate schema config` lists the known ones",
    "config-unknown-key-near": "{path}:{line}: {where} has the unknown key {key}; did you mean {near}?",
    "config-missing-key": "{path}:{line}: {where} lacks the key {key}",
    "config-wrong-value": "{path}:{line}: {where} is {found}; wanted: {wanted}",
    "config-refused-value": "{path}:{line}: {where} is {found}: {reason}",
    "config-extends": "{path}:{line}: policy {name} extends {route}; a policy extends one that is there, and never itself",
    "config-nested": "{path} has aliases that contain themselves, or far too many places; write it out without them",
    "wanted-above": "more than {value}",
    "wanted-entries": "{value} or more entries",
    "wanted-filled": "a text that is not empty",
    "wanted-integer": "a whole number",
    "wanted-least": "{value} or more",
    "wanted-list": "a list",
    "wanted-mapping": "keys with values",
    "wanted-number": "a number",
    "wanted-one-of": "{value}",
    "wanted-path": "a path",
    "wanted-pattern": "a text of the form {value}",
    "wanted-text": "a text",
    "wanted-truth": "true or false",
    "config-unknown-name": "{path}:{line}: there is no {kind} {name}; known: {known}",
    "config-file-absent": "{path}:{line}: {where}: {file} is not there (looked for below {root})",
    "config-no-samples": "{path}:{line}: {where} names no data; give raw, manifest or both",
    "policy-unknown": "there is no policy {name}; known: {known}",
    "profile-unknown": "there is no profile {name}; known: {known}",
    "profile-size": "profile {name} wants {wanted} samples, there are {found}; give between 1 and {found}",
    "subject-unknown": "there is no subject {names}; known: {known}",
    "too-few-stages": "{subject} has only the stages {stages} and no score; a link needs two stages",
    # --- judgement
    "link-spans": "also spans {stages}, which is not there: judged as {kind}",
    "also-broken": "also broken: {criteria}",
    "below-floor": "all values of both sides are below the float noise floor {floor}",
    "bit-equal": "bit-equal",
    "float-floor": "not bit-equal; held against the float floor",
    "infinite-same": "{count} values are the same infinity on both sides and are left out",
    "ties-settled": "{count} tied top-k entries stood in another order",
    "step-unknown": "the step is not known, so the limits of lossy links were used",
    "singleton-axes": "axes of length 1 differ; compared as {shape}",
    "judged-by-score": "judged by its score",
    "candidate-nonfinite": "{stage} gives {count} values that are NaN or infinite where the reference is finite",
    "reference-nonfinite": "the reference {stage} gives {count} values that are NaN or infinite; it cannot be trusted",
    "zero-compared": "not a single value of {output} could be compared",
    "nothing-compared": "nothing was compared",
    "samples-partial": "only {done} of {planned} planned samples were measured",
    "run-missing": "no leg has reported the stage {stage}",
    "interrupted": "stopped from outside after {done} samples",
    "random-samples": "random input proves nothing; give real samples",
    "required-absent": "the policy requires {check}, and it was not measured",
    "not-asked": "not asked for: no {stages}",
    "no-link": "not asked for: nothing stands before it",
    "no-declared-score": "not asked for: no score is declared",
    "no-board-score": "not asked for: no score",
    "score-change": "{reference} → {candidate}",
    "score-incomplete": "{score} of {stage} was not recorded for every sample",
    "score-label": "label {label} is no class of an output with {classes} classes",
    "score-output": "{stage} has no output {output} to score, only {outputs}; name it in score.output or outputs",
    "score-rows": "the scored output has shape {shape}, which is not one row of scores for each of {labels} labels",
    "output-by-signature": "{output} was paired with {partner} because both are the only ones of their form",
    "output-gone": "{stage} gave no {output} for sample {sample}, though it did before",
    "output-kind": "output {output} is {a} on one side and {b} on the other; only numbers can be compared",
    "output-permutation": "output {output} has shape {shape} in sample {sample}, which the permutation of the settings does not fit",
    "output-shape": "{stage}: output {output} is {shape}, reference is {reference} (sample {sample}); if only the order of its axes differs, declare it under outputs.{output}.permute",
    "output-unpaired": "output {output} has no partner in {stage}, which has left: {others}; map it under outputs (diff: --output), or set it to null to leave it out",
    "outputs-extra": "{stage} has further outputs that nothing was compared with: {outputs}",
    "outputs-none": "{reference} and {candidate} have no output in common; map their names under outputs (diff: --output)",
    "feed-unwanted": "sample {sample}: no stage takes the feeds {feeds}; rename them, map them under inputs, or take them out of the samples",
    "feeds-unused": "{stage} does not take the feeds {feeds}",
    "input-unfed": "{stage}, sample {sample}: the inputs {inputs} have no feed; the sample has {feeds}; map them under inputs",
    "runtime-from-raw": "{stage} was fed raw samples: no runtime samples are declared",
    # --- reports
    "template-absent": "template {path} cannot be read: {reason}",
    "template-empty": "template {path} writes nothing; let it extend comment.md.j2 and change blocks of it",
    "template-long": "template {path} is longer than {limit_bytes} bytes; a template is a page of text",
    "template-wrong": "template {path}, line {line}: {reason}; docs/comment-template.md lists the blocks and values",
    "comment-long": "the comment is longer than {limit} characters even with everything left out that can be; give it more room, or shorten the template and check its loops",
    "summary-long": "the job summary is longer than {limit_bytes} bytes even with everything left out that can be",
    "comment-commit": "Commit",
    "comment-run": "run {number}",
    "comment-attempt": "run {number}, attempt {attempt}",
    "comment-counts": "{failed} failed, {errors} without a result, {passed} passed",
    "comment-link-summary": "Job summary",
    "comment-link-archive": "Archive of the report",
    "comment-details": "What was said, in full",
    "comment-shortened": "Shortened to fit into a comment. Left out:",
    "comment-whole": "everything is in results.json of the report.",
    "comment-whole-linked": "everything is in the job summary and in results.json of the report.",
    "left-out-lines": "{count} lines of folded tables and logs",
    "left-out-beside": "all but the table of {count} subjects",
    "left-out-pages": "the pages of {count} subjects",
    "left-out-rows": "{count} passing subjects from the overview",
    "left-out-unsound": "{count} subjects that fail or have no result from the overview",
    "bars-each": "max abs error of {output}, sample by sample ({count}); highest {highest}",
    "bars-groups": "max abs error of {output}, sample by sample ({count}, one bar for the worst of {size}); highest {highest}",
    "bars-unknown": "? where nothing could be compared",
    "annotation-title": "{subject}: {check} {result}",
    "annotation-optional": "{said}; not required by the policy",
    "annotation-more": "{count} more like these; the job summary has them all",
    "headline-fail": "FAIL at {check}",
    "headline-error": "ERROR at {checks}",
    "headline-nothing": "ERROR: nothing was judged",
    "headline-pass": "PASS {passed} of {total}",
    "headline-pass-skipped": "PASS {passed} of {total} ({skipped} not asked for)",
    "headline-pass-optional": "PASS {passed} of {total} "
    "({skipped} not asked for, {optional} not passed and not required)",
    "overall-fail": "FAIL in {failed} of {total} subjects",
    "overall-error": "ERROR in {errors} of {total} subjects",
    "overall-pass": "PASS in all {total} subjects",
    "overall-nothing": "ERROR: nothing was judged",
    "row-behind": "behind the first failure; numbers below",
    "row-optional": "not required by the policy",
    "first-failure": "First failure: {check}",
    "not-established": "Could not be established: {check}",
    "not-investigated": "not investigated: no experiment was made on this link, so no cause is named",
    "failure-more": "{count} more outputs are broken on this link; the tables below have them all",
    "next": "Next:",
    "limit": "limit",
    "where-sample": "sample",
    "where-channel": "channel",
    "worst-at-sample": "worst at sample",
    "score": "Score",
    "score-everywhere": "{score} at every stage ({stages})",
    "score-at": "{score} at {stage}",
    "score-from-to": "{score} from {first} to {last}",
    "measured-on-real": "{count} real samples · policy {policy} · plan {plan}",
    "measured-on-calibration": "{count} samples of the calibration set · policy {policy} · plan {plan}",
    "measured-on-random": "{count} random samples, which never prove PASS · policy {policy} · plan {plan}",
    "measured-without-facts": "judged without its facts · policy {policy} · plan {plan}",
    "lines-left-out": "Shortened: {count} more lines are in results.json.",
    "page-cut": "The page of each subject is left out, since all together are longer than GitHub shows; "
    "results.json has everything.",
    "plan-digest": "Plan",
    "details-judged": "Every link and limit",
    "details-behind": "Behind the first failure: measured, not blamed",
    "details-metrics": "Metrics of every link",
    "details-scores": "Scores of every stage",
    "details-environments": "Environments and versions",
    "details-runs": "Runs and plan",
    "details-notes": "Notes",
    "column-subject": "Subject",
    "column-target": "Target",
    "column-result": "Result",
    "column-scores": "Scores",
    "column-check": "Check",
    "column-value": "Worst value",
    "column-limit": "Limit",
    "column-where": "Where",
    "column-note": "Note",
    "column-link": "Link",
    "column-kind": "Kind",
    "column-output": "Output",
    "column-origin": "Set by",
    "column-dead": "Dead channels",
    "column-worst-sample": "Worst sample",
    "column-stage": "Stage",
    "column-backend": "Backend",
    "column-run": "Run",
    "column-samples": "Samples",
    "column-seconds": "Seconds",
    "column-artifact": "Artifact",
    "column-environment": "Environment",
    "column-provider": "Provider",
    "column-level": "Level",
    "column-threads": "Threads",
    "column-cpu": "CPU",
    "column-board": "Board",
    "column-versions": "Versions",
    "kind-exact": "exact",
    "kind-compiled": "compiled",
    "kind-equivalent": "equivalent",
    "kind-stepped": "stepped",
    "kind-lossy": "lossy",
    "origin-default": "default",
    "origin-config": "config",
    "origin-policy": "policy",
    "origin-derived": "derived",
    "run-passed": "complete",
    "run-refused": "refused to load",
    "run-error": "error",
    "run-partial": "partial",
    "criterion-ulp": "float error",
    "criterion-range": "error / range",
    "criterion-decimals": "max abs error",
    "criterion-integers": "unequal integers",
    "criterion-lsb": "max error",
    "criterion-cosine": "cosine",
    "criterion-centred-cosine": "centred cosine",
    "criterion-bulk-cosine": "cosine without the outlier",
    "criterion-norm-ratio": "norm ratio",
    "criterion-max-abs": "max abs error",
    "criterion-sqnr": "SQNR",
    "criterion-dead-channels": "dead channels",
    "criterion-score-drop": "score drop",
    "criterion-score-declared": "score",
    "metric-cosine": "Cosine",
    "metric-centred-cosine": "Centred cosine",
    "metric-bulk-cosine": "Cosine without the outlier",
    "metric-norm-ratio": "Norm ratio",
    "metric-max-abs": "Max abs error",
    "metric-mean-abs": "Mean abs error",
    "metric-range-error": "Error / range",
    "metric-sqnr": "SQNR",
    "metric-lsb": "Max error",
    "unit-ulp": "ulp",
    "unit-lsb": "LSB",
    "unit-sqnr": "dB",
    "unit-integers": "%",
    "unit-score-drop": "%",
    "broken-limit": "{criterion} is {value}, wanted {relation} {limit}",
    "case-failed": "the check failed; summary.md says why",
    "case-error": "could not be established; summary.md says why",
    "case-behind": "behind the first failure, {check}; judged {result} for itself",
    "case-skipped": "not asked for",
    "templates-missing": "the templates of the reports are in none of {places}; install driftgate again",
    "output-name": "{name} is no name of an output; use letters, digits, _ and -",
    "output-delimiter": "the value of output {name} contains the random delimiter; "
    "it is not written, since it could become another output",
    # --- github
    "variable-absent": "{name} is not set; GitHub sets it in every run, for example {wanted}",
    "variable-garbled": "{name} is {found}, wanted is something like {wanted}",
    "event-unnamed": "GITHUB_EVENT_PATH is not set; run this in a workflow, or give the payload with --event-path",
    "event-absent": "the event's payload {path} cannot be read: {reason}",
    "event-garbled": "the event's payload {path} is no JSON object; give the file that GITHUB_EVENT_PATH names",
    "event-field": "the payload of {event} lacks {field}, or has something else there; give the payload of this event",
    "github-token-garbled": "the token holds spaces, line ends or other characters that no token has; set it anew",
    "github-token-refused": "GitHub refuses the token ({reason}); it is wrong or has expired, so set it anew",
    "github-not-allowed": "the token may not {method} {path}: {reason}; give the job `pull-requests: write` (runs of forks never have it)",
    "github-not-found": "GitHub has no {path} ({method}: {reason}), or this token may not see it; check the permissions of the job",
    "github-gone": "{path} is gone or switched off ({method}: {reason})",
    "github-invalid": "GitHub does not accept this {method} {path}: {reason}",
    "github-refused": "GitHub answered {method} {path} with {status}: {reason}",
    "github-reply-lost": "the reply to {method} {path} was lost ({reason}); nobody knows whether it was done",
    "github-postponed": "GitHub put off {method} {path}: {reason}",
    "github-attempts": "{host} did not serve a request in {attempts} attempts: {reason}; try again later",
    "github-patience": "{host} asks to wait {seconds} s more ({reason}), which is beyond the {budget} s of this run; try again later",
    "github-other-host": "{wanted} sends this request on to {found}, which is not asked; check GITHUB_API_URL",
    "github-redirects": "{host} sends a request around more than {limit} times; check GITHUB_API_URL",
    "github-certificate": "the certificate of {host} is not trusted, or the file of trusted ones is not there; name it in REQUESTS_CA_BUNDLE",
    "github-request": "{host} cannot be asked ({reason}); check GITHUB_API_URL and the proxy variables",
    "github-too-long": "{host} answers with more than {limit_bytes} bytes; check GITHUB_API_URL",
    "github-no-json": "the answer to {path} is no JSON; check GITHUB_API_URL and the proxy",
    "github-no-list": "the answer to {path} is no list; check GITHUB_API_URL",
    "github-pages": "{path} has more than {limit} pages, or pages that repeat",
    "pull-event": "the event {event} belongs to no pull request",
    "pull-none": "there is no open pull request with the head {sha}",
    "pull-stale": "pull request #{number} has moved on from {sha} to {head}; these results are not of its head",
    "pull-several": "the commit {sha} is the head of several pull requests ({numbers}); which one is meant is not known",
    "comment-author": "comments of this token are by {found}, not by {wanted}; give --login {found}",
    "comment-unsettled": "the comment on #{number} did not come to rest in {rounds} rounds; give the jobs a concurrency group",
    "comment-created": "commented on #{number}: {url} ({requests} requests)",
    "comment-updated": "renewed the comment on #{number}: {url} ({requests} requests)",
    "comment-unchanged": "the comment on #{number} says this already: {url} ({requests} requests)",
    "comment-superseded": "the comment on #{number} is of a newer run than {run} and stays: {url} ({requests} requests)",
    "comment-deleted": "removed the comment on #{number} ({requests} requests)",
    "comment-absent": "no comment on #{number} and none needed ({requests} requests)",
    "comment-overtaken": "another run wrote at the same time; give the jobs a concurrency group",
    "comment-never": "no comment: the mode is never",
    "comment-none": "no comment:",
    "comment-no-token": "there is no token in any of {names}; pass `github.token`",
    # --- commands
    "init-exists": "{path} is there already; use --force to replace it, or --out for another name",
    "init-no-folder": "{folder} is not a folder; name the one in which hb_compile has worked",
    "init-nothing": "{folder} has none of the vendor's files; wanted names that end in: {endings}",
    "init-written": "wrote {path} for {subjects}; fill in the lines with <…>",
    "internal-error": "internal error, {kind}: {reason}; run again with --verbose and report it",
    "stopped": "stopped; nothing was written",
    "leg-started": "leg {leg} of plan {plan}: {stages}",
    "leg-run": "{stage}: {outcome}, {samples} samples in {seconds} s",
    "leg-unknown": "there is no leg {leg} in this plan; its legs: {known}",
    "outcome": "outcome: {outcome}",
    "manifest-folder": "{path} is a folder; give the manifest a file name",
    "manifest-kept": "{path}: all {count} samples are what the manifest has",
    "manifest-written": "wrote {path} with {count} samples",
    "output-pair": "{pairs}: wanted A=B, an output of the first artifact and one of the second",
    "paths-absent": "not there: {paths}",
    "policy-without-config": "policy {policy} needs the configuration it stands in; give it with -c",
    "progress-leg": "{leg}",
    "progress-samples": "reading samples",
    "demo-fault-unknown": "the demo has no fault {fault}; choose one of {known}, or none",
    "demo-fault-input-scale": "images are fed with pixels in 0..16 where the network was trained on 0..1",
    "demo-fault-optimizer-fold": "batch normalisation is folded with an epsilon of 0.001 where the network has 0.00001",
    "demo-fault-calibration-range": "calibration images are divided by 16 twice, so every range is far too small",
    "demo-fault-board-padding": "the board pads conv4 with 0 where the zero point is meant",
    "demo-fault-board-channels": "the board has the channels of dw2 in reverse order",
    "demo-fault-board-scale": "the board's scale of pw3 is 5 % too high; the score does not show it",
    "action-input-empty": "the input {name} is empty; leave it out for its default, or give it a value",
    "action-input-choice": "the input {name} is {value}; write one of {wanted}",
    "action-failed": "{subject}: the first check that fails is {check}; the job summary shows the evidence",
    "action-error": "the outcome could not be established (exit code {code}); the log of this step says why",
    "action-summary-long": "The report is longer than a job summary may be ({limit_bytes} bytes); "
    "it is summary.md in the report folder.",
    "install-two-sources": "the inputs index-url and wheelhouse are both given; keep one",
    "install-wheelhouse-absent": "the wheelhouse {path} is no folder; make it with "
    "`pip wheel --wheel-dir {path} driftgate=={version}` on a machine with a network, and bring it to this runner",
    "install-wheelhouse-other": "the driftgate {version} in the wheelhouse {path} is not the one of this action; "
    "make the wheelhouse from the action's own commit, or pin the action to the commit of the wheel",
    "install-wheelhouse": "{python} cannot install driftgate from the wheelhouse {path}; make it with "
    "`pip wheel --wheel-dir {path} driftgate=={version}` under this Python and on this kind of machine: {tail}",
    "publish-none": "no report to publish below {path}; nothing was uploaded, or under another name",
    "publish-failed": "the comment could not be published (exit code {code}); the log of this step says why, "
    "and the report has the text in comment.md",
    "install-no-folder": "neither RUNNER_TOOL_CACHE nor RUNNER_TEMP is a folder that can be written; "
    "run this step on an Actions runner, or set one of them",
    "install-venv": "{python} cannot make a virtual environment; install its venv package (Debian: python3-venv), "
    "or name another interpreter with the input python: {tail}",
    "install-package": "{python} cannot install driftgate; see what pip says and whether this runner reaches "
    "a package index: {tail}",
}
