//! Local, global and fractal heaps.
