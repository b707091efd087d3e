// SPDX-License-Identifier: MIT
//! The hosts that use the plugin. There may be several in one process: each calls the entry, and `shutdown` when it is
//! done.
use crate::{
    status, BufferType, Failure, Host, HostMemory, Plugin, EXTENSION_HOST_MEMORY,
};
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard};

// As numbers, which may be sent between threads: a host's table may be used by any.
static HOSTS: Mutex<Vec<usize>> = Mutex::new(Vec::new());

fn hosts() -> MutexGuard<'static, Vec<usize>> {
    HOSTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What an entry point does: remembers the host and hands over the plugin.
///
/// # Safety
/// The pointers are those that `ggml_backend_init` was called with.
pub unsafe fn enter(
    host: *const Host,
    plugin: &'static Plugin,
    out_plugin: *mut *const Plugin,
) -> i32 {
    if (*host).contract_major != 1 {
        return status::WRONG_CONTRACT;
    }
    hosts().push(host as usize);
    *out_plugin = plugin;
    status::OK
}

/// The plugin table's `shutdown`: forgets the host.
///
/// # Safety
/// It is called by the host alone.
pub unsafe extern "C" fn leave(_: *const Plugin, host: *const Host) {
    let mut hosts = hosts();
    if let Some(at) = hosts.iter().rposition(|&item| item == host as usize) {
        hosts.remove(at);
    }
    hosts.shrink_to_fit();
}

fn last() -> Option<*const Host> {
    hosts().last().map(|&host| host as *const Host)
}

/// Tells every host why the current call fails, for the calling thread: only one of them has made it.
pub fn fail(failure: &Failure) {
    let text = CString::new(failure.1.replace('\0', "?")).unwrap_or_default();
    let list = hosts().clone();
    for host in list {
        let host = host as *const Host;
        unsafe { ((*host).set_error)(host, failure.0, text.as_ptr()) };
    }
}

/// The host's own kind of memory, for devices that compute in it; NULL after telling why there is none.
pub fn memory() -> *const BufferType {
    let found = last().and_then(|host| unsafe {
        let get = (*host).get_extension?;
        let memory = get(host, EXTENSION_HOST_MEMORY.as_ptr().cast(), 1) as *const HostMemory;
        memory.as_ref().map(|memory| (memory.buffer_type)(host))
    });
    found.unwrap_or_else(|| {
        let text = "the host does not offer ggml.host-memory".to_string();
        fail(&Failure(status::UNSUPPORTED, text));
        std::ptr::null()
    })
}
