//! What is measured of the process: whether it is ready, its version, its traces, and what the system says of it.

use super::{
    Kind::{Counter, Gauge},
    Label, Meter,
    Values::Version,
    label, meter,
};

pub(super) const METERS: &[Meter] = &[
    meter(
        "trace_spans_total",
        Counter,
        "Spans that were to be handed to the collector of traces, by what came of it.",
        &[label("fate", &["sent", "lost"])],
    ),
    meter(
        "ready",
        Gauge,
        "1 while the process can do its work, as /readyz says; else 0.",
        &[],
    ),
    meter(
        "build_info",
        Gauge,
        "Always 1, with the version of the program.",
        &[Label {
            name: "version",
            values: Version,
        }],
    ),
    meter(
        "process_cpu_seconds_total",
        Counter,
        "CPU time that the process has used.",
        &[],
    ),
    meter(
        "process_resident_memory_bytes",
        Gauge,
        "Memory that the process holds.",
        &[],
    ),
    meter(
        "process_virtual_memory_bytes",
        Gauge,
        "Addresses that the process has reserved.",
        &[],
    ),
    meter(
        "process_virtual_memory_max_bytes",
        Gauge,
        "Addresses that the process may reserve; infinite where nothing limits them.",
        &[],
    ),
    meter("process_open_fds", Gauge, "File descriptors that are open.", &[]),
    meter(
        "process_max_fds",
        Gauge,
        "File descriptors that may be open.",
        &[],
    ),
    meter("process_threads", Gauge, "Threads of the process.", &[]),
    meter(
        "process_start_time_seconds",
        Gauge,
        "When the process started, in seconds since 1970.",
        &[],
    ),
];
