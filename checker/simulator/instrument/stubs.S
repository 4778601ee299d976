// Where the calls that the assembler wrapper (as) writes arrive, in the program that is the machine.
//
// Simulated code expects nothing to change where it had a flush, a fence or a store: a stub saves what a C function may
// change, flags, integer registers, x87 and all vector state that the CPU has, calls the machine and restores it.
// On entry: %rdi an address, %esi or %rsi a number, and on the stack
//     0 the return to the piece that called, which has pushed   8 %rsi   16 %rdi
//    24 the return to the simulated code, the `caller` for the machine

// Parts of the state: x87, SSE, AVX, the three of AVX-512. xsave takes those of them that the CPU has.
#define STATE_PARTS 0xe7
// Where the last of them ends, on any CPU, and where xsave's own header begins.
#define STATE_BYTES 2688
#define STATE_HEADER 512

	.bss
// 0 not known yet, 1 xsave, 2 fxsave: the CPU has nothing that fxsave would not save.
save_by:
	.skip 1

	.text
	.macro stub name, function
	.globl \name
	.type \name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushfq
	pushq %rax
	movq \function@GOTPCREL(%rip), %rax
	jmp call_machine
	.cfi_endproc
	.size \name, . - \name
	.endm

	stub pmlab_stub_flush, pmlab_machine_flush
	stub pmlab_stub_fence, fence
	stub pmlab_stub_ntstore, pmlab_machine_ntstore
	stub pmlab_stub_store, pmlab_machine_store

// The rest of every stub: %rax is what to call.
	.p2align 4
	.type call_machine, @function
call_machine:
	.cfi_startproc
	.cfi_def_cfa %rbp, 16
	.cfi_offset %rbp, -16
	cld
	pushq %rcx
	pushq %rdx
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	movq %rax, %r11
	subq $STATE_BYTES, %rsp
	andq $-64, %rsp

	cmpb $1, save_by(%rip)
	jb find_out
save:
	ja 1f
	.irp word, 0, 8, 16, 24, 32, 40, 48, 56
	movq $0, STATE_HEADER + \word(%rsp)
	.endr
	movl $STATE_PARTS, %eax
	xorl %edx, %edx
	xsave64 (%rsp)
	jmp 2f
1:	fxsave64 (%rsp)
2:
	movq 32(%rbp), %rdx
	call *%r11

	cmpb $1, save_by(%rip)
	ja 1f
	movl $STATE_PARTS, %eax
	xorl %edx, %edx
	xrstor64 (%rsp)
	jmp 2f
1:	fxrstor64 (%rsp)
2:
	leaq -64(%rbp), %rsp
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdx
	popq %rcx
	popq %rax
	popfq
	popq %rbp
	.cfi_def_cfa %rsp, 8
	ret

	.cfi_def_cfa %rbp, 16
find_out:
	movq %rbx, %r10
	movl $1, %eax
	cpuid
	movq %r10, %rbx
	btl $27, %ecx  // the system lets programs use xsave
	movl $2, %eax
	sbbl $0, %eax
	movb %al, save_by(%rip)
	cmpb $1, %al
	jmp save
	.cfi_endproc
	.size call_machine, . - call_machine

// The machine's function takes no address.
	.type fence, @function
fence:
	movl %esi, %edi
	movq %rdx, %rsi
	jmp pmlab_machine_fence@PLT
	.size fence, . - fence

	.section .note.GNU-stack, "", @progbits
