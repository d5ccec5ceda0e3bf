"""Every sentence that the bot says to a person. `{…}` is filled in with text that is escaped already."""

from __future__ import annotations

COMMAND = "/trainmem"
EXAMPLE = "70B seq=8k mb=2 gpu=H100"

# The sizing ---------------------------------------------------------------------------------------------------------

MARKS = {"fits": "✅", "tight": "⚠️", "does_not_fit": "⛔"}
VERDICT_WORDS = {"fits": "Fits", "tight": "Fits, but tight", "does_not_fit": "Does not fit"}

TERMS = {
    "weights": "weights",
    "gradients": "gradients",
    "master_weights": "master weights",
    "optimizer_moments": "optimizer moments",
    "activations": "activations",
    "working": "working memory",
    "runtime": "runtime",
}
METHODS = {"full": "full training", "lora": "LoRA", "qlora": "QLoRA"}
SCALES_WITH = {"parameters": "parameters", "tokens": "tokens", "fixed": "fixed"}
TABLE_HEADINGS = ("Term", "Whole model", "Per GPU", "Share", "Scales with")
TABLE_TOTAL = "Total"
NOT_PER_MODEL = "–"

MOMENTS = {
    "forward_end": "at the end of forward",
    "loss": "at the loss",
    "first_backward": "in the first backward operation",
    "layer_backward": "in a layer's backward",
    "backward_end": "at the end of backward",
    "optimizer_step": "in the optimizer step",
}

FIELD_GPUS = "GPUs"
FIELD_LAYOUT = "Layout"
FIELD_PEAK = "Peak per GPU"
FIELD_HEADROOM = "Headroom"
FIELD_MISSING = "Missing per GPU"
FIELD_CONFIDENCE = "Confidence"
FIELD_SPEED = "Speed"
FIELD_COST = "Time and cost"

GPUS_NODES = "{gpus} × {gpu}, {nodes}"
ONE_NODE, MANY_NODES = "1 node", "{nodes} nodes"
PEAK = "{gauge}\n{needed} of {usable} usable, {moment}"
CONFIDENCE_RANGE = "{confidence}: {low} to {high} in 8 of 10 runs"
SPEED = "{step} a step, {tokens_per_s} tokens/s"
DAYS_COST = "{days} days, {cost}"
NO_PRICE = "price unknown"

LAYOUT_ALONE = "one GPU"
ACCUMULATION = "{count} micro-batches a step"
RECOMPUTE = "{what} recompute"
RECOMPUTE_LAYERS = "full recompute of {layers} layers"
NO_RECOMPUTE = "no recompute"
SHARD_WITHIN = "{shard} within {degree}"

RECOMMENDED = "*Recommended: {gpus} × {gpu}.*"
TIGHT = "*Tight:* it fits by the estimate, but the upper end of the range does not. Keep a lever ready."
ASKED_FITS = "*The {gpus} × {gpu} you named are enough.*"
ASKED_DOES_NOT_FIT = "*The {gpus} × {gpu} you named are not enough.*"
NEAREST_FIT = "*Nearest that fits:* {change} on {gpus} × {gpu}, {layout}: {peak} per GPU."
FLOOR = "*Floor:* sharding over more GPUs never goes below *{floor}* per GPU ({terms}); {fits}."
FLOOR_FITS = "that fits"
FLOOR_DOES_NOT_FIT = "that does not fit, so more GPUs alone will not help"
FLOOR_HELPS_UNTIL = "Sharding helps up to {gpus} GPUs."
FLOOR_THEN = "The next lever: {then}."
ASSUMED = "*Assumed:* {assumptions}"
ASSUMED_MORE = " and {count} more"
NOTE = "*Note:* {message}"
WARNING = "⚠️ {message}"
HOST_MEMORY = "*In host memory:* {host} per GPU."
PROVENANCE = "trainmem {engine} · catalogue {catalog} · {record}"
AUDIT = "audit #{seq} · {sizing}"
NOT_RECORDED = "not recorded"

CHANGE = "*What if* {change}: {was} → {now} per GPU."
CHANGE_SIDE = "{gpus} GPUs, {peak}"
SHARED_BY = "Shared by <@{user}>"
LEVER_SAVES = "saves {saves} of {term} per GPU"

CHART_TITLE = "Per GPU at the peak, in GiB"
CHART_SEGMENTS = {
    "Weights": ("weights",),
    "Gradients": ("gradients",),
    "Optimizer state": ("master_weights", "optimizer_moments"),
    "Activations": ("activations",),
    "Working, runtime": ("working", "runtime"),
}
CHART_FREE = "Free"

# Buttons and menus --------------------------------------------------------------------------------------------------

BUTTON_SHARE = "Share in channel"
BUTTON_CHANGE = "Change…"
BUTTON_COMPARE = "Compare GPUs"
BUTTON_EXPLAIN = "Explain"
BUTTON_DECIDE = "Decide…"
BUTTON_BACK = "Back"
BUTTON_OPEN = "Open in browser"
BUTTON_SHOW = "Show"
MENU_WHAT_IF = "What if…"
MENU_TERM = "Another term…"
MENU_USE_GPU = "Size it on…"

BUTTON_NEW = "New sizing"

# The form -----------------------------------------------------------------------------------------------------------

FORM_TITLE = "Size a training run"
FORM_SUBMIT = "Size it"
FORM_CLOSE = "Cancel"
FORM_LOADING = "Reading what was asked …"
FORM_OBJECT = "This run was asked with a model or a GPU of its own, which a form cannot hold. Ask over HTTP instead."
FORM_NOT_OPENED = "Slack did not open the form; it waits three seconds only. Please press once more."
FORM_AS_TYPED = "“{typed}” as typed"
FORM_LABELS = {
    "model": "Model",
    "gpu": "GPU",
    "gpus": "How many GPUs do you have?",
    "sequence_length": "Sequence length",
    "micro_batch": "Micro-batch",
    "method": "Method",
    "precision": "Precision",
    "optimizer": "Optimizer",
    "recompute": "Recompute",
    "more": "Anything else, in words",
}
FORM_PLACEHOLDERS = {
    "model": "Type a name or a size: 70B",
    "gpu": "H100 SXM 80 GB",
    "gpus": "leave empty to get a recommendation",
    "sequence_length": "8k; empty takes the model's, at most 8192",
    "micro_batch": "1",
    "method": "full training",
    "precision": "bf16-mixed",
    "optimizer": "adamw",
    "recompute": "auto",
    "more": "tp=8 zero=3 stack=megatron",
}
FORM_HINTS = {"more": "The words of the command; “/trainmem help” lists them."}

# Decisions ----------------------------------------------------------------------------------------------------------

DECISION_TITLE = "Decide on this run"
DECISION_SUBMIT = "Record it"
DECISION_AS_ASKED = "as asked"
DECISION_REASON = "needed unless you approve"
DECISION_LABELS = {
    "decision": "Decision",
    "gpus_granted": "GPUs granted",
    "gpu": "GPU granted",
    "reason": "Why",
}
DECISIONS = {
    "approve": "Approve",
    "override": "Grant something else than was asked",
    "reject": "Reject",
    "withdraw": "Withdraw the last decision",
}
DECIDED = {
    "approve": "✅ *Approved* by {by}",
    "override": "✅ *Granted otherwise* by {by}",
    "reject": "⛔ *Rejected* by {by}",
    "withdraw": "↩️ *Decision withdrawn* by {by}",
}
DECIDED_GRANTS = ": *{granted}* for {model}"
DECIDED_ON = ": {model}"

# The Home tab -------------------------------------------------------------------------------------------------------

HOME_INTRO = (
    "Say a training run in a few words, anywhere: `/trainmem 70B seq=8k mb=2 gpu=H100`. "
    "You get the GPUs, the layout and where every byte goes."
)

# Explanation, comparison, lists -------------------------------------------------------------------------------------

EXPLAIN_TITLE = "{term}: {size} per GPU, {share}"
EXPLAIN_BECAUSE = "*Why it exists:* {because}. *Scales with:* {scales_with}."
EXPLAIN_LEVERS = "*Levers:* {levers}."
LEVER_EXPLAINED = "{lever} saves {saves}"
EXPLAIN_OF = (
    "Per GPU at the peak of {sizing}. `/trainmem explain activations` explains another term of your last sizing."
)
PARTS_HEADINGS = ("Part", "Per GPU", "Share", "Formula")
UNKNOWN_TERM = "I can explain {terms}."

COMPARED = "{gpu} comes first"
COMPARED_NONE = "None of these GPUs holds the run"
COMPARISON_HEADINGS = ("GPU", "GPUs", "Layout", "Peak per GPU", "Headroom")
COMPARISON_COST = "Cost"
COMPARISON_SPOKEN = "{gpu}: {gpus} GPUs, {layout}, {peak}. {fits}."
FITS_MARKS = {True: "✅", False: "⛔"}

HISTORY_TITLE = "Your last sizings"
NO_SIZINGS_YET = "You have not sized anything yet. Try `/trainmem 70B seq=8k mb=2 gpu=H100`."
MODELS_TITLE = "Models"
MODELS_HEADINGS = ("Model", "Parameters", "Longest sequence", "Taken for")
MODELS_FOOT = "Narrow it with `models llama`; any size works too: `23B`."
GPUS_TITLE = "GPUs"
GPUS_HEADINGS = ("GPU", "Memory", "Architecture", "Per node", "Per hour")
GPUS_FOOT = "Narrow it with `gpus mi300`."
BY_LABEL = "{label} GB by its label"
TOTALS_ONLY = "totals only"
MORE_ROWS = "More match than these {count}."
NOTHING_FOUND = "Nothing is called {words}."

# What went wrong ----------------------------------------------------------------------------------------------------

REFUSED_TITLE = "I could not size that."
REFUSED_READ = "I read {read}"
REFUSED_GIVEN = "read {given}"
REFUSED_ALLOWED = "allowed: {allowed}"
REFUSED_SUGGESTIONS = "Did you mean {suggestions}?"
REFUSED_EXAMPLE = "An example that works: `{command} {example}`. All words: `{command} help`."
NOTHING_RECORDED = "Nothing was recorded."
USE_SUGGESTION = "Use {suggestion}"

UNREACHABLE = "The sizing service cannot be reached right now. Your question was fine; please ask it again in a minute."
TIMED_OUT = (
    "The sizing service did not answer within {seconds} seconds. It may still record your question; "
    "asking again in a minute is safe."
)
BUSY = "The sizing service is busy. Please ask again in {seconds} seconds."
NOT_KNOWN = "The sizing service does not know me. That is for the operators to put right; they find it by the id below."
NOT_ALLOWED = "The sizing service does not let me ask for you: {detail}"
NOT_FOUND = "The sizing service knows nothing by that name: {detail}"
FAULT = (
    "The sizing service failed on this question. That is our fault, not yours; the operators find it by the id below."
)
BROKEN = "I failed on this. That is our fault, not yours; the operators find it by the id below."
INCIDENT = "id `{id}`"
INCIDENT_PLAIN = "id {id}"

# While people wait --------------------------------------------------------------------------------------------------

QUEUED = "Busy, your answer is coming. {ahead} questions are before yours."
FULL = "So many questions are waiting that I cannot take another one. Please ask again in a minute."

STOPPING = "I am being restarted and did not get to your question. Please ask it again in a minute."

# Help ---------------------------------------------------------------------------------------------------------------

HELP_TITLE = "What does a training run need?"
HELP_INTRO = (
    "Say the run in a few words, in any order, and get the GPUs, the layout and where every byte goes. "
    "Only you see the answer."
)
HELP_EXAMPLES = (
    (EXAMPLE, "how many H100s does full training of a 70 B model take?"),
    ("llama-3.1-8b 8xH100 seq=32k ckpt=full", "does it fit on these eight?"),
    ("70B lora=16 gpu=A100-80G", "adapters only"),
    ("compare H100,B200,MI300X 70B", "which GPU is best for it?"),
    ("mixtral-8x7b 64xH100 tp=8 ep=8 zero=1", "a layout of your own"),
)
HELP_WORDS = (
    ("model", "first word: `70B`, `llama-3.1-70b`, `meta-llama/Llama-3.1-70B`"),
    ("seq", "tokens in a sequence: `8k`, `8192`, `128K`"),
    ("mb", "micro-batch: sequences per rank and pass"),
    ("gbs", "global batch: sequences per optimizer step"),
    ("gpu", "`H100`, `a100-80g`, `MI300X`; `64xH100` says how many you have"),
    ("tp pp cp ep dp zero", "a layout of your own: `tp=8 zero=3`"),
    ("ckpt", "recompute: `none`, `selective`, `full`"),
    ("prec opt", "`bf16-mixed`, `fp8` …; `adamw`, `adamw-8bit`, `muon` …"),
    ("lora qlora", "train adapters: `lora=16`"),
    ("stack", "`reference`, `huggingface`, `torchtitan`, `megatron`, `deepspeed`"),
)
HELP_COMMANDS = (
    ("models [filter]", "what models are known"),
    ("gpus [filter]", "what GPUs are known"),
    ("last", "your last sizings"),
    ("explain activations", "a term of your last sizing, part by part"),
    ("why sz_…", "the largest term of that sizing"),
    ("help", "this"),
)
HELP_COMMANDS_TITLE = "*More*"
HELP_WORDS_TITLE = "*Words*"
HELP_TRY_TITLE = "*Try*"
HELP_FOOT = "Every answer is recorded in the audit with your Slack id."
