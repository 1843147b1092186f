/* SPDX-License-Identifier: Apache-2.0 */
/* The context switch in assembly for x86-64 and aarch64, and the token back end. The floating-point
 * control word is part of the fiber's state, since the library sets and restores it around
 * kernels. */
#include "fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Pushes the callee-saved state, stores the stack pointer to *save, loads it from `load`. */
void sp__fiber_jump(void **save, void *load);

#if defined(__x86_64__)
#define SAVED_WORDS 7 /* control word, r15 r14 r13 r12 rbx rbp */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl sp__fiber_jump\n"
        ".type sp__fiber_jump, @function\n"
        "sp__fiber_jump:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sp__fiber_jump, .-sp__fiber_jump\n");

static void *first_frame(char *top, sp_fiber_entry entry)
{
    /* At entry the stack is 16-byte aligned plus a return address, as after a call. */
    uint64_t *frame = (uint64_t *)(void *)top - (SAVED_WORDS + 2);
    memset(frame, 0, (SAVED_WORDS + 2) * sizeof *frame);
    uint32_t control;
    __asm__ __volatile__("stmxcsr %0" : "=m"(control));
    frame[0] = control;
    frame[SAVED_WORDS] = (uint64_t)(uintptr_t)entry;
    return frame;
}
#elif defined(__aarch64__)
#define SAVED_WORDS 22 /* x19-x30, d8-d15, fpcr, padding */
__asm__(".text\n"
        ".p2align 4\n"
        ".globl sp__fiber_jump\n"
        ".type sp__fiber_jump, %function\n"
        "sp__fiber_jump:\n"
        "    sub sp, sp, #176\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mrs x9, fpcr\n"
        "    str x9, [sp, #160]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldr x9, [sp, #160]\n"
        "    msr fpcr, x9\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #176\n"
        "    ret\n"
        ".size sp__fiber_jump, .-sp__fiber_jump\n");

static void *first_frame(char *top, sp_fiber_entry entry)
{
    uint64_t *frame = (uint64_t *)(void *)top - SAVED_WORDS;
    memset(frame, 0, SAVED_WORDS * sizeof *frame);
    uint64_t control;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(control));
    frame[11] = (uint64_t)(uintptr_t)entry; /* x30 */
    frame[20] = control;
    return frame;
}
#else
#error "the controlled scheduler supports x86-64 and aarch64 only"
#endif

static bool use_os_threads;

void sp__fiber_use_os_threads(bool enabled)
{
    use_os_threads = enabled;
}

void sp__fiber_init_home(sp_fiber *home)
{
    if (home->has_os_thread) return;
    home->has_os_thread = true;
    home->os_thread = pthread_self();
    sem_init(&home->token, 0, 0);
}

static sp_fiber_entry os_entry;

static void wait_for_token(sp_fiber *fiber)
{
    while (sem_wait(&fiber->token) != 0) {
    }
}

static void *os_thread_main(void *arg)
{
    sp_fiber *fiber = arg;
    wait_for_token(fiber);
    (void)setjmp(fiber->top);
    fiber->is_restarted = false;
    os_entry();
    abort(); /* an entry never returns */
}

/* On its own stack: the C library keeps its records there, which a fiber would overwrite. */
static void start_os_thread(sp_fiber *fiber, size_t stack_bytes, sp_fiber_entry entry)
{
    os_entry = entry;
    fiber->is_restarted = true;
    if (fiber->has_os_thread) return; /* it waits for its token inside an older run */
    pthread_attr_t attributes;
    sem_init(&fiber->token, 0, 0);
    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, stack_bytes) != 0 ||
        pthread_create(&fiber->os_thread, &attributes, os_thread_main, fiber) != 0)
        abort();
    pthread_attr_destroy(&attributes);
    fiber->has_os_thread = true;
}

void sp__fiber_start(sp_fiber *fiber, char *stack, size_t bytes, sp_fiber_entry entry)
{
    if (use_os_threads) {
        start_os_thread(fiber, bytes, entry);
        return;
    }
    fiber->stack_pointer = first_frame(stack + bytes, entry);
}

static void pass_token(sp_fiber *from, sp_fiber *to)
{
    sem_post(&to->token);
    wait_for_token(from);
    if (from->is_restarted) longjmp(from->top, 1);
}

void sp__fiber_switch(sp_fiber *from, sp_fiber *to)
{
    if (use_os_threads) {
        pass_token(from, to);
        return;
    }
    sp__fiber_jump(&from->stack_pointer, to->stack_pointer);
}
