// What only assembly can say: flushes while every register is in use, and operands relative to %rsp and %fs.
// Assembled by the wrapper, as all simulated code.
#define GENERAL rax, rbx, rcx, rdx, rsi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
#define UPTO15 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define FROM16 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
#define KEEP rbx, rbp, r12, r13, r14, r15

	.macro enter
	.irp r, KEEP
	pushq %\r
	.endr
	.endm
	.macro leave_
	.irp r, r15, r14, r13, r12, rbp, rbx
	popq %\r
	.endr
	ret
	.endm

	.macro function name
	.globl \name
	.type \name, @function
\name:
	.endm

	.text
// void registers_across_flush(state*): loads all registers from the state, flushes forms_target, sfences, stores to
// forms_target without cache, and stores all registers to the state. state: 14 words, flags, 16 of 32 bytes; the same
// again for the answer.
	function registers_across_flush
	enter
	.set at, 0
	.irp n, UPTO15
	vmovdqu 128 + 32 * \n(%rdi), %ymm\n
	.endr
	pushq 112(%rdi)
	.irp r, GENERAL
	movq at(%rdi), %\r
	.set at, at + 8
	.endr
	popfq
	clwb forms_target(%rip)
	sfence
	.byte 0x66; clflush forms_target(%rip)
	movnti %rax, forms_target(%rip)
	.set at, 640
	.irp r, GENERAL
	movq %\r, at(%rdi)
	.set at, at + 8
	.endr
	pushfq
	popq 640 + 112(%rdi)
	.irp n, UPTO15
	vmovdqu %ymm\n, 640 + 128 + 32 * \n(%rdi)
	.endr
	cld
	vzeroupper
	leave_
	.size registers_across_flush, . - registers_across_flush

// void vectors_across_flush(char in[32 * 64 + 64], char out[...]): the 32 zmm registers and 7 masks.
	function vectors_across_flush
	.irp n, UPTO15, FROM16
	vmovdqu64 64 * \n(%rdi), %zmm\n
	.endr
	.irp n, 1, 2, 3, 4, 5, 6, 7
	kmovw 2048 + 8 * \n(%rdi), %k\n
	.endr
	clwb forms_target(%rip)
	.irp n, 1, 2, 3, 4, 5, 6, 7
	kmovw %k\n, 2048 + 8 * \n(%rsi)
	.endr
	.irp n, UPTO15, FROM16
	vmovdqu64 %zmm\n, 64 * \n(%rsi)
	.endr
	vzeroupper
	ret
	.size vectors_across_flush, . - vectors_across_flush

// void x87_across_flush(const long double* before, long double* after)
	function x87_across_flush
	fldt (%rdi)
	clwb forms_target(%rip)
	fstpt (%rsi)
	ret
	.size x87_across_flush, . - x87_across_flush

// Each flushes one address and returns it.
	function flush_below_stack_pointer
	subq $200, %rsp
	clwb 72(%rsp)
	leaq 72(%rsp), %rax
	addq $200, %rsp
	ret
	function flush_at_stack_pointer
	subq $200, %rsp
	clwb (%rsp)
	movq %rsp, %rax
	addq $200, %rsp
	ret
	function flush_with_stack_pointer_and_index
	subq $200, %rsp
	movl $3, %edi
	clflushopt 8+8(%rsp,%rdi,8)
	leaq 40(%rsp), %rax
	addq $200, %rsp
	ret
	function flush_of_rsi
	leaq forms_target(%rip), %rsi
	clwb 5(%rsi)
	leaq 5(%rsi), %rax
	ret
	function flush_in_thread_block
	clwb %fs:thread_word@tpoff
	movq %fs:0, %rax
	leaq thread_word@tpoff(%rax), %rax
	ret

	.section .tbss, "awT", @nobits
	.p2align 3
thread_word:
	.skip 8
	.section .note.GNU-stack, "", @progbits
