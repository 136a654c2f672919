//! Runs a plan: fetch, decode, convert, place. Owns all concurrency.
