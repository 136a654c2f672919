//! The face of an HDF5 file to the engine.
