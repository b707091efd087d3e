// SPDX-License-Identifier: MIT
// Writers of TAP, JUnit's XML and JSON.
#include "report.h"

#include <jansson.h>
#include <string.h>

#include "subject.h"

static int area_length(const struct check *check) {
    return (int)strcspn(check->id, ".");
}

static int text_byte(unsigned char byte, bool valid) {
    return byte < ' ' ? ' ' : byte >= 0x80 && !valid ? '?' : byte;
}

// A message on one line that TAP does not take for a directive.
static void print_tap_text(FILE *out, const char *text) {
    const bool valid = valid_utf8(text);
    for (; *text; ++text) {
        const unsigned char byte = (unsigned char)*text;
        const bool late_control =
            byte == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0;
        if (late_control) ++text; // of a terminal, as ESC is
        putc(byte == '#' ? ':' : late_control || byte == 0x7f ? '?' : text_byte(byte, valid), out);
    }
}

// One result in TAP, with the reason of a failure as a comment below.
static void print_tap_line(FILE *out, int number, const struct check_result *result) {
    const struct check *check = result->check;
    fprintf(out, "%s %d - %s: %s (GP-%03u)", result_is_bad(result) ? "not ok" : "ok", number,
            check->id, check->title, check->rule);
    if (result->exclusion && !result_is_bad(result)) {
        fputs(" # SKIP excluded: ", out);
        print_tap_text(out, result->exclusion);
    } else if (result->verdict == VERDICT_SKIPPED) {
        fputs(" # SKIP ", out);
        print_tap_text(out, result->text);
    }
    putc('\n', out);
    if (!result_is_bad(result)) return;
    fputs("# ", out);
    print_tap_text(out, result->exclusion ? "passes although it is excluded" : result->text);
    putc('\n', out);
}

// A report without executed checks is a failure: a wrong --only would otherwise look like
// success.
bool report_tap(const struct runner_options *options, const struct check_result *results,
                FILE *out) {
    const struct check_totals totals = runner_totals(results);
    int number = 0;
    fprintf(out, "TAP version 13\n# seed %llu\n", (unsigned long long)options->seed);
    for (int i = 0; i < check_count; ++i) {
        if (results[i].selected) print_tap_line(out, ++number, &results[i]);
    }
    if (totals.executed == 0)
        fprintf(out, "not ok %d - at least one check is executed\n", ++number);
    fprintf(out, "1..%d\n", number);
    if (totals.blocked > 0)
        fprintf(
            out,
            "# %d skipped need one that failed; --only executes a check without what it needs\n",
            totals.blocked);
    fprintf(out, "# %d passed, %d failed, %d skipped\n", totals.passed, totals.failed,
            totals.skipped);
    return !ferror(out);
}

// XML knows no control characters, not even escaped ones, nothing but valid text, and not all of
// that.
static void print_xml(FILE *out, const char *text) {
    const bool valid = valid_utf8(text);
    for (; *text; ++text) {
        if (is_noncharacter(text)) {
            fputs("\xEF\xBF\xBD", out); // U+FFFD
            text += 2;
            continue;
        }
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        default: putc(text_byte((unsigned char)*text, valid), out);
        }
    }
}

static void print_xml_element(FILE *out, const char *element, const char *text) {
    fprintf(out, "><%s message=\"", element);
    print_xml(out, text);
    fputs("\"/></testcase>\n", out);
}

static void print_testcase(FILE *out, const struct check_result *result) {
    const struct check *check = result->check;
    fprintf(out, "  <testcase classname=\"GP-%03u.%.*s\" name=\"%s\" time=\"%.3f\"", check->rule,
            area_length(check), check->id, check->id, result->seconds);
    if (result_is_bad(result)) {
        print_xml_element(out, "failure",
                          result->exclusion ? "passes although it is excluded" : result->text);
    } else if (result->exclusion || result->verdict == VERDICT_SKIPPED) {
        print_xml_element(out, "skipped", result->exclusion ? result->exclusion : result->text);
    } else {
        fputs("/>\n", out);
    }
}

bool report_junit(const struct runner_options *options, const struct check_result *results,
                  FILE *out) {
    const struct check_totals totals = runner_totals(results);
    const int none = totals.executed == 0;
    double seconds = 0;
    for (int i = 0; i < check_count; ++i)
        seconds += results[i].seconds;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuite name=\"ggml-plugin-check\" tests=\"%d\" failures=\"%d\" errors=\"0\" "
            "skipped=\"%d\" time=\"%.3f\">\n",
            totals.passed + totals.failed + totals.skipped + none, totals.failed + none,
            totals.skipped, seconds);
    fputs("  <properties><property name=\"plugin\" value=\"", out);
    print_xml(out, options->path);
    fprintf(out, "\"/><property name=\"seed\" value=\"%llu\"/></properties>\n",
            (unsigned long long)options->seed);
    for (int i = 0; i < check_count; ++i) {
        if (results[i].selected) print_testcase(out, &results[i]);
    }
    if (none) {
        fputs("  <testcase classname=\"kit\" name=\"executed\" time=\"0\"", out);
        print_xml_element(out, "failure", "no check was executed");
    }
    fputs("</testsuite>\n", out);
    return !ferror(out);
}

static const char *outcome(const struct check_result *result) {
    if (result->exclusion) return result_is_bad(result) ? "unexpected-pass" : "excluded";
    return result->verdict == VERDICT_PASSED    ? "passed"
           : result->verdict == VERDICT_SKIPPED ? "skipped"
                                                : "failed";
}

static json_t *json_text(const char *text) {
    json_t *string = json_string(text);
    return string ? string : json_string("(not valid UTF-8)");
}

static json_t *json_result(const struct check_result *result) {
    const struct check *check = result->check;
    char rule[16];
    snprintf(rule, sizeof(rule), "GP-%03u", check->rule);
    return json_pack("{s:s, s:s%, s:s, s:s, s:s, s:o, s:f}", "id", check->id, "area", check->id,
                     (size_t)area_length(check), "rule", rule, "title", check->title, "outcome",
                     outcome(result), "message",
                     json_text(result->exclusion ? result->exclusion : result->text), "seconds",
                     result->seconds);
}

// The schema is docs/schemas/ggml-plugin-check.schema.json. False if writing failed.
bool report_json(const struct runner_options *options, const struct check_result *results,
                 FILE *out) {
    const struct check_totals totals = runner_totals(results);
    json_t *checks = json_array();
    for (int i = 0; i < check_count && checks; ++i) {
        if (results[i].selected) json_array_append_new(checks, json_result(&results[i]));
    }
    json_t *root = json_pack("{s:s, s:o, s:o?, s:I, s:{s:i, s:i, s:i, s:i}, s:o}", "schema",
                             "ggml-plugin-check/1", "plugin", json_text(options->path), "device",
                             options->device ? json_text(options->device) : json_null(), "seed",
                             (json_int_t)options->seed, "totals", "executed", totals.executed,
                             "passed", totals.passed, "failed", totals.failed, "skipped",
                             totals.skipped, "checks", checks);
    const bool written =
        root && json_dumpf(root, out, JSON_INDENT(1)) == 0 && putc('\n', out) != EOF;
    json_decref(root);
    return written;
}
