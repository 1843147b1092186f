/* SPDX-License-Identifier: Apache-2.0 */
/* Schedule strings, their replay, and the trace that a replay prints.
 *
 *     string = level, "t" if time-outs are choices, "s" and number of spurious wake-ups, ":",
 *              choices: a..p the running thread, A.. the outcome of a step, each with an optional
 *              number of repetitions. Points with one candidate are omitted. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shadow.h"
#include "strategy.h"

#define OUTCOME_BIT 0x80u
#define STRING_BYTES (1u << 20)
#define PC_MAX 512 /* distinct addresses per call of addr2line */

/* --- strings --- */

const char *sp__schedule_string(void)
{
    static char text[STRING_BYTES];
    const sp_engine *engine = &sp__engine;
    size_t used = (size_t)snprintf(text, sizeof text, "%c%s",
                                   engine->options.level == SP_LEVEL_WEAK ? 'w' : 'h',
                                   engine->options.timeouts_are_choices ? "t" : "");
    if (engine->options.spurious_wakeups > 0) {
        used += (size_t)snprintf(text + used, sizeof text - used, "s%u",
                                 engine->options.spurious_wakeups);
    }
    text[used++] = ':';
    for (uint32_t i = 0; i < engine->choice_count;) {
        const uint8_t choice = engine->choices[i];
        uint32_t run = 1;
        while (i + run < engine->choice_count && engine->choices[i + run] == choice) run++;
        if (used + 16 > sizeof text) return "";
        const bool is_outcome = (choice & OUTCOME_BIT) != 0;
        text[used++] = (char)(is_outcome ? 'A' + choice - (int)OUTCOME_BIT : 'a' + choice);
        if (run > 1) used += (size_t)snprintf(text + used, sizeof text - used, "%u", run);
        i += run;
    }
    text[used] = '\0';
    return text;
}

static const char *parse_options(const char *text, sp_explore_options *options)
{
    if (*text != 'h' && *text != 'w') return NULL;
    options->level = *text++ == 'w' ? SP_LEVEL_WEAK : SP_LEVEL_HB;
    options->timeouts_are_choices = *text == 't';
    if (*text == 't') text++;
    options->spurious_wakeups = 0;
    if (*text == 's') {
        char *end;
        options->spurious_wakeups = (uint32_t)strtoul(text + 1, &end, 10);
        text = end;
    }
    return *text == ':' ? text + 1 : NULL;
}

const uint8_t *sp__schedule_parse(const char *text, sp_explore_options *options, uint32_t *count)
{
    static uint8_t *choices;
    if (choices == NULL) choices = sp__reserve(2 * SP_SCHED_STEPS_MAX);
    *count = 0;
    text = parse_options(text, options);
    if (text == NULL) return NULL;
    while (*text != '\0') {
        uint8_t choice;
        if (*text >= 'a' && *text < 'a' + SP_SCHED_MAX_THREADS) {
            choice = (uint8_t)(*text - 'a');
        } else if (*text >= 'A' && *text <= 'a' - 1) {
            choice = (uint8_t)(OUTCOME_BIT | (uint8_t)(*text - 'A'));
        } else {
            return NULL;
        }
        char *end = (char *)(uintptr_t)++text;
        unsigned long run = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 1;
        text = end;
        if (run > 2 * SP_SCHED_STEPS_MAX - *count) return NULL;
        while (run-- > 0) choices[(*count)++] = choice;
    }
    return choices;
}

/* --- replaying a string --- */

static const uint8_t *wanted;
static uint32_t wanted_count;
static uint32_t cursor;

static void replay_begin(void)
{
    cursor = 0;
}

/* After the string's end the run continues with the first candidate. */
static uint32_t replay_pick(uint32_t mask)
{
    if (cursor >= wanted_count) return (uint32_t)__builtin_ctz(mask);
    const uint32_t choice = wanted[cursor++];
    if ((choice & OUTCOME_BIT) != 0 || (mask >> choice & 1u) == 0) {
        sp__engine_fail(SP_SCHED_NONDETERMINISM, "choice %u of the string is not possible", cursor);
    }
    return choice;
}

static uint32_t replay_choose(uint32_t count)
{
    if (cursor >= wanted_count) return 0;
    const uint32_t choice = wanted[cursor++];
    if ((choice & OUTCOME_BIT) == 0 || (choice & ~OUTCOME_BIT) >= count) {
        sp__engine_fail(SP_SCHED_NONDETERMINISM, "choice %u of the string is not possible", cursor);
    }
    return choice & ~OUTCOME_BIT;
}

static bool replay_advance(void)
{
    return false;
}

const sp_strategy *sp__replay_start(const uint8_t *choices, uint32_t count)
{
    static const sp_strategy strategy = {false, replay_begin, replay_pick, replay_choose,
                                         replay_advance};
    wanted = choices;
    wanted_count = count;
    return &strategy;
}

/* --- traces --- */

typedef struct trace_line {
    uint32_t thread;
    sp_op op;
    uint64_t value;
    bool has_value;
} trace_line;

static trace_line *lines;
static uint32_t line_count;

void sp__trace_begin(void)
{
    if (lines == NULL) lines = sp__reserve((SP_SCHED_STEPS_MAX + 2) * sizeof *lines);
    line_count = 0;
}

void sp__trace_step(const sp_sched_thread *thread)
{
    lines[line_count++] = (trace_line){.thread = thread->id, .op = thread->op};
}

void sp__trace_value(uint64_t value)
{
    if (line_count == 0) return;
    lines[line_count - 1].value = value;
    lines[line_count - 1].has_value = true;
}

const char *sp__op_name(sp_op_kind kind)
{
    static const char *const names[SP_OP_COUNT] = {
        "none",   "load",      "store",     "rmw",       "cas",       "fence",   "lock", "try_lock",
        "unlock", "cond_wait", "cond_wake", "word_wait", "word_wake", "wake_up", "join", "yield"};
    return names[kind];
}

/* The source lines of code offsets, by addr2line; "" if unknown. */
typedef struct line_table {
    uint32_t pc[PC_MAX];
    char text[PC_MAX][160];
    uint32_t count;
} line_table;

static void add_pc(line_table *table, uint32_t pc)
{
    if (pc == 0 || table->count == PC_MAX) return;
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->pc[i] == pc) return;
    }
    table->pc[table->count++] = pc;
}

/* Adds the addresses of the message, written as "pc 0x...". */
static void add_message_pcs(line_table *table, const char *message)
{
    for (const char *at = message; (at = strstr(at, "pc 0x")) != NULL; at += 5) {
        add_pc(table, (uint32_t)strtoul(at + 3, NULL, 16));
    }
}

static void look_up_lines(line_table *table)
{
    if (table->count == 0) return;
    char command[64 + PC_MAX * 12];
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)getpid());
    size_t used = (size_t)snprintf(command, sizeof command, "addr2line -s -f -p -e %s", path);
    for (uint32_t i = 0; i < table->count; i++) {
        /* A return address may belong to the next line: use the byte before it. */
        used += (size_t)snprintf(command + used, sizeof command - used, " %#x", table->pc[i] - 1);
    }
    FILE *pipe = popen(command, "r");
    for (uint32_t i = 0; i < table->count; i++) {
        char *text = table->text[i];
        if (pipe == NULL || fgets(text, sizeof table->text[i], pipe) == NULL) text[0] = '\0';
        text[strcspn(text, "\n")] = '\0';
    }
    if (pipe != NULL) pclose(pipe);
}

static const char *line_of(const line_table *table, uint32_t pc)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->pc[i] == pc) return table->text[i];
    }
    return "";
}

/* Prints an address; inside the region as an offset, which is the same in every run. */
static void print_address(FILE *out, uintptr_t address)
{
    const uintptr_t offset = address - (uintptr_t)sp__engine.region;
    if (offset < SP_SCHED_REGION_BYTES) {
        fprintf(out, " +%#lx", (unsigned long)offset);
    } else {
        fprintf(out, " %#lx", (unsigned long)address);
    }
}

void sp__trace_print(FILE *out, const sp_explore_result *result)
{
    static line_table table;
    table.count = 0;
    add_message_pcs(&table, result->message);
    for (uint32_t i = 0; i < line_count; i++) add_pc(&table, sp__pc_offset(lines[i].op.pc));
    look_up_lines(&table);
    for (uint32_t i = 0; i < line_count; i++) {
        const trace_line *line = &lines[i];
        fprintf(out, "%5u  thread %u  %-9s", i + 1, line->thread, sp__op_name(line->op.kind));
        for (uint32_t k = 0; k < line->op.key_count; k++) print_address(out, line->op.key[k]);
        if (line->has_value) fprintf(out, " = %#llx", (unsigned long long)line->value);
        fprintf(out, "  %s\n", line_of(&table, sp__pc_offset(line->op.pc)));
    }
    fprintf(out, "verdict: %s", sp_sched_verdict_name(result->verdict));
    if (result->message[0] != '\0') fprintf(out, ": %s", result->message);
    fprintf(out, "\n");
    for (const char *at = result->message; (at = strstr(at, "pc 0x")) != NULL; at += 5) {
        const uint32_t pc = (uint32_t)strtoul(at + 3, NULL, 16);
        fprintf(out, "  pc %#x: %s\n", pc, line_of(&table, pc));
    }
}
