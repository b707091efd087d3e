// SPDX-License-Identifier: MIT
// Archives of pipelines: a text file with a line for each that was compiled.
#include <fstream>

#include "state.h"

namespace fake {

// What a pipeline is made of, as a line of an archive's file.
static std::string line_of(const function *f) {
    std::string line = f->name;
    for (auto &value : f->values)
        line += " " + std::to_string(value.second);
    return line;
}

static const char *const archive_mark = "fake archive";
static long n_compiled;

struct archive : object {
    std::set<std::string> lines;
    archive() : object("MTLBinaryArchive") {
    }
};
struct descriptor : object { // of an archive or a pipeline
    string *url = nullptr;
    function *what = nullptr;
    archive *from = nullptr;
    explicit descriptor(const char *name) : object(name) {
    }
    void end() override {
        release(url);
        release(what);
        release(from);
    }
};

object *new_descriptor(const char *kind) {
    return new descriptor(kind);
}

static object *new_archive(device *, selector, descriptor *d, object **out_error) {
    HOLD archive *a = new archive();
    std::ifstream file(d->url ? d->url->text : "/dev/null");
    std::string line;
    bool good = !fails("newBinaryArchive");
    if (d->url) good = good && std::getline(file, line) && line == archive_mark;
    while (std::getline(file, line))
        a->lines.insert(line);
    if (good) return a;
    release(a);
    *out_error = autorelease(new error(1, "no archive"));
    return nullptr;
}

static object *new_pipeline_of(device *self, selector name, descriptor *d, unsigned long how,
                               object **, object **out_error) {
    HOLD if (how != 0 && how != 4) fault("options %lu of a pipeline", how);
    const bool there = d->from && d->from->lines.count(line_of(d->what)) > 0;
    if (there || how == 0) return new_pipeline(self, name, d->what, out_error);
    *out_error = autorelease(new error(2, "not in the archive"));
    return nullptr;
}

void add_archives() {
    const char *kind = "MTLComputePipelineDescriptor";
    add(
        "class", "fileURLWithPath:", +[](object *, selector, string *path) -> object * {
            HOLD return path && !fails("fileURLWithPath") ? autorelease(new string(path->text))
                                                          : nullptr;
        });
    add(
        "class", "arrayWithObject:", +[](object *, selector, object *o) -> object * {
            HOLD if (fails("arrayWithObject")) return nullptr;
            array *a = new array();
            a->items.push_back(retain(o));
            return autorelease(a);
        });
    add("MTLDevice", "newBinaryArchiveWithDescriptor:error:", new_archive);
    add("MTLDevice",
        "newComputePipelineStateWithDescriptor:options:reflection:error:", new_pipeline_of);
    add(
        "MTLBinaryArchiveDescriptor", "setUrl:", +[](descriptor *self, selector, string *url) {
            HOLD self->url = (string *)retain(url);
        });
    add(
        kind, "setComputeFunction:", +[](descriptor *self, selector, function *f) {
            HOLD self->what = (function *)retain(f);
        });
    add(
        kind, "setBinaryArchives:", +[](descriptor *self, selector, array *a) {
            HOLD self->from = (archive *)retain(a->items.at(0));
        });
    add(
        "MTLBinaryArchive", "addComputePipelineFunctionsWithDescriptor:error:",
        +[](archive *self, selector, descriptor *d, object **) {
            HOLD if (fails("addComputePipelineFunctions")) return false;
            ++n_compiled;
            self->lines.insert(line_of(d->what));
            return true;
        });
    add(
        "MTLBinaryArchive",
        "serializeToURL:error:", +[](archive *self, selector, string *url, object **) {
            HOLD std::ofstream file(url->text);
            file << archive_mark << "\n";
            if (fails("serializeToURL")) return false; // half written
            for (const std::string &line : self->lines)
                file << line << "\n";
            return file.good();
        });
}

} // namespace fake

API long fake_metal_compiled(void) {
    return fake::n_compiled;
}
