// SPDX-License-Identifier: MIT
// ggml-exec: runs an installed program that was built with ggml on ggml-host's library.
//
// It puts the folder with libggml.so.0 and libggml-base.so.0 first on the dynamic linker's path and
// replaces itself by the program.
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/auxv.h>
#endif

#include "exec-config.h"
#include "help.h"

// As env(1) and nice(1).
enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static const char usage[] =
    "Usage: ggml-exec [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Run PROGRAM, which was built with ggml, on ggml-host's library.\n"
    "\n"
    "  -c, --check    say which libraries PROGRAM would use, and what is missing; run nothing\n"
    "  -p, --print    print the folder that is put first on the linker's path, and run nothing\n"
    "  -h, --help     print this help\n"
    "      --version  print the version\n"
    "\n"
    "Programs that PROGRAM starts run on ggml-host too. What devices there are: ggml-devices(1).\n"
    "Exit status: PROGRAM's; 125 if ggml-exec fails, 126 if PROGRAM can't be run, 127 if there is "
    "no\n"
    "PROGRAM. With --check 0 if PROGRAM would run on ggml-host, else 1.\n";

// The exit status: what could not be written is a failure of this program.
static int finish(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "ggml-exec: writing failed: %s\n", strerror(errno));
    return EXIT_OWN_FAILURE;
}

static bool has_libraries(const char *folder) {
    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/libggml.so.0", folder);
    return access(path, R_OK) == 0;
}

// This executable's path: as the system knows it or, where no /proc is mounted, as it was started.
static bool find_self(char out_path[PATH_MAX]) {
    if (realpath("/proc/self/exe", out_path) != NULL) return true;
#ifdef AT_EXECFN
    const char *started = (const char *)getauxval(AT_EXECFN);
    return started != NULL && realpath(started, out_path) != NULL;
#else
    return false;
#endif
}

// The folder relative to this executable, so that an installation can be moved, or the one that was
// configured.
static bool find_folder(char out_folder[PATH_MAX]) {
    static const char *const relative[] = {EXEC_DROPIN_FROM_BIN, "../core/dropin"};
    char self[PATH_MAX];
    if (find_self(self)) {
        *strrchr(self, '/') = '\0';
        for (size_t i = 0; i < sizeof(relative) / sizeof(relative[0]); ++i) {
            char candidate[2 * PATH_MAX];
            snprintf(candidate, sizeof(candidate), "%s/%s", self, relative[i]);
            if (realpath(candidate, out_folder) != NULL && has_libraries(out_folder)) return true;
        }
    }
    snprintf(out_folder, PATH_MAX, "%s", EXEC_DROPIN_DIR);
    if (has_libraries(out_folder)) return true;
    fprintf(stderr,
            "ggml-exec: libggml.so.0 of ggml-host is neither beside it nor in %s: install "
            "ggml-host with -Ddropin=true\n",
            EXEC_DROPIN_DIR);
    return false;
}

// The linker looks in the order of the list, and keeps what the user has set behind ours.
static bool put_first(const char *folder) {
    const char *path = getenv("LD_LIBRARY_PATH");
    const bool has_path = path != NULL && path[0] != '\0';
    const size_t size = strlen(folder) + (has_path ? strlen(path) : 0) + 2;
    char *joined = malloc(size);
    if (joined == NULL) return false;
    snprintf(joined, size, has_path ? "%s:%s" : "%s", folder, has_path ? path : "");
    const bool done = setenv("LD_LIBRARY_PATH", joined, 1) == 0;
    free(joined);
    return done;
}

// The file that a command without a slash names; false if there is none.
static bool find_program(const char *name, char out_path[PATH_MAX]) {
    if (strchr(name, '/') != NULL) {
        snprintf(out_path, PATH_MAX, "%s", name);
        return access(name, F_OK) == 0;
    }
    const char *path = getenv("PATH");
    for (const char *p = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin"; *p != '\0';) {
        const size_t length = strcspn(p, ":");
        snprintf(out_path, PATH_MAX, "%.*s/%s", length > 0 ? (int)length : 1, length > 0 ? p : ".",
                 name);
        struct stat info;
        if (stat(out_path, &info) == 0 && S_ISREG(info.st_mode) && access(out_path, X_OK) == 0)
            return true;
        p += length + (p[length] == ':');
    }
    return false;
}

// The linker ignores its path for programs that gain rights; saying so beats running them on
// another library.
static bool gains_rights(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || (info.st_mode & (S_ISUID | S_ISGID)) == 0) return false;
    fprintf(
        stderr,
        "ggml-exec: %s is set-user-ID or set-group-ID: the dynamic linker would not let another "
        "library into it\n",
        path);
    return true;
}

// --- --check -------------------------------------------------------------------------------------

struct findings {
    bool uses_ggml; // some library of ggml's is needed
    bool foreign;   // from elsewhere than ggml-host's folder
    bool missing;   // a library or a symbol
};

// A line of the dynamic linker's trace: prints libraries of ggml and what is missing.
static void look_at_line(const char *line, const char *folder, struct findings *found) {
    const bool library = strstr(line, "libggml") != NULL && strstr(line, " => ") != NULL;
    if (strstr(line, "undefined symbol") != NULL || strstr(line, "not found") != NULL) {
        found->missing = true;
        printf("%s", line);
    } else if (library) {
        const bool named = strstr(line, "libggml.so.0 ") || strstr(line, "libggml-base.so.0 ");
        found->uses_ggml |= named;
        found->foreign |= named && strstr(line, folder) == NULL;
        printf("%s", line);
    }
}

// Lets the dynamic linker resolve everything without running the program.
static int check_program(char **command, const char *folder) {
    struct findings found = {0};
    int ends[2];
    char line[8192];
    if (pipe(ends) != 0) return EXIT_OWN_FAILURE;
    const pid_t child = fork();
    if (child < 0) return EXIT_OWN_FAILURE;
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        setenv("LD_WARN", "yes", 1);
        setenv("LD_BIND_NOW", "1", 1);
        execvp(command[0], command);
        _exit(EXIT_NOT_EXECUTABLE);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    while (lines != NULL && fgets(line, sizeof(line), lines) != NULL)
        look_at_line(line, folder, &found);
    if (lines != NULL) fclose(lines);
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (!found.uses_ggml) {
        printf("%s needs neither libggml.so.0 nor libggml-base.so.0: it is no program for "
               "ggml-exec, or has ggml built in\n",
               command[0]);
    } else if (found.foreign) {
        printf("%s brings a ggml library of its own\n", command[0]);
    } else if (!found.missing) {
        printf("%s would run on ggml-host\n", command[0]);
    }
    return finish(found.uses_ggml && !found.foreign && !found.missing ? 0 : 1);
}

// --- command line --------------------------------------------------------------------------------

// Becomes the program; returns only if that failed, with an exit status as shells have it.
static int run(char **command, bool check) {
    char folder[PATH_MAX], path[PATH_MAX];
    if (!find_folder(folder)) return EXIT_OWN_FAILURE;
    if (!find_program(command[0], path)) {
        fprintf(stderr, "ggml-exec: there is no program '%s'\n", command[0]);
        return EXIT_NOT_FOUND;
    }
    if (gains_rights(path)) return EXIT_NOT_EXECUTABLE;
    if (!put_first(folder)) {
        perror("ggml-exec: LD_LIBRARY_PATH");
        return EXIT_OWN_FAILURE;
    }
    if (check) return check_program(command, folder);
    execvp(command[0], command);
    const int status = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    fprintf(stderr, "ggml-exec: %s: %s\n", command[0], strerror(errno));
    return status;
}

static int print_folder(void) {
    char folder[PATH_MAX];
    if (!find_folder(folder)) return EXIT_OWN_FAILURE;
    puts(folder);
    return finish(0);
}

int main(int argc, char **argv) {
    bool check = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; ++i) {
        const char *option = argv[i];
        if (strcmp(option, "--") == 0) {
            ++i;
            break;
        }
        if (strcmp(option, "-h") == 0 || strcmp(option, "--help") == 0) {
            print_help(usage, stdout);
            return finish(0);
        }
        if (strcmp(option, "--version") == 0) {
            puts("ggml-exec " EXEC_VERSION);
            return finish(0);
        }
        if (strcmp(option, "-p") == 0 || strcmp(option, "--print") == 0) return print_folder();
        if (strcmp(option, "-c") == 0 || strcmp(option, "--check") == 0) {
            check = true;
            continue;
        }
        fprintf(stderr, "ggml-exec: unknown option %s; see ggml-exec --help\n", option);
        return EXIT_OWN_FAILURE;
    }
    if (i == argc) {
        fputs("ggml-exec: which program? See ggml-exec --help\n", stderr);
        return EXIT_OWN_FAILURE;
    }
    return run(argv + i, check);
}
