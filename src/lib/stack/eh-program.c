/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Executes the instructions of an unwind table up to an address. Of all registers only three
 * matter: the stack pointer, the frame pointer and the return address.
 */

#include "base/bits.h"
#include "lib/stack/eh-frame.h"

/* DWARF's numbers of the registers. */
#if defined(__x86_64__)
#define EH_FP 6u
#define EH_SP 7u
#define EH_PC 16u
#else
#define EH_FP 29u
#define EH_SP 31u
#define EH_PC UINT64_MAX /* none */
#endif

#define EH_SAVED_STATES 8u /* compilers use one, sometimes two */
#define EH_VALUES 8u       /* of an expression */

/* Instructions: the upper two bits, or all of them if those are 0. */
#define EH_ADVANCE 0x40u
#define EH_OFFSET 0x80u
#define EH_RESTORE 0xc0u
enum {
	EH_NOP = 0x00,
	EH_ADVANCE_1 = 0x02,
	EH_ADVANCE_2 = 0x03,
	EH_ADVANCE_4 = 0x04,
	EH_OFFSET_EXTENDED = 0x05,
	EH_RESTORE_EXTENDED = 0x06,
	EH_UNDEFINED = 0x07,
	EH_SAME_VALUE = 0x08,
	EH_REGISTER = 0x09,
	EH_REMEMBER_STATE = 0x0a,
	EH_RESTORE_STATE = 0x0b,
	EH_DEF_CFA = 0x0c,
	EH_DEF_CFA_REGISTER = 0x0d,
	EH_DEF_CFA_OFFSET = 0x0e,
	EH_DEF_CFA_EXPRESSION = 0x0f,
	EH_EXPRESSION = 0x10,
	EH_OFFSET_EXTENDED_SF = 0x11,
	EH_DEF_CFA_SF = 0x12,
	EH_DEF_CFA_OFFSET_SF = 0x13,
	EH_VAL_OFFSET = 0x14,
	EH_VAL_OFFSET_SF = 0x15,
	EH_VAL_EXPRESSION = 0x16,
	EH_NEGATE_RA_STATE =
		0x2d, /* aarch64: the return address is signed from here on, or no longer */
	EH_ARGS_SIZE = 0x2e,
	EH_NEGATIVE_OFFSET = 0x2f,
};

/* Operations of expressions. */
enum {
	EH_OP_DEREF = 0x06,
	EH_OP_CONST_1U = 0x08,
	EH_OP_CONST_8S = 0x0f,
	EH_OP_CONST_U = 0x10,
	EH_OP_CONST_S = 0x11,
	EH_OP_AND = 0x1a,
	EH_OP_PLUS = 0x22,
	EH_OP_PLUS_UCONST = 0x23,
	EH_OP_SHL = 0x24,
	EH_OP_GE = 0x2a,
	EH_OP_LIT_0 = 0x30,
	EH_OP_BREG_0 = 0x70,
};

/* A value: a number, or relative to something that is known only when a stack is walked. */
enum eh_base {
	EH_BASE_NONE = 0, /* cannot be expressed */
	EH_BASE_NUMBER,
	EH_BASE_SP,
	EH_BASE_FP,
	EH_BASE_SAVED, /* read from the frame pointer plus offset */
	EH_BASE_CFA,
};

struct eh_value {
	enum eh_base base;
	int64_t offset;
};

/* Where a register of the caller is found. */
enum eh_where {
	EH_IS_KEPT = 0,
	EH_IS_AT, /* this address */
	EH_IS_NONE,
	EH_IS_ELSEWHERE, /* cannot be expressed */
};

struct eh_register {
	enum eh_where where;
	struct eh_value at;
};

struct eh_state {
	uint64_t cfa_register;
	struct eh_value cfa;
	struct eh_register fp;
	struct eh_register ra;
};

struct eh_machine {
	const struct eh_entry *entry;
	uintptr_t pc;
	struct eh_state now;
	struct eh_state first; /* after the CIE's instructions */
	struct eh_state saved[EH_SAVED_STATES];
	size_t saved_count;
	bool is_bad;
};

static struct eh_value eh_number(int64_t number)
{
	return (struct eh_value){EH_BASE_NUMBER, number};
}

static int64_t eh_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t eh_scale(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static struct eh_value eh_register_value(const struct eh_entry *entry, uint64_t number,
					 int64_t offset)
{
	if (number == EH_SP)
		return (struct eh_value){EH_BASE_SP, offset};
	if (number == EH_FP)
		return (struct eh_value){EH_BASE_FP, offset};
	if (number == EH_PC)
		return eh_number(eh_add((int64_t)entry->pc, offset));
	/* The offset stays: the next instruction may only replace the register. */
	return (struct eh_value){EH_BASE_NONE, offset};
}

static struct eh_value eh_calculate(uint64_t op, struct eh_value a, struct eh_value b)
{
	if (op == EH_OP_PLUS && b.base == EH_BASE_NUMBER)
		return (struct eh_value){a.base, eh_add(a.offset, b.offset)};
	if (op == EH_OP_PLUS && a.base == EH_BASE_NUMBER)
		return (struct eh_value){b.base, eh_add(a.offset, b.offset)};
	if (a.base != EH_BASE_NUMBER || b.base != EH_BASE_NUMBER)
		return (struct eh_value){EH_BASE_NONE, 0};
	if (op == EH_OP_AND)
		return eh_number(a.offset & b.offset);
	if (op == EH_OP_GE)
		return eh_number(a.offset >= b.offset);
	if (op == EH_OP_SHL && b.offset >= 0 && b.offset < 64)
		return eh_number((int64_t)((uint64_t)a.offset << b.offset));
	return (struct eh_value){EH_BASE_NONE, 0};
}

/* An operation that only adds a value; EH_BASE_NONE = it is none, or cannot be expressed. */
static struct eh_value eh_constant(const struct eh_entry *entry, struct eh_cursor *cursor,
				   uint64_t op)
{
	/* 1, 2, 4 and 8 bytes, each unsigned, then signed. */
	unsigned int bits = op >= EH_OP_CONST_1U ? 8u << ((op - EH_OP_CONST_1U) / 2 & 3) : 8;
	int64_t number;

	if (op >= EH_OP_LIT_0 && op < EH_OP_LIT_0 + 32)
		return eh_number((int64_t)(op - EH_OP_LIT_0));
	if (op >= EH_OP_BREG_0 && op < EH_OP_BREG_0 + 32)
		return eh_register_value(entry, op - EH_OP_BREG_0, eh_read_sleb(cursor));
	if (op == EH_OP_CONST_U)
		return eh_number((int64_t)eh_read_uleb(cursor));
	if (op == EH_OP_CONST_S)
		return eh_number(eh_read_sleb(cursor));
	if (op < EH_OP_CONST_1U || op > EH_OP_CONST_8S)
		return (struct eh_value){EH_BASE_NONE, 0};
	number = (int64_t)eh_read(cursor, bits / 8);
	if ((op & 1) && bits < 64)
		number = (int64_t)((uint64_t)number << (64 - bits)) >> (64 - bits);
	return eh_number(number);
}

/* The last value counts. The first is the CFA, unless the expression defines that. */
static struct eh_value eh_expression(const struct eh_entry *entry, struct eh_cursor cursor,
				     bool has_cfa)
{
	struct eh_value stack[EH_VALUES] = {{EH_BASE_CFA, 0}};
	size_t n = has_cfa ? 1 : 0;

	while (cursor.at < cursor.end && !cursor.is_bad) {
		uint64_t op = eh_read(&cursor, 1);

		if (op == EH_OP_DEREF && n > 0 && stack[n - 1].base == EH_BASE_FP) {
			stack[n - 1].base = EH_BASE_SAVED;
		} else if (op == EH_OP_PLUS_UCONST && n > 0) {
			stack[n - 1] = eh_calculate(EH_OP_PLUS, stack[n - 1],
						    eh_number((int64_t)eh_read_uleb(&cursor)));
		} else if ((op == EH_OP_PLUS || op == EH_OP_AND || op == EH_OP_GE ||
			    op == EH_OP_SHL) &&
			   n > 1) {
			n--;
			stack[n - 1] = eh_calculate(op, stack[n - 1], stack[n]);
		} else if (n < EH_VALUES) {
			stack[n++] = eh_constant(entry, &cursor, op);
		} else {
			n = 0;
		}
		/* A rule cannot add to what was read. */
		if (n == 0 || stack[n - 1].base == EH_BASE_NONE ||
		    (stack[n - 1].base == EH_BASE_SAVED && op != EH_OP_DEREF))
			return (struct eh_value){EH_BASE_NONE, 0};
	}
	return n > 0 && !cursor.is_bad ? stack[n - 1] : (struct eh_value){EH_BASE_NONE, 0};
}

/* The block of an expression. */
static struct eh_cursor eh_take_block(struct eh_cursor *cursor)
{
	uint64_t length = eh_read_uleb(cursor);
	struct eh_cursor block = *cursor;

	eh_skip(cursor, length);
	block.end = cursor->at;
	block.is_bad = cursor->is_bad;
	return block;
}

/* NULL = a register that does not matter. */
static struct eh_register *eh_of(struct eh_machine *machine, struct eh_state *state,
				 uint64_t number)
{
	if (number == machine->entry->return_register)
		return &state->ra;
	return number == EH_FP ? &state->fp : NULL;
}

static void eh_set(struct eh_machine *machine, uint64_t number, enum eh_where where,
		   struct eh_value at)
{
	struct eh_register *of = eh_of(machine, &machine->now, number);

	if (of)
		*of = (struct eh_register){where, at};
}

static void eh_restore(struct eh_machine *machine, uint64_t number)
{
	struct eh_register *to = eh_of(machine, &machine->now, number);
	const struct eh_register *from = eh_of(machine, &machine->first, number);

	if (to)
		*to = *from;
}

static void eh_define_cfa(struct eh_machine *machine, uint64_t number, int64_t offset)
{
	machine->now.cfa_register = number;
	machine->now.cfa = eh_register_value(machine->entry, number, offset);
	if (number == EH_PC)
		machine->now.cfa.base = EH_BASE_NONE;
}

/* The instructions that change where the CFA is. False = @op is none of them. */
static bool eh_step_cfa(struct eh_machine *machine, struct eh_cursor *cursor, uint64_t op)
{
	struct eh_state *now = &machine->now;
	int64_t align = machine->entry->data_align;
	uint64_t number;

	switch (op) {
	case EH_DEF_CFA:
		number = eh_read_uleb(cursor);
		eh_define_cfa(machine, number, (int64_t)eh_read_uleb(cursor));
		return true;
	case EH_DEF_CFA_SF:
		number = eh_read_uleb(cursor);
		eh_define_cfa(machine, number, eh_scale(eh_read_sleb(cursor), align));
		return true;
	case EH_DEF_CFA_REGISTER:
		eh_define_cfa(machine, eh_read_uleb(cursor), now->cfa.offset);
		return true;
	case EH_DEF_CFA_OFFSET:
		eh_define_cfa(machine, now->cfa_register, (int64_t)eh_read_uleb(cursor));
		return true;
	case EH_DEF_CFA_OFFSET_SF:
		eh_define_cfa(machine, now->cfa_register, eh_scale(eh_read_sleb(cursor), align));
		return true;
	case EH_DEF_CFA_EXPRESSION:
		now->cfa = eh_expression(machine->entry, eh_take_block(cursor), false);
		return true;
	default:
		return false;
	}
}

/* The instructions that say where a register is. False = @op is none of them. */
static bool eh_step_register(struct eh_machine *machine, struct eh_cursor *cursor, uint64_t op)
{
	const struct eh_value none = {EH_BASE_NONE, 0};
	struct eh_value at = {EH_BASE_CFA, 0};
	int64_t align = machine->entry->data_align;
	uint64_t number = op & 0x3f;

	if ((op & 0xc0) == EH_RESTORE) {
		eh_restore(machine, number);
		return true;
	}
	if ((op & 0xc0) == EH_OFFSET)
		op = EH_OFFSET_EXTENDED;
	else if ((op & 0xc0) == 0)
		number = eh_read_uleb(cursor);
	switch (op) {
	case EH_OFFSET_EXTENDED:
		at.offset = eh_scale((int64_t)eh_read_uleb(cursor), align);
		eh_set(machine, number, EH_IS_AT, at);
		return true;
	case EH_OFFSET_EXTENDED_SF:
		at.offset = eh_scale(eh_read_sleb(cursor), align);
		eh_set(machine, number, EH_IS_AT, at);
		return true;
	case EH_NEGATIVE_OFFSET:
		at.offset = eh_scale(-(int64_t)eh_read_uleb(cursor), align);
		eh_set(machine, number, EH_IS_AT, at);
		return true;
	case EH_RESTORE_EXTENDED:
		eh_restore(machine, number);
		return true;
	case EH_UNDEFINED:
		eh_set(machine, number, EH_IS_NONE, none);
		return true;
	case EH_SAME_VALUE:
		eh_set(machine, number, EH_IS_KEPT, none);
		return true;
	case EH_EXPRESSION:
		at = eh_expression(machine->entry, eh_take_block(cursor), true);
		eh_set(machine, number, EH_IS_AT, at);
		return true;
	case EH_REGISTER:
	case EH_VAL_OFFSET:
		(void)eh_read_uleb(cursor);
		break;
	case EH_VAL_OFFSET_SF:
		(void)eh_read_sleb(cursor);
		break;
	case EH_VAL_EXPRESSION:
		(void)eh_take_block(cursor);
		break;
	default:
		return false;
	}
	eh_set(machine, number, EH_IS_ELSEWHERE, none);
	return true;
}

/* The others. Return: whether the code it advances to is not beyond the address. */
static bool eh_step_other(struct eh_machine *machine, struct eh_cursor *cursor, uint64_t op)
{
	uint64_t delta = 0;

	if ((op & 0xc0) == EH_ADVANCE) {
		delta = op & 0x3f;
	} else if (op >= EH_ADVANCE_1 && op <= EH_ADVANCE_4) {
		delta = eh_read(cursor, (size_t)1 << (op - EH_ADVANCE_1));
	} else if (op == EH_ARGS_SIZE) {
		(void)eh_read_uleb(cursor);
	} else if (op == EH_REMEMBER_STATE && machine->saved_count < EH_SAVED_STATES) {
		machine->saved[machine->saved_count++] = machine->now;
	} else if (op == EH_RESTORE_STATE && machine->saved_count > 0) {
		machine->now = machine->saved[--machine->saved_count];
	} else if (op != EH_NOP && op != EH_NEGATE_RA_STATE) { /* walks ignore signatures */
		machine->is_bad = true;
	}
	machine->pc += delta * machine->entry->code_align;
	return machine->pc <= machine->entry->pc;
}

static void eh_run(struct eh_machine *machine, struct eh_cursor cursor)
{
	bool goes_on = true;

	while (goes_on && cursor.at < cursor.end && !machine->is_bad) {
		uint64_t op = eh_read(&cursor, 1);
		bool is_other = (op & 0xc0) == EH_ADVANCE || op < EH_OFFSET_EXTENDED ||
				op == EH_REMEMBER_STATE || op == EH_RESTORE_STATE ||
				op == EH_ARGS_SIZE || op == EH_NEGATE_RA_STATE;

		if (is_other)
			goes_on = eh_step_other(machine, &cursor, op);
		else if (!eh_step_cfa(machine, &cursor, op) &&
			 !eh_step_register(machine, &cursor, op))
			machine->is_bad = true;
		machine->is_bad |= cursor.is_bad;
	}
}

static bool eh_fits(int64_t offset)
{
	return offset >= -RULE_OFFSET_MAX && offset <= RULE_OFFSET_MAX &&
	       (!RULE_HAS_RA || offset % 8 == 0);
}

/* Where the caller's frame pointer is, as a rule has it. */
static bool eh_rule_fp(const struct eh_state *state, struct rule *rule)
{
	struct eh_value at = state->fp.at;

	rule->fp = RULE_KEPT;
	/* What ends here is not followed any further by frame pointers either. */
	if (state->fp.where == EH_IS_KEPT || state->fp.where == EH_IS_NONE)
		return true;
	if (state->fp.where != EH_IS_AT)
		return false;
	/* From the CFA; where that has been read from the stack, from the frame pointer. */
	if (rule->kind == RULE_SAVED && at.base == EH_BASE_FP)
		at.base = EH_BASE_CFA;
	else if (rule->kind == RULE_SAVED)
		return false;
	else if (rule->kind == RULE_FP && at.base == EH_BASE_FP)
		at = (struct eh_value){EH_BASE_CFA, eh_add(at.offset, -state->cfa.offset)};
	rule->fp = (int32_t)at.offset;
	return at.base == EH_BASE_CFA && eh_fits(at.offset);
}

/* Where the return address is: below the CFA, so that every frame is above the one it called. */
static bool eh_rule_ra(const struct eh_state *state, struct rule *rule)
{
	bool is_below = state->ra.where == EH_IS_AT && state->ra.at.base == EH_BASE_CFA &&
			state->ra.at.offset < 0;

#if RULE_HAS_RA
	rule->ra = is_below ? (int32_t)state->ra.at.offset : RULE_KEPT;
	return is_below ? eh_fits(state->ra.at.offset) : state->ra.where == EH_IS_KEPT;
#else
	return is_below && state->ra.at.offset == rules_ra(rule);
#endif
}

static bool eh_rule(const struct eh_state *state, struct rule *rule)
{
	if (state->cfa.base == EH_BASE_SP)
		rule->kind = RULE_SP;
	else if (state->cfa.base == EH_BASE_FP)
		rule->kind = RULE_FP;
	else if (state->cfa.base == EH_BASE_SAVED)
		rule->kind = RULE_SAVED;
	else
		return false;
	rule->cfa = (int32_t)state->cfa.offset;
	return eh_fits(state->cfa.offset) && eh_rule_ra(state, rule) && eh_rule_fp(state, rule);
}

void eh_program_rule(const struct eh_entry *entry, struct rule *ret_rule)
{
	struct eh_machine machine = {.entry = entry, .pc = entry->start};
	struct rule rule;

	*ret_rule = (struct rule){.kind = RULE_LOST};
	eh_run(&machine, entry->common);
	machine.first = machine.now;
	eh_run(&machine, entry->own);
	if (machine.is_bad || entry->is_signal)
		return;
	if (machine.now.ra.where == EH_IS_NONE)
		ret_rule->kind = RULE_END;
	else if (eh_rule(&machine.now, &rule))
		*ret_rule = rule;
}
