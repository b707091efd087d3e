// SPDX-License-Identifier: MIT
// A plugin in Rust, written from docs/plugin-contract.md and ggml-contract.json alone: no header of this project, no
// helper library. It adds tensors in the host's memory.
#![no_std]
#![crate_type = "cdylib"]

use core::ffi::c_void;
use core::mem::size_of;
use core::ptr::{addr_of_mut, null, null_mut};

const OK: i32 = 0;
const INVALID_ARGUMENT: i32 = 2;
const OUT_OF_MEMORY: i32 = 3;
const WRONG_CONTRACT: i32 = 23;
const TYPE_F32: i32 = 0;
const OP_ADD: i32 = 2;
const OPS_WITHOUT_WORK: [i32; 5] = [0, OP_RESHAPE, OP_VIEW, OP_PERMUTE, OP_TRANSPOSE];
const OP_RESHAPE: i32 = 36;
const OP_VIEW: i32 = 37;
const OP_PERMUTE: i32 = 38;
const OP_TRANSPOSE: i32 = 39;
const FLAG_COMPUTE: i32 = 16;
const FLAGS_TO_UNDERSTAND: i32 = !0xffff;
const DEVICE_TYPE_ACCEL: i32 = 3;
const HOST_MEMORY: &[u8] = b"ggml.host-memory\0";

#[panic_handler]
fn never(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

// --- note ------------------------------------------------------------------------------------------------------------

#[repr(C)]
pub struct Note {
    magic: [u8; 8],
    size: u32,
    contract_major: u16,
    contract_minor: u16,
    contract_min_minor: u16,
    machine: u16,
    flags: u32,
    priority: i32,
    reserved0: u32,
    cpu_features: [u64; 2],
    layout_number: u64,
    name: [u8; 32],
    variant: [u8; 32],
    version: [u8; 32],
    reserved: [u32; 16],
}

const fn text(from: &[u8]) -> [u8; 32] {
    let mut to = [0; 32];
    let mut i = 0;
    while i < from.len() {
        to[i] = from[i];
        i += 1;
    }
    to
}

#[used]
#[link_section = ".ggml.note"]
static NOTE: Note = Note {
    magic: *b"GGMLPLG\x1a",
    size: size_of::<Note>() as u32,
    contract_major: 1,
    contract_minor: 0,
    contract_min_minor: 0,
    machine: if cfg!(target_arch = "x86_64") { 1 } else { 2 },
    flags: 0,
    priority: 0,
    reserved0: 0,
    cpu_features: [0; 2],
    layout_number: LAYOUT_NUMBER,
    name: text(b"rust"),
    variant: text(b""),
    version: text(b"1.0"),
    reserved: [0; 16],
};
const LAYOUT_NUMBER: u64 = 0xb915c358ebce5979;

// --- what crosses the boundary ---------------------------------------------------------------------------------------

#[repr(C)]
pub struct Host {
    size: u32,
    contract_major: u16,
    contract_minor: u16,
    version: *const u8,
    log: extern "C" fn(*const Host, i32, *const u8),
    set_error: extern "C" fn(*const Host, i32, *const u8),
    alloc: extern "C" fn(*const Host, usize, usize) -> *mut c_void,
    free: extern "C" fn(*const Host, *mut c_void),
    get_topology: usize,
    bind_thread: usize,
    bind_thread_mask: usize,
    get_config: usize,
    get_extension: extern "C" fn(*const Host, *const u8, u32) -> *const c_void,
}

#[repr(C)]
pub struct HostMemory {
    size: u32,
    revision: u32,
    buffer_type: extern "C" fn(*const Host) -> *const c_void,
}

#[repr(C)]
pub struct Tensor {
    kind: i32,
    buffer: *const c_void,
    ne: [i64; 4],
    nb: [usize; 4],
    op: i32,
    op_params: [i32; 16],
    flags: i32,
    src: [*const Tensor; 10],
    view_src: *const Tensor,
    view_offs: usize,
    data: *mut f32,
    name: [u8; 64],
    extra: *const c_void,
    padding: u64,
}

#[repr(C)]
pub struct Graph {
    size: u32,
    n_nodes: i32,
    nodes: *const *const Tensor,
    use_counts: *const i32,
    structure: u64,
    uid: u64,
    reserved: [usize; 11],
}

#[repr(C)]
pub struct Props {
    name: *const u8,
    description: *const u8,
    memory_free: usize,
    memory_total: usize,
    kind: i32,
    device_id: *const u8,
    caps: [bool; 5],
}

#[repr(C)]
pub struct Stream {
    table: *const StreamTable,
    device: *const Device,
    context: usize,
    host: usize,
    reserved: [usize; 4],
}

#[repr(C)]
pub struct StreamTable {
    size: u32,
    reserved0: u32,
    guid: [u8; 16],
    get_name: extern "C" fn(*const Stream) -> *const u8,
    free: extern "C" fn(*mut Stream),
    before: [usize; 9],
    graph_compute: extern "C" fn(*const Stream, *const Graph) -> i32,
    after: [usize; 11],
}

#[repr(C)]
pub struct Device {
    table: *const DeviceTable,
    reg: *const Reg,
    context: usize,
    reserved: [usize; 5],
}

#[repr(C)]
pub struct DeviceTable {
    size: u32,
    reserved0: u32,
    get_name: extern "C" fn(*const Device) -> *const u8,
    get_description: extern "C" fn(*const Device) -> *const u8,
    get_memory: extern "C" fn(*const Device, *mut usize, *mut usize),
    get_type: extern "C" fn(*const Device) -> i32,
    get_props: extern "C" fn(*const Device, *mut Props),
    init_backend: extern "C" fn(*const Device, *const u8, *mut *mut Stream) -> i32,
    get_buffer_type: extern "C" fn(*const Device) -> *const c_void,
    host_memory: [usize; 2],
    supports_op: extern "C" fn(*const Device, *const Tensor) -> bool,
    supports_buft: extern "C" fn(*const Device, *const c_void) -> bool,
    offload_op: usize,
    event_new: usize,
    reserved: [usize; 8],
}

#[repr(C)]
pub struct Reg {
    table: *const RegTable,
    context: usize,
    reserved: [usize; 6],
}

#[repr(C)]
pub struct RegTable {
    size: u32,
    reserved0: u32,
    get_name: extern "C" fn(*const Reg) -> *const u8,
    get_device_count: extern "C" fn(*const Reg) -> usize,
    get_device: extern "C" fn(*const Reg, usize) -> *const Device,
    get_proc_address: usize,
    reserved: [usize; 8],
}

#[repr(C)]
pub struct Plugin {
    size: u32,
    contract_major: u16,
    contract_minor: u16,
    reg: *const Reg,
    score: usize,
    shutdown: extern "C" fn(*const Plugin, *const Host),
    get_extension: usize,
    note: *const Note,
    reserved: [usize; 8],
}

unsafe impl Sync for Device {}
unsafe impl Sync for Reg {}
unsafe impl Sync for DeviceTable {}
unsafe impl Sync for RegTable {}
unsafe impl Sync for Plugin {}

// --- hosts -----------------------------------------------------------------------------------------------------------

// Several may be attached; each stream remembers the one that was last when it was made. The entry and shutdown are
// called by one thread at a time for each host, and two hosts at once meet in the lock.
use core::sync::atomic::{AtomicBool, Ordering};

const MAX_HOSTS: usize = 16;
static LOCK: AtomicBool = AtomicBool::new(false);
static mut HOSTS: [*const Host; MAX_HOSTS] = [null(); MAX_HOSTS];

fn locked<T>(work: impl FnOnce(&mut [*const Host; MAX_HOSTS]) -> T) -> T {
    while LOCK.swap(true, Ordering::Acquire) {
        core::hint::spin_loop();
    }
    let answer = work(unsafe { &mut *addr_of_mut!(HOSTS) });
    LOCK.store(false, Ordering::Release);
    answer
}

fn last_host() -> *const Host {
    locked(|hosts| hosts.iter().rev().copied().find(|host| !host.is_null()).unwrap_or(null()))
}

fn attach(host: *const Host) -> bool {
    locked(|hosts| {
        let free = hosts.iter().rposition(|item| !item.is_null()).map_or(0, |last| last + 1);
        let has_room = free < MAX_HOSTS;
        if has_room {
            hosts[free] = host;
        }
        has_room
    })
}

fn detach(host: *const Host) {
    locked(|hosts| {
        if let Some(at) = hosts.iter().rposition(|item| *item == host) {
            hosts[at] = null();
        }
    });
}

fn fail(status: i32, message: &'static [u8]) {
    let hosts = locked(|hosts| *hosts);
    for host in hosts.iter().filter(|host| !host.is_null()) {
        unsafe { ((**host).set_error)(*host, status, message.as_ptr()) };
    }
}

// --- stream ----------------------------------------------------------------------------------------------------------

extern "C" fn stream_name(_: *const Stream) -> *const u8 {
    b"Rust\0".as_ptr()
}

extern "C" fn stream_free(stream: *mut Stream) {
    let host = last_host();
    if !host.is_null() {
        unsafe { ((*host).free)(host, stream as *mut c_void) };
    }
}

fn is_plain(tensor: *const Tensor) -> bool {
    if tensor.is_null() {
        return false;
    }
    let tensor = unsafe { &*tensor };
    let mut bytes = 4usize;
    for i in 0..4 {
        if tensor.ne[i] < 0 || (tensor.ne[i] > 1 && tensor.nb[i] != bytes) {
            return false;
        }
        bytes = bytes.wrapping_mul(tensor.ne[i] as usize);
    }
    tensor.kind == TYPE_F32 && says_nothing_new(tensor)
}

fn says_nothing_new(tensor: &Tensor) -> bool {
    tensor.padding == 0 && tensor.flags & FLAGS_TO_UNDERSTAND == 0
}

// Whether everything that the node says is known here.
fn is_known(node: &Tensor, n_sources: usize) -> bool {
    says_nothing_new(node)
        && node.src[n_sources..].iter().all(|source| source.is_null())
        && node.op_params.iter().all(|word| *word == 0)
}

fn adds(node: &Tensor) -> bool {
    node.op == OP_ADD
        && is_known(node, 2)
        && is_plain(node)
        && is_plain(node.src[0])
        && is_plain(node.src[1])
        && unsafe { (*node.src[0]).ne == node.ne && (*node.src[1]).ne == node.ne }
}

fn add(node: &Tensor) {
    let n = node.ne.iter().product::<i64>() as usize;
    unsafe {
        let (a, b) = ((*node.src[0]).data, (*node.src[1]).data);
        for i in 0..n {
            *node.data.add(i) = *a.add(i) + *b.add(i);
        }
    }
}

extern "C" fn stream_compute(_: *const Stream, graph: *const Graph) -> i32 {
    let graph = unsafe { &*graph };
    for i in 0..graph.n_nodes as usize {
        let node = unsafe { &**graph.nodes.add(i) };
        if OPS_WITHOUT_WORK.contains(&node.op) || node.flags & FLAG_COMPUTE == 0 {
            continue;
        }
        if !adds(node) {
            fail(INVALID_ARGUMENT, b"a node that supports_op declines\0");
            return INVALID_ARGUMENT;
        }
        add(node);
    }
    OK
}

static STREAM_TABLE: StreamTable = StreamTable {
    size: size_of::<StreamTable>() as u32,
    reserved0: 0,
    guid: *b"ggml-host/rust\0\0",
    get_name: stream_name,
    free: stream_free,
    before: [0; 9],
    graph_compute: stream_compute,
    after: [0; 11],
};

// --- device ----------------------------------------------------------------------------------------------------------

extern "C" fn device_name(_: *const Device) -> *const u8 {
    b"RUST0\0".as_ptr()
}

extern "C" fn device_memory(_: *const Device, free: *mut usize, total: *mut usize) {
    unsafe {
        *free = 0;
        *total = 0;
    }
}

extern "C" fn device_type(_: *const Device) -> i32 {
    DEVICE_TYPE_ACCEL
}

extern "C" fn device_props(device: *const Device, props: *mut Props) {
    unsafe {
        (*props).name = device_name(device);
        (*props).description = device_name(device);
        (*props).kind = device_type(device);
    }
}

extern "C" fn device_init(device: *const Device, _: *const u8, out: *mut *mut Stream) -> i32 {
    let host = last_host();
    let stream = if host.is_null() {
        null_mut()
    } else {
        unsafe { ((*host).alloc)(host, size_of::<Stream>(), 16) as *mut Stream }
    };
    if stream.is_null() {
        fail(OUT_OF_MEMORY, b"no memory for a stream\0");
        return OUT_OF_MEMORY;
    }
    unsafe {
        stream.write(Stream {
            table: &STREAM_TABLE,
            device,
            context: 0,
            host: 0,
            reserved: [0; 4],
        });
    }
    unsafe { *out = stream };
    OK
}

extern "C" fn device_buffer_type(_: *const Device) -> *const c_void {
    let host = last_host();
    if host.is_null() {
        return null();
    }
    unsafe {
        let memory = ((*host).get_extension)(host, HOST_MEMORY.as_ptr(), 1) as *const HostMemory;
        if memory.is_null() {
            fail(WRONG_CONTRACT, b"the host has no ggml.host-memory\0");
            return null();
        }
        ((*memory).buffer_type)(host)
    }
}

extern "C" fn device_supports_op(_: *const Device, node: *const Tensor) -> bool {
    let node = unsafe { &*node };
    OPS_WITHOUT_WORK.contains(&node.op) || adds(node)
}

extern "C" fn device_supports_buft(device: *const Device, buft: *const c_void) -> bool {
    buft == device_buffer_type(device)
}

static DEVICE_TABLE: DeviceTable = DeviceTable {
    size: size_of::<DeviceTable>() as u32,
    reserved0: 0,
    get_name: device_name,
    get_description: device_name,
    get_memory: device_memory,
    get_type: device_type,
    get_props: device_props,
    init_backend: device_init,
    get_buffer_type: device_buffer_type,
    host_memory: [0; 2],
    supports_op: device_supports_op,
    supports_buft: device_supports_buft,
    offload_op: 0,
    event_new: 0,
    reserved: [0; 8],
};

static DEVICE: Device = Device { table: &DEVICE_TABLE, reg: &REG, context: 0, reserved: [0; 5] };

// --- backend and entry -----------------------------------------------------------------------------------------------

extern "C" fn reg_name(_: *const Reg) -> *const u8 {
    b"RUST\0".as_ptr()
}

extern "C" fn reg_count(_: *const Reg) -> usize {
    1
}

extern "C" fn reg_device(_: *const Reg, index: usize) -> *const Device {
    if index == 0 {
        &DEVICE
    } else {
        null()
    }
}

static REG_TABLE: RegTable = RegTable {
    size: size_of::<RegTable>() as u32,
    reserved0: 0,
    get_name: reg_name,
    get_device_count: reg_count,
    get_device: reg_device,
    get_proc_address: 0,
    reserved: [0; 8],
};

static REG: Reg = Reg { table: &REG_TABLE, context: 0, reserved: [0; 6] };

extern "C" fn shutdown(_: *const Plugin, host: *const Host) {
    detach(host);
}

static PLUGIN: Plugin = Plugin {
    size: size_of::<Plugin>() as u32,
    contract_major: 1,
    contract_minor: 0,
    reg: &REG,
    score: 0,
    shutdown,
    get_extension: 0,
    note: &NOTE,
    reserved: [0; 8],
};

#[no_mangle]
pub extern "C" fn ggml_backend_init(host: *const Host, out_plugin: *mut *const Plugin) -> i32 {
    if unsafe { (*host).contract_major } != 1 || !attach(host) {
        return WRONG_CONTRACT;
    }
    unsafe { *out_plugin = &PLUGIN };
    OK
}
