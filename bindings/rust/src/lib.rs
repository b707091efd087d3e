// SPDX-License-Identifier: MIT
//! Plugins for ggml-host in Rust: the structs of the contract, the note, and what every plugin needs to keep it. A
//! plugin is a `cdylib` whose file is named `libggml-NAME.so`; `examples/add.rs` is a whole one, to begin from.
//!
//! Nothing here is needed by the host: it sees a note and one symbol, whatever language they come from.
//! `ggml-plugin-check FILE` says whether a plugin keeps the contract.
mod contract;
pub mod hosts;

pub use contract::*;
use std::panic::{catch_unwind, UnwindSafe};

/// Minor of contract 1 that this crate knows.
pub const CONTRACT_MINOR: u16 = 0;
/// Digest of every size that host and plugin must agree on.
pub const LAYOUT_HASH: u64 = 0xb915c358ebce5979;

const fn padded(from: &str) -> [u8; 32] {
    let bytes = from.as_bytes();
    assert!(bytes.len() < 32, "texts of a note have less than 32 bytes");
    let mut to = [0; 32];
    let mut i = 0;
    while i < bytes.len() {
        to[i] = bytes[i];
        i += 1;
    }
    to
}

impl Note {
    /// What `note!` puts into its section. `name` and `variant` are those of the file's name, `version` is the plugin's.
    pub const fn new(name: &str, variant: &str, version: &str) -> Note {
        Note {
            magic: *b"GGMLPLG\x1a",
            size: std::mem::size_of::<Note>() as u32,
            contract_major: 1,
            contract_minor: CONTRACT_MINOR,
            contract_min_minor: 0,
            machine: if cfg!(target_arch = "x86_64") {
                1
            } else if cfg!(target_arch = "aarch64") {
                2
            } else {
                0
            },
            flags: 0,
            priority: 0,
            reserved0: 0,
            cpu_features: [0; 2],
            layout_hash: LAYOUT_HASH,
            name: padded(name),
            variant: padded(variant),
            version: padded(version),
            reserved: [0; 16],
        }
    }
}

/// Defines the note, `NOTE`, which the host reads before it maps the file: name, variant, version.
#[macro_export]
macro_rules! note {
    ($name:expr, $variant:expr, $version:expr) => {
        #[used]
        #[cfg_attr(target_os = "windows", link_section = ".ggmlnt")]
        #[cfg_attr(target_os = "macos", link_section = "__DATA,__ggml_note")]
        #[cfg_attr(
            not(any(target_os = "windows", target_os = "macos")),
            link_section = ".ggml.note"
        )]
        pub static NOTE: $crate::Note = $crate::Note::new($name, $variant, $version);
    };
}

/// Why an entry fails.
pub struct Failure(pub i32, pub String);

/// Runs what an entry does and returns its status. A failure, and a panic, is told to the host with its reason: a panic
/// must not leave the plugin.
pub fn guard(work: impl FnOnce() -> Result<(), Failure> + UnwindSafe) -> i32 {
    let failure = match catch_unwind(work) {
        Ok(Ok(())) => return status::OK,
        Ok(Err(failure)) => failure,
        Err(cause) => {
            let text = cause.downcast_ref::<&str>().map(|text| text.to_string());
            let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "without a message".to_string());
            Failure(status::FAILED, format!("the plugin panicked: {text}"))
        }
    };
    hosts::fail(&failure);
    failure.0
}

impl Tensor {
    /// Whether neither its flags nor its padding say anything that contract 1.0 gives no meaning to.
    pub fn says_nothing_new(&self) -> bool {
        self.flags & FLAGS_TO_UNDERSTAND == 0 && self.padding == [0; 8]
    }

    /// Whether it is F32 and its elements lie one behind the other.
    pub fn is_packed_f32(&self) -> bool {
        let mut stride = 4usize;
        self.kind == TYPE_F32
            && self.ne.iter().zip(self.nb).all(|(&extent, bytes)| {
                let fits = extent >= 0 && (extent <= 1 || bytes == stride);
                stride = stride.wrapping_mul(extent as usize);
                fits
            })
    }

    pub fn n_elements(&self) -> usize {
        self.ne.iter().product::<i64>() as usize
    }

    /// The i-th operand.
    ///
    /// # Safety
    /// The tensor is one that the host has passed, for as long as that is said to be valid.
    pub unsafe fn source(&self, i: usize) -> Option<&Tensor> {
        self.src.get(i).and_then(|source| source.as_ref())
    }

    /// Whether it moves no data: there is nothing to compute.
    pub fn is_empty_op(&self) -> bool {
        matches!(self.op, op::NONE | op::RESHAPE | op::VIEW | op::PERMUTE | op::TRANSPOSE)
    }
}
