// SPDX-License-Identifier: MIT
//! The structs and numbers of contract 1.0, member by member as `ggml-contract.json` has them. What each entry takes,
//! returns and promises is in the headers of ggml-host (`ggml-backend-impl.h`, `ggml-plugin-*.h`) and in
//! `plugin-contract.md`; an entry that is an `Option` may be `None`.
use std::ffi::c_void;
use std::os::raw::c_char;

/// A table's reserved slots, a whole number of pointers that are NULL.
pub type Reserved<const N: usize> = [usize; N];

/// Statuses of entries (`enum ggml_host_status`).
pub mod status {
    pub const OK: i32 = 0;
    pub const FAILED: i32 = 1;
    pub const INVALID_ARGUMENT: i32 = 2;
    pub const OUT_OF_MEMORY: i32 = 3;
    pub const UNSUPPORTED: i32 = 4;
    pub const WRONG_CONTRACT: i32 = 23;
    pub const NO_DEVICE: i32 = 31;
}

/// `enum ggml_backend_dev_type`.
pub mod device_type {
    pub const CPU: i32 = 0;
    pub const GPU: i32 = 1;
    pub const IGPU: i32 = 2;
    pub const ACCEL: i32 = 3;
}

/// Some of `enum ggml_op`; the rest is in `ggml-contract.json`.
pub mod op {
    pub const NONE: i32 = 0;
    pub const ADD: i32 = 2;
    pub const RESHAPE: i32 = 36;
    pub const VIEW: i32 = 37;
    pub const PERMUTE: i32 = 38;
    pub const TRANSPOSE: i32 = 39;
}

/// `enum ggml_type`: 32-bit floating point.
pub const TYPE_F32: i32 = 0;
/// Flag of tensors that a graph computes.
pub const FLAG_COMPUTE: i32 = 16;
/// Flags of a tensor that must be understood by whoever computes with it.
pub const FLAGS_TO_UNDERSTAND: i32 = !0xffff;
/// Id of the host's buffer types: [`HostMemory`].
pub const EXTENSION_HOST_MEMORY: &[u8] = b"ggml.host-memory\0";

#[repr(C)]
pub struct Note {
    pub magic: [u8; 8],
    pub size: u32,
    pub contract_major: u16,
    pub contract_minor: u16,
    pub contract_min_minor: u16,
    pub machine: u16,
    pub flags: u32,
    pub priority: i32,
    pub reserved0: u32,
    pub cpu_features: [u64; 2],
    pub layout_hash: u64,
    pub name: [u8; 32],
    pub variant: [u8; 32],
    pub version: [u8; 32],
    pub reserved: [u32; 16],
}

/// What the host offers to one plugin, valid until that plugin's `shutdown` has returned.
#[repr(C)]
pub struct Host {
    pub size: u32,
    pub contract_major: u16,
    pub contract_minor: u16,
    pub host_version: *const c_char,
    pub log: unsafe extern "C" fn(*const Host, i32, *const c_char),
    pub set_error: unsafe extern "C" fn(*const Host, i32, *const c_char),
    pub alloc: unsafe extern "C" fn(*const Host, usize, usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*const Host, *mut c_void),
    pub get_topology: usize,
    pub bind_thread: Option<unsafe extern "C" fn(*const Host, u32, u32) -> i32>,
    pub bind_thread_mask: Option<unsafe extern "C" fn(*const Host, *const u64, usize) -> i32>,
    pub get_config: Option<unsafe extern "C" fn(*const Host, *const c_char) -> *const c_char>,
    pub get_extension:
        Option<unsafe extern "C" fn(*const Host, *const c_char, u32) -> *const c_void>,
    pub reserved: Reserved<16>,
}

#[repr(C)]
pub struct HostMemory {
    pub size: u32,
    pub revision: u32,
    pub buffer_type: unsafe extern "C" fn(*const Host) -> *const BufferType,
    pub buffer_from_ptr:
        unsafe extern "C" fn(*const Host, *mut c_void, usize, *mut *mut Buffer) -> i32,
}

#[repr(C)]
pub struct Tensor {
    pub kind: i32,
    pub buffer: *const Buffer,
    pub ne: [i64; 4],
    pub nb: [usize; 4],
    pub op: i32,
    pub op_params: [i32; 16],
    pub flags: i32,
    pub src: [*const Tensor; 10],
    pub view_src: *const Tensor,
    pub view_offs: usize,
    pub data: *mut c_void,
    pub name: [c_char; 64],
    pub extra: *mut c_void,
    pub padding: [u8; 8],
}

#[repr(C)]
pub struct Graph {
    pub size: u32,
    pub n_nodes: i32,
    pub nodes: *const *mut Tensor,
    pub use_counts: *const i32,
    pub structure: u64,
    pub uid: u64,
    pub reserved: Reserved<11>,
}

#[repr(C)]
pub struct Caps {
    pub r#async: bool,
    pub host_buffer: bool,
    pub buffer_from_host_ptr: bool,
    pub events: bool,
    pub mmap_support: bool,
}

#[repr(C)]
pub struct Props {
    pub name: *const c_char,
    pub description: *const c_char,
    pub memory_free: usize,
    pub memory_total: usize,
    pub kind: i32,
    pub device_id: *const c_char,
    pub caps: Caps,
}

#[repr(C)]
pub struct BufferTypeTable {
    pub size: u32,
    pub reserved0: u32,
    pub get_name: unsafe extern "C" fn(*const BufferType) -> *const c_char,
    pub alloc_buffer: unsafe extern "C" fn(*const BufferType, usize, *mut *mut Buffer) -> i32,
    pub get_alignment: unsafe extern "C" fn(*const BufferType) -> usize,
    pub get_max_size: Option<unsafe extern "C" fn(*const BufferType) -> usize>,
    pub get_alloc_size: Option<unsafe extern "C" fn(*const BufferType, *const Tensor) -> usize>,
    pub is_host: Option<unsafe extern "C" fn(*const BufferType) -> bool>,
    pub get_access_unit: Option<unsafe extern "C" fn(*const BufferType, *const Tensor) -> usize>,
    pub reserved: Reserved<8>,
}

#[repr(C)]
pub struct BufferType {
    pub table: *const BufferTypeTable,
    pub device: *const Device,
    pub context: *mut c_void,
    pub reserved: Reserved<5>,
}

type Transfer2d<Data> = unsafe extern "C" fn(
    *mut Buffer,
    *mut Tensor,
    Data,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> i32;

#[repr(C)]
pub struct BufferTable {
    pub size: u32,
    pub reserved0: u32,
    pub free: unsafe extern "C" fn(*mut Buffer),
    pub get_base: unsafe extern "C" fn(*mut Buffer) -> *mut c_void,
    pub init_tensor: Option<unsafe extern "C" fn(*mut Buffer, *mut Tensor) -> i32>,
    pub memset_tensor: Option<unsafe extern "C" fn(*mut Buffer, *mut Tensor, u8, usize, usize) -> i32>,
    pub set_tensor:
        unsafe extern "C" fn(*mut Buffer, *mut Tensor, *const c_void, usize, usize) -> i32,
    pub get_tensor:
        unsafe extern "C" fn(*mut Buffer, *const Tensor, *mut c_void, usize, usize) -> i32,
    pub set_tensor_2d: Option<Transfer2d<*const c_void>>,
    pub get_tensor_2d: Option<Transfer2d<*mut c_void>>,
    pub cpy_tensor: Option<unsafe extern "C" fn(*mut Buffer, *const Tensor, *mut Tensor) -> i32>,
    pub clear: unsafe extern "C" fn(*mut Buffer, u8) -> i32,
    pub reset: Option<unsafe extern "C" fn(*mut Buffer) -> i32>,
    pub set_usage: Option<unsafe extern "C" fn(*mut Buffer, i32) -> i32>,
    pub reserved: Reserved<8>,
}

#[repr(C)]
pub struct Buffer {
    pub table: *const BufferTable,
    pub buft: *const BufferType,
    pub context: *mut c_void,
    pub host: *mut c_void,
    pub size: usize,
    pub usage: u32,
    pub reserved0: u32,
    pub reserved: Reserved<2>,
}

#[repr(C)]
pub struct StreamTable {
    pub size: u32,
    pub reserved0: u32,
    /// Of this kind of stream: random bytes, or a name.
    pub guid: [u8; 16],
    pub get_name: unsafe extern "C" fn(*const Stream) -> *const c_char,
    pub free: unsafe extern "C" fn(*mut Stream),
    /// Transfers that queue (`set_tensor_async` to `cpy_tensor_async`); 0: there are none.
    pub transfers: [usize; 5],
    pub synchronize: Option<unsafe extern "C" fn(*mut Stream) -> i32>,
    /// Plans (`graph_plan_create` to `graph_plan_compute`); 0: there are none.
    pub plans: [usize; 3],
    pub graph_compute: unsafe extern "C" fn(*mut Stream, *const Graph) -> i32,
    /// `event_record` and `event_wait`; 0: there are none.
    pub events: [usize; 2],
    pub graph_optimize: Option<unsafe extern "C" fn(*mut Stream, *mut Graph) -> i32>,
    pub reserved: Reserved<8>,
}

#[repr(C)]
pub struct Stream {
    pub table: *const StreamTable,
    pub device: *const Device,
    pub context: *mut c_void,
    pub host: *mut c_void,
    pub reserved: Reserved<4>,
}

#[repr(C)]
pub struct DeviceTable {
    pub size: u32,
    pub reserved0: u32,
    pub get_name: unsafe extern "C" fn(*const Device) -> *const c_char,
    pub get_description: unsafe extern "C" fn(*const Device) -> *const c_char,
    pub get_memory: unsafe extern "C" fn(*const Device, *mut usize, *mut usize),
    pub get_type: unsafe extern "C" fn(*const Device) -> i32,
    pub get_props: unsafe extern "C" fn(*const Device, *mut Props),
    pub init_backend: unsafe extern "C" fn(*const Device, *const c_char, *mut *mut Stream) -> i32,
    pub get_buffer_type: unsafe extern "C" fn(*const Device) -> *const BufferType,
    pub get_host_buffer_type: Option<unsafe extern "C" fn(*const Device) -> *const BufferType>,
    pub buffer_from_host_ptr: Option<
        unsafe extern "C" fn(*const Device, *mut c_void, usize, usize, *mut *mut Buffer) -> i32,
    >,
    pub supports_op: unsafe extern "C" fn(*const Device, *const Tensor) -> bool,
    pub supports_buft: unsafe extern "C" fn(*const Device, *const BufferType) -> bool,
    pub offload_op: Option<unsafe extern "C" fn(*const Device, *const Tensor) -> bool>,
    /// 0: no events.
    pub event_new: usize,
    pub reserved: Reserved<8>,
}

#[repr(C)]
pub struct Device {
    pub table: *const DeviceTable,
    pub reg: *const Backend,
    pub context: *mut c_void,
    pub reserved: Reserved<5>,
}

#[repr(C)]
pub struct BackendTable {
    pub size: u32,
    pub reserved0: u32,
    pub get_name: unsafe extern "C" fn(*const Backend) -> *const c_char,
    pub get_device_count: unsafe extern "C" fn(*const Backend) -> usize,
    pub get_device: unsafe extern "C" fn(*const Backend, usize) -> *const Device,
    pub get_proc_address: Option<unsafe extern "C" fn(*const Backend, *const c_char) -> *mut c_void>,
    pub reserved: Reserved<8>,
}

#[repr(C)]
pub struct Backend {
    pub table: *const BackendTable,
    pub context: *mut c_void,
    pub reserved: Reserved<6>,
}

#[repr(C)]
pub struct Plugin {
    pub size: u32,
    pub contract_major: u16,
    pub contract_minor: u16,
    pub reg: *const Backend,
    pub score: Option<unsafe extern "C" fn(*const Plugin) -> i32>,
    pub shutdown: Option<unsafe extern "C" fn(*const Plugin, *const Host)>,
    pub get_extension: Option<unsafe extern "C" fn(*const Plugin, *const c_char, u32) -> *const c_void>,
    pub note: *const Note,
    pub reserved: Reserved<8>,
}

// Constant, and shared by all threads and hosts.
unsafe impl Sync for BufferType {}
unsafe impl Sync for Device {}
unsafe impl Sync for Backend {}
unsafe impl Sync for Plugin {}
