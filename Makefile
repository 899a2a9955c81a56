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
export PYTHONDONTWRITEBYTECODE := 1

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
# The shell of the images: a static BusyBox. Without one (macOS) they have no shell.
BUSYBOX   ?= $(firstword $(wildcard /usr/bin/busybox /bin/busybox) $(call find-tool,busybox))
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

# MUTANT=name: the debug kernel with one rule left out (kernel/sync/mutant.h), in a folder of its own. Only
# the sources that ask MUTANT() are compiled for it.
ifneq ($(MUTANT),)
FLAVOUR := mutant-$(MUTANT)
$(FLAVOUR)_FLAGS := $(debug_FLAGS) -DMUTANT_BUILT=MUTANT_$(MUTANT)
MUTANT_C := $(shell grep -l '"kernel/sync/mutant.h"' $(KERNEL_C))
$(FLAVOUR)_OBJECTS := $(foreach c,$(KERNEL_C),\
    $(BUILD)/$(if $(filter $(c),$(MUTANT_C)),$(FLAVOUR),debug)/obj/$(c:.c=.o)) \
    $(KERNEL_S:%.S=$(BUILD)/debug/obj/%.S.o)
else
FLAVOUR := $(if $(filter-out 0,$(DEBUG)),debug,release)
endif
KERNEL  := $(BUILD)/$(FLAVOUR)/faultline.elf
RELEASE_KERNEL := $(BUILD)/release/faultline.elf
DEBUG_KERNEL   := $(BUILD)/debug/faultline.elf

# $(call write-if-changed,FILE,TEXT): FILE keeps its time where TEXT is what it holds already.
write-if-changed = mkdir -p $(dir $(1)); printf '%s\n' '$(2)' >$(1).new; \
    if cmp -s $(1).new $(1); then rm $(1).new; else mv $(1).new $(1); fi

# One flavour of the kernel: $(1) is release, debug or a mutant. A trap.c and a trap.S may lie side by side,
# so an assembly source gives trap.S.o.
define KERNEL_RULES
$(1)_OBJECTS := $$(or $$($(1)_OBJECTS),\
    $$(KERNEL_C:%.c=$(BUILD)/$(1)/obj/%.o) $$(KERNEL_S:%.S=$(BUILD)/$(1)/obj/%.S.o))

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

# In-kernel tests run in the order in which they stand in their file.
$(BUILD)/$(1)/obj/tests/kernel/%.o: EXTRA_CFLAGS := -fno-toplevel-reorder

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
$(if $(MUTANT),$(eval $(call KERNEL_RULES,$(FLAVOUR))))

# ---- User programs: unmodified static Linux programs -----------------------------------------

USER_CFLAGS := -static -no-pie -fno-pie -O2 -g -Wall -Wextra -Werror -std=gnu17 -I.
USER_LIB     := $(patsubst %.c,$(BUILD)/%.o,$(wildcard user/lib/*.c))
USER_BIN     := $(patsubst %.c,$(BUILD)/%,$(wildcard user/*.c))
USER_TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/user/*.c)) $(BUILD)/tests/user/mmfuzz
MMFUZZ       := $(wildcard tests/user/mmfuzz/*.c)

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

$(BUILD)/tests/user/mmfuzz: $(MMFUZZ) $(wildcard tests/user/mmfuzz/*.h) $(BUILD)/user/flags
	$(call say,MUSL,$@)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(USER_CFLAGS) $(MMFUZZ) -o $@

$(BUILD)/user/flags: FORCE
	@$(call write-if-changed,$@,$(MUSLCC) $(USER_CFLAGS) $(USER_LIB))

-include $(USER_LIB:.o=.d) $(USER_BIN:=.d) $(USER_TESTS:=.d)

# ---- Linux, to compare with: what tools/linux boots besides Debian's kernel ------------------

$(BUILD)/linux/init: tests/linux/init.c $(BUILD)/user/flags
	$(call say,MUSL,$<)
	@mkdir -p $(@D)
	$(Q)$(MUSLCC) $(USER_CFLAGS) -MMD -MP -MF $@.d -MT $@ $< -o $@

-include $(BUILD)/linux/init.d

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

# The same test with its operations chosen by libFuzzer; needs a clang that has it.
CLANG ?= $(call find-tool,clang)
SECONDS ?= 60
FUZZ_SOURCES := tests/host/test_range_tree.c lib/range_tree.c lib/range_txn.c
FUZZ_CFLAGS  := -std=gnu17 -I. -g -O1 -DHOST_TEST=1 -DFUZZ=1 \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all

$(BUILD)/host/fuzz-range-tree: $(FUZZ_SOURCES) $(wildcard lib/range*.h tests/host/*.h)
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) $(FUZZ_SOURCES) -o $@

$(BUILD)/host/flags: FORCE
	@$(call write-if-changed,$@,$(HOSTCC) $(HOST_CFLAGS))

# ---- Images ----------------------------------------------------------------------------------

DISK  := $(BUILD)/disk.img
SMALL := $(BUILD)/small.img
IMAGE_TOOLS := tools/mkimage tools/mkdata.py tools/mkroot $(shell find user/image -type f) Makefile tests/user/gen_oracle.py \
    tests/user/readahead_oracle.py tests/user/sequences.py tests/data/readahead.txt tools/patterns.py

# Kept once made: 400 MB of random bytes, and a file of 1000 GiB that is nearly all hole.
$(BUILD)/data/%: | tools/mkdata.py
	$(call say,DATA,$@)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tools/mkdata.py $* $@

# $(call make-image,IMG,FOLDER,DATA FILES): the folder that becomes the image, and the image. Times
# are set, so that the same content gives the same image.
define make-image
	$(call say,IMAGE,$(1))
	$(Q)rm -rf $(2)
	$(Q)mkdir -p $(2)/bin $(2)/tests $(2)/data
	$(Q)cp $(USER_BIN) $(2)/bin/
	$(if $(USER_TESTS),$(Q)cp $(USER_TESTS) $(2)/tests/)
	$(Q)tools/mkroot $(2) $(BUSYBOX)
	$(Q)ln $(3) $(2)/data/
	$(Q)$(PYTHON) -B tests/user/gen_oracle.py $(2)
	$(Q)find $(2) -exec touch -h -d '2020-01-01 00:00:00 UTC' {} +
	$(Q)$(PYTHON) tools/mkimage $(2) $(1)
endef

DISK_DATA  := $(addprefix $(BUILD)/data/,random.bin sparse.bin small.txt)
SMALL_DATA := $(addprefix $(BUILD)/data/,medium.bin sparse.bin small.txt)

$(DISK): $(USER_BIN) $(USER_TESTS) $(BUILD)/user/names $(IMAGE_TOOLS) | $(DISK_DATA)
	$(call make-image,$@,$(BUILD)/image,$(DISK_DATA))

$(SMALL): $(USER_BIN) $(USER_TESTS) $(BUILD)/user/names $(IMAGE_TOOLS) | $(SMALL_DATA)
	$(call make-image,$@,$(BUILD)/image-small,$(SMALL_DATA))

$(BUILD)/user/names: FORCE
	@$(call write-if-changed,$@,$(USER_BIN) $(USER_TESTS))

$(BUILD)/faultline.iso: $(RELEASE_KERNEL) boot/grub.cfg tools/mkiso
	$(call say,ISO,$@)
	$(Q)$(PYTHON) tools/mkiso $(RELEASE_KERNEL) $@

# ---- What can be asked for -------------------------------------------------------------------

C_FILES := $(shell find $(wildcard boot kernel mm fs drivers lib tests user) -name '*.[ch]')

.PHONY: FORCE fuzz-range-tree all kernel user run demo shell test test-kernel test-host test-user test-gdb test-long bench iso image \
    lint format gdb gdb-attach record replay vscode linux compare doctor clean help
.SECONDARY:

FORCE:

all: $(KERNEL) $(USER_BIN) $(BUILD)/compile_commands.json ##(a minute) the kernel (DEBUG=1: the debug one), the programs, compile_commands.json
kernel: $(KERNEL) ##(a minute) the kernel alone (MUTANT=name: one with a rule left out, kernel/sync/mutant.h)
user: $(USER_BIN) $(USER_TESTS) ##(5 s) the user programs alone

run: $(RELEASE_KERNEL) $(DISK) ##(a minute) boot through GRUB: the demonstration, then a shell
	@echo "Booting through GRUB with build/disk.img. First the demonstration, which reads 400 MB three"
	@echo "times (about a minute; ^C skips it), then a shell. The kernel's log: $(BUILD)/qemu.log."
	$(Q)tools/qemu --iso --smp 2 $$(test -t 0 || echo --timeout 1200) -- /sbin/init --demo

demo: $(RELEASE_KERNEL) $(DISK) ##(a minute) boot through GRUB, the demonstration alone
	$(Q)tools/qemu --iso --smp 2 --timeout 1200 -- /bin/demo

shell: $(RELEASE_KERNEL) $(DISK) ##(2 s to the prompt) boot straight to a shell
	$(Q)tools/qemu --smp 2

TEST_KERNELS := $(RELEASE_KERNEL) $(DEBUG_KERNEL) $(DISK) $(SMALL)

test: $(TEST_KERNELS) $(HOST_TESTS) ##(8 minutes) every test
	$(Q)$(PYTHON) tests/run all
test-kernel: $(TEST_KERNELS) ##(2 minutes) the suites inside the kernel, in each configuration
	$(Q)$(PYTHON) tests/run kernel
test-host: $(HOST_TESTS) ##(30 s) pure code under the sanitizers, and the tools
	$(Q)$(PYTHON) tests/run host
test-user: $(TEST_KERNELS) ##(3 minutes) programs under the kernel
	$(Q)$(PYTHON) tests/run user
fuzz-range-tree: $(BUILD)/host/fuzz-range-tree ##(SECONDS=60) libFuzzer against the VMA tree's core
	@mkdir -p $(BUILD)/fuzz-range-tree
	$(Q)$< -max_total_time=$(SECONDS) -max_len=4096 -print_final_stats=1 \
	    -artifact_prefix=$(BUILD)/fuzz-range-tree/ $(BUILD)/fuzz-range-tree
test-gdb: $(TEST_KERNELS) ##(2 minutes) scripted gdb sessions
	$(Q)$(PYTHON) tests/run gdb
test-long: $(TEST_KERNELS) $(HOST_TESTS) ##(45 minutes) every test, in more configurations
	$(Q)$(PYTHON) tests/run all --long

linux: $(BUILD)/linux/init ##(10 s) Debian's Linux 6.12 into build/linux/, for tools/linux
	$(Q)tools/linux --fetch
compare: $(RELEASE_KERNEL) $(SMALL) linux ##(15 s) PROG="/tests/NAME ARGS": its output here and on Linux
	$(Q)tools/compare -- $(PROG)
bench: $(RELEASE_KERNEL) $(SMALL) ##(5 s) instructions per operation on an address space, beside Linux 6.12 (BENCH="--linux --json FILE")
	$(Q)$(PYTHON) tools/bench $(BENCH)

.PHONY: experiments experiments-book
experiments: $(RELEASE_KERNEL) $(DISK) $(SMALL) ##(15 minutes, QUICK=1: 2) retry and readahead policies in numbers, into build/experiments/
	$(Q)$(PYTHON) -B tools/experiments $(if $(QUICK),--quick)
experiments-book: ##(1 s) tables and plots of the last `make experiments` into docs/
	$(Q)$(PYTHON) -B tools/experiments --book

.PHONY: trace
trace: $(RELEASE_KERNEL) $(SMALL) ##(10 s) PROG="mplay ...": its faults, requests and windows as a page and for Perfetto, into build/trace/
	$(Q)$(PYTHON) -B tools/trace $(TRACE) -- $(PROG)

.PHONY: test-suites
test-suites: $(RELEASE_KERNEL) linux ##(3 minutes) self-tests out of Linux's source; what passes there passes here
	$(Q)tools/suites $(SUITES)

image: $(DISK) $(SMALL) ##(20 s) build/disk.img, and build/small.img for --ramdisk
iso: $(BUILD)/faultline.iso ##(2 s) build/faultline.iso, for BIOS and UEFI

lint: ##(5 s) includes that point up the floors are errors; layout is a warning
	$(Q)$(PYTHON) tools/lint_includes.py
	$(Q)$(CLANG_FORMAT) --dry-run $(C_FILES) 2>&1 | grep -c 'warning:' | \
	    sed 's/$$/ places that `make format` would lay out differently/'
format: ##(5 s) lay out all sources by .clang-format
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

gdb: $(DEBUG_KERNEL) $(DISK) ##(5 s to the prompt) the debug kernel under gdb, stopped at kernel_main (PROG="mplay ..." GDBFLAGS="-batch -x FILE")
	$(Q)tools/debug $(if $(PROG),-- $(PROG))
gdb-attach: ##(1 s) gdb on a kernel that runs already, by tools/qemu --gdb (AT=port or socket)
	$(Q)tools/debug --attach$(if $(AT),=$(AT)) $(if $(PROG),-- $(PROG))
record: $(DEBUG_KERNEL) $(DISK) ##(10 s) PROG="mplay ...": records a run on one CPU in build/replay/
	$(Q)tools/debug --record $(if $(PROG),-- $(PROG))
replay: ##(5 s to the prompt) gdb on that run once more, forward and back (fl last-fault, fl who-wrote)
	$(Q)tools/debug --replay
vscode: ##(1 s) .vscode/launch.json and tasks.json, for VS Code's C/C++ debugger
	$(Q)$(PYTHON) tools/vscode

doctor: ##(20 s) is this machine fit for it? looks at the tools, boots the smallest machine
	@command -v $(PYTHON) >/dev/null || { echo "doctor: there is no python3. Run ./setup"; exit 1; }
	$(Q)$(PYTHON) tools/doctor

clean: ##(1 s) remove build/
	rm -rf $(BUILD)

help: ##(1 s) this list
	@echo "Usage: make [TARGET] [DEBUG=1] [V=1] [BUILD=folder] [CROSS_COMPILE=prefix-]"
	@sed -n 's/^\([a-z-]*\):.*##(\([^)]*\)) \(.*\)/  \1|\3|\2/p' $(MAKEFILE_LIST) | \
	    awk -F'|' '{ printf "  %-13s %s (%s)\n", $$1, $$2, $$3 }'

$(BUILD)/compile_commands.json: tools/compile_commands.py $(BUILD)/$(FLAVOUR)/flags \
    $(BUILD)/$(FLAVOUR)/objects $(BUILD)/user/flags $(BUILD)/user/names
	$(Q)$(PYTHON) tools/compile_commands.py >$@ \
	    "$(CC) $(KERNEL_CFLAGS) $($(FLAVOUR)_FLAGS)" $(KERNEL_C) \
	    -- "$(MUSLCC) $(USER_CFLAGS)" $(wildcard user/*.c user/lib/*.c tests/user/*.c) $(MMFUZZ) \
	    -- "$(HOSTCC) $(HOST_CFLAGS)" $(wildcard tests/host/*.c)
