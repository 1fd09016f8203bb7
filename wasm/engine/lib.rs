// SPDX-License-Identifier: MIT
//! Wasmtime's C API as a static library; `compiler` adds Cranelift to it.
pub use wasmtime_c_api::*;
