//! The program: configuration, wiring, servers, workers, command line.
