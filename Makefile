# Faultline: how it is built. `make help` lists what can be asked for.
#
# Rules of this file:
#   - everything that is made lies under $(BUILD), by default build/;
#   - a kernel comes in two flavours, release and debug, each in a folder of its own; every .c and .S
#     below the kernel's folders belongs to it, without a list to keep;
#   - objects depend on their headers (by -MMD), and on the flags and names they were built with.

BUILD ?= build
PATH := $(PATH):/usr/sbin:/sbin
export PATH
export BUILD

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# ---- Tools -----------------------------------------------------------------------------------

# The first of the arguments that is a command.
find-tool = $(firstword $(foreach t,$(1),$(if $(shell command -v $(t) 2>/dev/null),$(t))))

ifeq ($(origin CROSS_COMPILE),undefined)
CROSS_COMPILE := $(if $(call find-tool,x86_64-elf-gcc),x86_64-elf-,$(if \
    $(call find-tool,x86_64-linux-gnu-gcc),x86_64-linux-gnu-))
endif

CC        := $(CROSS_COMPILE)gcc
LD        := $(CROSS_COMPILE)ld
NM        := $(CROSS_COMPILE)nm
HOSTCC    ?= gcc
MUSLCC    ?= $(or $(call find-tool,musl-gcc x86_64-linux-musl-gcc),musl-gcc)
GRUB_FILE ?= $(call find-tool,grub-file grub2-file i686-elf-grub-file)
CLANG_FORMAT ?= $(or $(call find-tool,clang-format),clang-format)

# A Python that has pytest and pexpect: the first one in PATH may be one that lacks them.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(or $(shell for p in /usr/bin/python3 python3; do \
    $$p -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("pytest") and u.find_spec("pexpect")))' \
    2>/dev/null && echo $$p && break; done),python3)
endif
export PYTHON

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
endif

# ---- The kernel ------------------------------------------------------------------------------

KERNEL_FOLDERS := $(wildcard boot kernel mm fs drivers lib tests/kernel)
KERNEL_C := $(sort $(shell find $(KERNEL_FOLDERS) -name '*.c'))
KERNEL_S := $(sort $(shell find $(KERNEL_FOLDERS) -name '*.S'))

WARNINGS := -Wall -Wextra -Werror
KERNEL_CFLAGS := -std=gnu17 $(WARNINGS) -I. -ffreestanding -fno-pic -fno-pie -mcmodel=kernel \
    -mno-red-zone -mgeneral-regs-only -fno-stack-protector -fcf-protection=none \
    -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-strict-aliasing -fno-common
KERNEL_ASFLAGS := -I. -g -Wa,--noexecstack -fno-pic -fno-pie
KERNEL_LDFLAGS := -n -z max-page-size=4096 -z noexecstack --no-warn-rwx-segments -T linker.ld

release_FLAGS := -O2 -g
debug_FLAGS   := -Og -g -DCONFIG_DEBUG=1

FLAVOUR := $(if $(filter-out 0,$(DEBUG)),debug,release)
KERNEL  := $(BUILD)/$(FLAVOUR)/faultline.elf
RELEASE_KERNEL := $(BUILD)/release/faultline.elf
DEBUG_KERNEL   := $(BUILD)/debug/faultline.elf

# $(call write-if-changed,FILE,TEXT): FILE keeps its time where TEXT is what it holds already.
write-if-changed = mkdir -p $(dir $(1)); printf '%s\n' '$(2)' >$(1).new; \
    if cmp -s $(1).new $(1); then rm $(1).new; else mv $(1).new $(1); fi

# One flavour of the kernel: $(1) is release or debug. A trap.c and a trap.S may lie side by side,
# so an assembly source gives trap.S.o.
define KERNEL_RULES
$(1)_OBJECTS := $$(KERNEL_C:%.c=$(BUILD)/$(1)/obj/%.o) $$(KERNEL_S:%.S=$(BUILD)/$(1)/obj/%.S.o)

$(BUILD)/$(1)/obj/%.o: %.c $(BUILD)/$(1)/flags
	$$(call say,CC,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(KERNEL_CFLAGS) $$($(1)_FLAGS) $$(EXTRA_CFLAGS) -MMD -MP -c $$< -o $$@

$(BUILD)/$(1)/obj/%.S.o: %.S $(BUILD)/$(1)/flags
	$$(call say,AS,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(KERNEL_ASFLAGS) $$($(1)_FLAGS) -MMD -MP -c $$< -o $$@

# A memcpy whose loop the compiler turns into a call of memcpy would never end.
$(BUILD)/$(1)/obj/lib/string.o: EXTRA_CFLAGS := -fno-tree-loop-distribute-patterns

$(BUILD)/$(1)/flags: FORCE
	@$$(call write-if-changed,$$@,$$(CC) $$(KERNEL_CFLAGS) $$($(1)_FLAGS) $$(KERNEL_ASFLAGS))

$(BUILD)/$(1)/objects: FORCE
	@$$(call write-if-changed,$$@,$$(LD) $$(KERNEL_LDFLAGS) $$($(1)_OBJECTS))

# Linked twice: first with an empty symbol table, then with the one that the first link gave.
$(BUILD)/$(1)/faultline.elf: $$($(1)_OBJECTS) $(BUILD)/$(1)/objects linker.ld tools/mksyms.py
	$$(call say,LINK,$$@)
	$$(Q)$$(PYTHON) tools/mksyms.py </dev/null >$$(@D)/ksyms-empty.S
	$$(Q)$$(CC) $$(KERNEL_ASFLAGS) -c $$(@D)/ksyms-empty.S -o $$(@D)/ksyms-empty.o
	$$(Q)$$(LD) $$(KERNEL_LDFLAGS) -o $$(@D)/first.elf $$($(1)_OBJECTS) $$(@D)/ksyms-empty.o
	$$(Q)$$(NM) -n $$(@D)/first.elf >$$(@D)/first.map
	$$(Q)$$(PYTHON) tools/mksyms.py <$$(@D)/first.map >$$(@D)/ksyms.S
	$$(Q)$$(CC) $$(KERNEL_ASFLAGS) -c $$(@D)/ksyms.S -o $$(@D)/ksyms.o
	$$(Q)$$(LD) $$(KERNEL_LDFLAGS) -Map=$$(@D)/faultline.map -o $$(@D)/linked.elf \
	    $$($(1)_OBJECTS) $$(@D)/ksyms.o
	$$(Q)$$(NM) -n $$(@D)/linked.elf | $$(PYTHON) tools/mksyms.py --check $$(@D)/first.map
	$$(if $$(GRUB_FILE),$$(Q)$$(GRUB_FILE) --is-x86-multiboot2 $$(@D)/linked.elf || \
	    { echo "$$@: GRUB finds no multiboot2 header in its first 32 KiB" >&2; exit 1; })
	$$(Q)mv $$(@D)/linked.elf $$@

-include $$($(1)_OBJECTS:.o=.d)
endef

$(eval $(call KERNEL_RULES,release))
$(eval $(call KERNEL_RULES,debug))

# ---- User programs: unmodified static Linux programs -----------------------------------------

USER_CFLAGS := -static -no-pie -fno-pie -O2 -g -Wall -Wextra -Werror -std=gnu17 -I.
USER_LIB     := $(patsubst %.c,$(BUILD)/%.o,$(wildcard user/lib/*.c))
USER_BIN     := $(patsubst %.c,$(BUILD)/%,$(wildcard user/*.c))
USER_TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/user/*.c))

$(BUILD)/user/lib/%.o: user/lib/%.c $(BUILD)/user/flags
	$(call say,MUSL,$<)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(USER_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/user/%: user/%.c $(USER_LIB) $(BUILD)/user/flags
	$(call say,MUSL,$<)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(USER_CFLAGS) -MMD -MP -MF $@.d -MT $@ $< $(USER_LIB) -o $@

$(BUILD)/tests/user/%: tests/user/%.c $(USER_LIB) $(BUILD)/user/flags
	$(call say,MUSL,$<)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(USER_CFLAGS) -MMD -MP -MF $@.d -MT $@ $< $(USER_LIB) -o $@

$(BUILD)/user/flags: FORCE
	@$(call write-if-changed,$@,$(MUSLCC) $(USER_CFLAGS) $(USER_LIB))

-include $(USER_LIB:.o=.d) $(USER_BIN:=.d) $(USER_TESTS:=.d)

# ---- Host tests: pure code under the sanitizers ----------------------------------------------

# Each tests/host/NAME.c is a program. The sources it tests stand in a line of its own:
#     /* host-test-sources: lib/radix.c lib/bitmap.c */
HOST_CFLAGS := -std=gnu17 $(WARNINGS) -I. -g -O1 -fno-omit-frame-pointer \
    -fsanitize=address,undefined -fno-sanitize-recover=all -DHOST_TEST=1
HOST_TESTS  := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/host/*.c))
host-sources = $(shell sed -n 's:.*host-test-sources\: *\(.*[^ ]\) *\*/.*:\1:p' $(1))

$(BUILD)/host/obj/%.o: %.c $(BUILD)/host/flags
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOST_CFLAGS) -MMD -MP -c $< -o $@

define HOST_RULES
$(1)_OBJECTS := $$(patsubst %.c,$(BUILD)/host/obj/%.o,$(1).c $$(call host-sources,$(1).c))
$(BUILD)/$(1): $$($(1)_OBJECTS)
	$$(call say,HOSTLD,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) $$(HOST_CFLAGS) $$($(1)_OBJECTS) -o $$@
-include $$($(1)_OBJECTS:.o=.d)
endef
$(foreach t,$(patsubst %.c,%,$(wildcard tests/host/*.c)),$(eval $(call HOST_RULES,$(t))))

$(BUILD)/host/flags: FORCE
	@$(call write-if-changed,$@,$(HOSTCC) $(HOST_CFLAGS))

FORCE:

.PHONY: FORCE all kernel debug user
.SECONDARY:

all: $(KERNEL) $(USER_BIN)
debug: $(DEBUG_KERNEL)
kernel: $(KERNEL)
user: $(USER_BIN) $(USER_TESTS)
