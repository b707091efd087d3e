// SPDX-License-Identifier: MIT
//! A whole plugin: one device that adds tensors in the host's memory. Begin here: give it a name of your own in
//! `note!`, say in `supports` what the device computes, and compute it in `compute`.
use ggml_plugin::*;
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr::{null, null_mut};

note!("add", "", "1.0");

// --- what the device computes ----------------------------------------------------------------------------------------

fn operands(node: &Tensor) -> Option<(&Tensor, &Tensor)> {
    let (a, b) = unsafe { (node.source(0)?, node.source(1)?) };
    let is_known = node.src[2..].iter().all(|source| source.is_null())
        && node.op_params.iter().all(|&word| word == 0)
        && [node, a, b].iter().all(|tensor| tensor.says_nothing_new());
    let is_plain = [node, a, b].iter().all(|tensor| tensor.is_packed_f32() && tensor.ne == node.ne);
    (node.op == op::ADD && is_known && is_plain).then(|| (a, b))
}

fn supports(node: &Tensor) -> bool {
    node.is_empty_op() || operands(node).is_some()
}

fn compute(node: &Tensor) -> Result<(), Failure> {
    let (a, b) = operands(node).ok_or_else(|| {
        Failure(status::INVALID_ARGUMENT, "a node that supports_op declines".to_string())
    })?;
    let (to, a, b) = (node.data as *mut f32, a.data as *const f32, b.data as *const f32);
    // The result may lie in the memory of an operand: no slices.
    for i in 0..node.n_elements() {
        unsafe { *to.add(i) = *a.add(i) + *b.add(i) };
    }
    Ok(())
}

// --- stream ----------------------------------------------------------------------------------------------------------

unsafe extern "C" fn stream_name(_: *const Stream) -> *const c_char {
    b"Add\0".as_ptr().cast()
}

unsafe extern "C" fn stream_free(stream: *mut Stream) {
    drop(Box::from_raw(stream));
}

unsafe extern "C" fn stream_compute(_: *mut Stream, graph: *const Graph) -> i32 {
    guard(|| {
        for i in 0..(*graph).n_nodes as usize {
            let node = &**(*graph).nodes.add(i);
            if !node.is_empty_op() && node.flags & FLAG_COMPUTE != 0 {
                compute(node)?;
            }
        }
        Ok(())
    })
}

static STREAM_TABLE: StreamTable = StreamTable {
    size: size_of::<StreamTable>() as u32,
    reserved0: 0,
    guid: *b"ggml-host/add\0\0\0",
    get_name: stream_name,
    free: stream_free,
    transfers: [0; 5],
    synchronize: None,
    plans: [0; 3],
    graph_compute: stream_compute,
    events: [0; 2],
    graph_optimize: None,
    reserved: [0; 8],
};

// --- device ----------------------------------------------------------------------------------------------------------

unsafe extern "C" fn device_name(_: *const Device) -> *const c_char {
    b"ADD0\0".as_ptr().cast()
}

unsafe extern "C" fn device_description(_: *const Device) -> *const c_char {
    b"adds, in Rust\0".as_ptr().cast()
}

unsafe extern "C" fn device_memory(_: *const Device, free: *mut usize, total: *mut usize) {
    *free = 0;
    *total = 0;
}

unsafe extern "C" fn device_type(_: *const Device) -> i32 {
    device_type::ACCEL
}

// Zeroed by the host: what isn't set is false or nothing.
unsafe extern "C" fn device_props(device: *const Device, props: *mut Props) {
    (*props).name = device_name(device);
    (*props).description = device_description(device);
    (*props).kind = device_type(device);
}

unsafe extern "C" fn device_init(
    device: *const Device,
    _: *const c_char,
    out_stream: *mut *mut Stream,
) -> i32 {
    *out_stream = Box::into_raw(Box::new(Stream {
        table: &STREAM_TABLE,
        device,
        context: null_mut(),
        host: null_mut(),
        reserved: [0; 4],
    }));
    status::OK
}

unsafe extern "C" fn device_buffer_type(_: *const Device) -> *const BufferType {
    hosts::memory()
}

unsafe extern "C" fn device_supports_op(_: *const Device, node: *const Tensor) -> bool {
    supports(&*node)
}

unsafe extern "C" fn device_supports_buft(_: *const Device, buft: *const BufferType) -> bool {
    buft == hosts::memory()
}

static DEVICE_TABLE: DeviceTable = DeviceTable {
    size: size_of::<DeviceTable>() as u32,
    reserved0: 0,
    get_name: device_name,
    get_description: device_description,
    get_memory: device_memory,
    get_type: device_type,
    get_props: device_props,
    init_backend: device_init,
    get_buffer_type: device_buffer_type,
    get_host_buffer_type: None,
    buffer_from_host_ptr: None,
    supports_op: device_supports_op,
    supports_buft: device_supports_buft,
    offload_op: None,
    event_new: 0,
    reserved: [0; 8],
};

static DEVICE: Device =
    Device { table: &DEVICE_TABLE, reg: &BACKEND, context: null_mut(), reserved: [0; 5] };

// --- backend and entry -----------------------------------------------------------------------------------------------

unsafe extern "C" fn backend_name(_: *const Backend) -> *const c_char {
    b"ADD\0".as_ptr().cast()
}

unsafe extern "C" fn backend_count(_: *const Backend) -> usize {
    1
}

unsafe extern "C" fn backend_device(_: *const Backend, index: usize) -> *const Device {
    if index == 0 {
        &DEVICE
    } else {
        null()
    }
}

static BACKEND_TABLE: BackendTable = BackendTable {
    size: size_of::<BackendTable>() as u32,
    reserved0: 0,
    get_name: backend_name,
    get_device_count: backend_count,
    get_device: backend_device,
    get_proc_address: None,
    reserved: [0; 8],
};

static BACKEND: Backend = Backend { table: &BACKEND_TABLE, context: null_mut(), reserved: [0; 6] };

static PLUGIN: Plugin = Plugin {
    size: size_of::<Plugin>() as u32,
    contract_major: 1,
    contract_minor: CONTRACT_MINOR,
    reg: &BACKEND,
    score: None,
    shutdown: Some(hosts::leave),
    get_extension: None,
    note: &NOTE,
    reserved: [0; 8],
};

/// The one symbol that the host calls.
///
/// # Safety
/// It is called by hosts alone.
#[no_mangle]
pub unsafe extern "C" fn ggml_backend_init(
    host: *const Host,
    out_plugin: *mut *const Plugin,
) -> i32 {
    hosts::enter(host, &PLUGIN, out_plugin)
}
